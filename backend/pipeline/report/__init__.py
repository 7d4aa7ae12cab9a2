"""Builds the report of an audit and writes it as an HTML page, as Markdown or as JSON.

`audit_report` reduces events to few rows on Spark, `builder` makes the report's model of them, and `rendering` shows it.
"""
