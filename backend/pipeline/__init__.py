"""Journals on Spark: tables with explicit schemas, and the audit that proves what the members did.

Nothing here imports Spark before it is needed, for Spark is an optional extra.
"""
