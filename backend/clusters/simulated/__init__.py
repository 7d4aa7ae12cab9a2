"""A cluster in simulated time: a scenario plays in it, an operator may interfere, and any moment of it can be forked.

The scenario runs in a thread in lockstep with the caller that drains the cluster.
"""
