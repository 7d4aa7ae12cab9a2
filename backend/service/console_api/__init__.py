"""The interface for consoles and command lines under ``/quarterdeck/v1``, described by OpenAPI.

It also streams the events of a member over a WebSocket.
"""
