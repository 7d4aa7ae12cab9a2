"""Writing, reading, rotating and repairing the files that hold the events of a run."""
