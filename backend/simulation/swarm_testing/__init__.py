"""Draws a scenario with random faults from a seed, runs it, and decides whether the members converge and no invariant
is broken. A scenario that fails is shrunk to the smallest one that fails in the same way.
"""
