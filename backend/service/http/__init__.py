"""What all HTTP paths of a member share: the server, access control, limits of requests, and the form of responses.

It also holds `Face`, the interface through which the paths use the member.
"""
