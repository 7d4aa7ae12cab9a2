"""The connections of one member: frames, the handshake, the listener on its port, and the conditions put on links.

There is one connection per pair of members. Nothing here knows of membership or data; messages go in and come out.
"""
