"""How console, command line and demos reach a cluster of any kind.

Here are the `Cluster` protocol, what some clusters can do besides, and one implementation per kind. Everything about a cluster is
learnt from its records.
"""
