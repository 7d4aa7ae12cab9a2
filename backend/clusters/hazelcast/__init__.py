"""Clusters of unchanged members of Hazelcast, watched and acted on over the protocol of their clients, and by REST where needed.

What is heard becomes records as of any other cluster; what members do not report is not in the records either.
"""
