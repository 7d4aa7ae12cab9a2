"""One incarnation of one member while it runs: its state machine, connections, timer and clock."""
