"""The member list and how it changes: who is on it, who publishes it, and how members join and come back.

A list that a member has installed is its view of the cluster.
"""
