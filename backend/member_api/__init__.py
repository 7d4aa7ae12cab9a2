"""What a member tells over its interface ``/quarterdeck/v1``, as types: its server encodes them, OpenAPI describes them, and
clients decode them. Addresses are ``host:port``; times that end in ``_us`` are microseconds on the member's own clock.
"""
