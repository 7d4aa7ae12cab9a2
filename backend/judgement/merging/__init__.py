"""This room says why two clusters do not merge, which blockers stand between them, and which edit of a join list would help.

It holds the join lists as a board and the editing of them.
"""
