"""The ledger of losses: each loss is an incident of its own, with its state and the members that may hold the data still.

The fold notes incidents; here they are judged by what the watcher knows of the members that went, and worded.
"""
