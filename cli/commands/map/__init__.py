"""`quarterdeck map`: operations on the distributed map."""
