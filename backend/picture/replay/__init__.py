"""The tape keeps the records of a run and gives the picture of any moment.

The playhead says which moment is shown, and the timeline and the landmarks show where to go.
"""
