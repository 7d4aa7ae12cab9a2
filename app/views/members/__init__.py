"""The members, one a row, with their state, list, heartbeat and partitions. It shows who is close to being
suspected.
"""
