"""From what an operator types or presses to a command on a cluster.

Here are the prompt's grammar, the command palette, the confirmation, the request and its outcome. A command can also be
written back as a line of the prompt and as a command line.
"""
