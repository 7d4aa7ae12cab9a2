"""What an operator must know of a cluster although no rule of the protocol is broken, seen in the logs of its members.

`story` gives the observations of a run; each file here looks for one kind of trouble.
"""
