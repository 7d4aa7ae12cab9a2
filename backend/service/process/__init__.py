"""Running one member: in the foreground of its own process, or as a member of a cluster on this machine.

It connects the member's state machine, its network, its journal and its HTTP interface.
"""
