"""Where members look for other clusters, and why two clusters do not merge.

The editor changes the join lists of whole clusters.
"""
