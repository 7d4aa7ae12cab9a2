"""Members that run as pods of a Kubernetes service.

They are found, reached and read through `kubectl`, with its login and its context. Here they have the names of their pods.
"""
