"""The report of an audit: what happened in each run, and what was wrong with it, as a page, as Markdown and as JSON.

`collecting` lets Spark make few rows out of many events, `building` makes the model of them, `html` and `markdown` show it.
"""
