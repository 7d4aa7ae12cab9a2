"""Judges runs: finds in the lines of their files what breaks an invariant, in one pass, with the checkers of the simulator.

The same code judges a small journal in this process and a run of a large one in a task of Spark's.
"""
