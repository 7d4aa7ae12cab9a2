"""Starts and ends the Spark session: it finds Java, ships this package to the executors and sets Spark for the size of
the input. It also says in one line what this machine lacks.
"""
