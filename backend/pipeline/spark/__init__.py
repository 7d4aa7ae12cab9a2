"""Starts and ends the Spark session, and reports in one line what this machine lacks.

It finds Java, ships this package to the executors and tunes Spark for the size of the input.
"""
