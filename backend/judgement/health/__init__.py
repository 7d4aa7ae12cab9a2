"""The two questions of an operator are answered here: is the cluster whole, and is its data safe.

One sentence says both; what is not known is neither well nor ill.
"""
