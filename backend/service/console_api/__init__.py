"""The interface for consoles and command lines under ``/quarterdeck/v1``, described by OpenAPI."""
