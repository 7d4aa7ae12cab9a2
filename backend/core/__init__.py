"""The protocols, pure: a member is a state machine that is handed time, messages and randomness, and hands back effects.

Nothing here opens a socket, reads a clock or starts a thread.
"""
