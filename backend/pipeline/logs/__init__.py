"""Reads Hazelcast member logs on Spark, one byte range of a file to each task.

It gives the same records as `backend.hazelcast.logs.reader` does in plain Python, as tables.
"""
