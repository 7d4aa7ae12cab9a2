"""The view of events: the tail of the log and the space-time diagram.

A pane shows the fields of an event, its causes, or the events that belong to it.
"""
