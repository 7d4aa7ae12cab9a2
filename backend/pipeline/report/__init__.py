"""Builds the report of an audit and writes it as an HTML page, as Markdown or as JSON.

`run_section` reduces a run to few rows, `audit_report` arranges them, `drawing` draws them, and `output` writes them down.
"""
