"""The map of all replicas, and who holds how many of them. It is what one member believes, the master unless another is
chosen.
"""
