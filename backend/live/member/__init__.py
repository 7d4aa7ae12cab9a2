"""One incarnation of one member while it runs: its state machine, connections, timer and clock.

The `Host` interface is the same for a member inside this process and for one in a process of its own.
"""
