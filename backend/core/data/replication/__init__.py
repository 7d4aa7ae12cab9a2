"""How the backups of a partition stay equal to its owner: synchronous backups, anti-entropy, and the copy of a whole
partition to a backup that is out of step.
"""
