"""Data in partitions: the distributed map, its backups and their repair, merging after a split."""
