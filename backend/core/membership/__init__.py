"""Who is in the cluster: the protocols of Cluster Service Consistency Improvements, Partial Member Disconnection Resolution,
Split-brain Recovery Improvements and Emergent Leader.

`state` holds what one member knows; each chapter reads and changes it.
"""
