"""What members of Hazelcast 4.2 to 5.x report to their clients: the open binary client protocol, little-endian over TCP.

Everything is a pure function over bytes or a state machine that receives bytes and the time; only `connection` has sockets.
"""
