"""The map of all replicas, and who holds how many of them."""
