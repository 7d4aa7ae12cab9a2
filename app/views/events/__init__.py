"""The view of events: the tail, the space-time diagram, and a pane with an event's fields, its causes or its story."""
