"""Who holds which replica of every partition, and how that changes (Avoid Data Loss on Migration).

`master_role` says in which order the master acts; `state` holds what one member knows.
"""
