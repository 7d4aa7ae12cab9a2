"""The members, one a row, with their state, list, heartbeat and partitions."""
