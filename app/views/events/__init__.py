"""The view of events: the tail of the log, or the space–time diagram. A pane shows what explains an event."""
