"""The view of events: the tail of the log or the space–time diagram, and a pane for what explains an event."""
