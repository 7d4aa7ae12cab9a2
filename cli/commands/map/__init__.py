"""`quarterdeck map`: operations on the distributed map.

They run on a cluster that is reached, or on one that runs as long as the command.
"""
