"""`quarterdeck export`: what is known of a cluster, for monitoring.

The command itself is light; what it serves with is imported when it runs.
"""
