"""Calls of clients to the distributed map: from the member that was asked to the owner of each partition, and back.

Each call is done once, however often it is sent.
"""
