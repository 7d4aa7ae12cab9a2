"""`quarterdeck cluster`: queries, actions and a live event log of a running cluster.

It talks to the HTTP interfaces of the members.
"""
