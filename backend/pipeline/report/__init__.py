"""Builds the report of an audit and writes it as an HTML page, as Markdown or as JSON.

`row_collection` reduces events to few rows on Spark, `builder` makes the report's model of them, and `rendering` shows
it.
"""
