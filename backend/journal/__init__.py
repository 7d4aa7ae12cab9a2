"""Writing, reading, rotating and repairing the files that hold the events of a run.

A killed process loses at most the last few milliseconds.
"""
