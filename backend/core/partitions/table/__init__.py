"""The partition table: its rows and versions, how the master publishes it, recovers it after a claim, and repairs it.

`learning` is the one place where a member takes over rows; every change of what a member holds follows from there.
"""
