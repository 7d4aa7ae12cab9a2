"""What members of Hazelcast 4.2 to 5.x say to their clients: the open binary client protocol, little-endian over TCP.

Everything is a pure function over bytes or a state machine that is handed bytes and the time; only `connection` has sockets.
"""
