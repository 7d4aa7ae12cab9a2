"""The virtual-time driver of the protocol core: whole clusters in one process, from a seed, byte for byte repeatable.

Around it stand swarm testing, the model checker and predictions.
"""
