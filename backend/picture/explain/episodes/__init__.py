"""Events folded into episodes, as a person would report a run.

There is a line for each thing that happened, however many events it is made of.
"""
