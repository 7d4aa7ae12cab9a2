"""From what an operator types or presses to a command on a cluster. A command is written back as a line, too."""
