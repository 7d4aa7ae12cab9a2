"""What a member reports over its interface ``/quarterdeck/v1``, as types.

Its server encodes them, OpenAPI describes them, and clients decode them. Addresses are ``host:port``; times that end in ``_us``
are microseconds on the member's own clock.
"""
