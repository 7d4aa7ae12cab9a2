"""One file for each group of invariants that is checked by transformations of tables.

Each file has the name of the simulator's checker whose verdicts it repeats.
"""
