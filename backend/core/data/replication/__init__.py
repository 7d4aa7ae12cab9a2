"""How the backups of a partition stay equal to its owner: synchronous backups and anti-entropy.

A backup that is out of step gets a copy of the whole partition.
"""
