"""Builds the report of an audit and writes it as an HTML page, as Markdown or as JSON.

`audit_report` reduces runs to few rows, `builder` arranges them by run, and `rendering` shows them.
"""
