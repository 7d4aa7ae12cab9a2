"""How replicas move: the steps that lead from one row to another, their order, the queue, the copy and the safe commit.

A migration ends committed everywhere or rolled back everywhere.
"""
