"""Partitions: who holds what, and how a table changes (seed 004)."""
