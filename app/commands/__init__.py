"""From what an operator types or presses to a command on a cluster, and back to a line that does the same."""
