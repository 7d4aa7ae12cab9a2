"""The connections of one member: frames, the handshake, the listener on its port, one connection per pair of members,
and the conditions put on links. Nothing here knows of membership or data; messages go in and come out.
"""
