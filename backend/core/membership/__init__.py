"""Who is in the cluster.

The protocols are those of Cluster Service Consistency Improvements, Partial Member Disconnection Resolution, Split-brain
Recovery Improvements and Emergent Leader. `state` holds what one member knows; each chapter reads and changes it.
"""
