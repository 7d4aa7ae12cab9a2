"""Who is in the cluster: the protocols of seeds 000 to 003.

`state` holds what one member knows; each chapter reads and changes it.
"""
