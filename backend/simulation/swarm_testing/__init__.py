"""Random runs: a scenario with faults is drawn from a seed, run, and judged.

The members must converge, and no invariant may be broken. A scenario that fails is shrunk to the smallest one that fails in the
same way.
"""
