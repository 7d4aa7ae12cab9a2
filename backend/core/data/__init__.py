"""Data in partitions: the distributed map, its backups and their repair, and the merge of entries after a split.

`map_service` is what migrations see of it.
"""
