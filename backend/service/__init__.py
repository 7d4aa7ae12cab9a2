"""A member's HTTP face: the operators' paths, the console's own interface, the event stream, metrics, and who may use what."""
