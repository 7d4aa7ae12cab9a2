"""`quarterdeck cluster`: queries, actions and a live event log of a running cluster. It asks the members over HTTP."""
