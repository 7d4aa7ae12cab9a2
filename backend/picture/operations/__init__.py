"""What operators' tools ask of a picture: numbers for monitoring, and whether the next member may be stopped.

What is not known is said to be so: a number is missing, and a verdict is neither yes nor no.
"""
