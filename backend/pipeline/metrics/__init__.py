"""Measures runs: detection times, view convergence, split brains, availability, migration throughput and message
counts. Every metric is a table made of the tables of `backend.pipeline.tables`.
"""
