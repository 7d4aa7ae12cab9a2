"""Audits a journal while it is still being written and writes down findings within seconds.

It remembers which files it has processed, so a stream that was killed goes on where it ended.
"""
