"""The partition table: its rows and versions, how the master publishes it, recovers it after a mastership claim, and
repairs it after members left. `learning` is the one place where a member takes a decision of the master in.
"""
