"""Who holds which replica of every partition, and how that changes (seed 004).

`master_role` tells in which order the master acts; `state` holds what one member knows.
"""
