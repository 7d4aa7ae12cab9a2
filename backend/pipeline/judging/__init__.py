"""Judges runs: from the lines of their files to what breaks an invariant, in one pass, by the very checkers of the simulator.

The same code judges a small journal in this process and a run of a great one in a task of Spark's.
"""
