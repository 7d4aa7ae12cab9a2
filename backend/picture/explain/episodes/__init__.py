"""Events folded into episodes: what a person would report of a run.

There is a line for each thing that happened, however many events it is made of.
"""
