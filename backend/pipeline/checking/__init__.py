"""Explores all states of a model on Spark, one choice deeper at a time, where one machine is too small.

What the states are and what comes of them is that of `backend.simulation.model_checking`; here are only tables of them.
"""
