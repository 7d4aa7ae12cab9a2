"""Members that run as pods of a Kubernetes service.

They are found, reached and read through `kubectl`, with its login and its context, or found by plain DNS. Here they have the
names of their pods.
"""
