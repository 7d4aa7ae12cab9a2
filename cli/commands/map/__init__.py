"""`quarterdeck map`: operations on the distributed map. The cluster is reached, or runs as long as the command."""
