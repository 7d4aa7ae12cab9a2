"""The view of findings: invariants that were broken while the cluster was followed, findings of the stream, and the
audit on Spark. The audit runs in a process of its own.
"""
