"""Measures runs: detection times, view convergence, split brains, availability, migrations and messages.

Every metric is a table made of the tables of `backend.pipeline.tables`.
"""
