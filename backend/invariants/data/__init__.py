"""Invariants of the reads and writes of clients, each divided by keys.

Acknowledged writes are found again, as long as enough holders live. Operations on one key are linearizable in an undivided
cluster, and what a division does not touch is there after it.
"""
