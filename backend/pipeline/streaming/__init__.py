"""Audits a journal while it is still being written, and writes findings within seconds.

It records which files it has processed, so a stream that was killed continues where it ended.
"""
