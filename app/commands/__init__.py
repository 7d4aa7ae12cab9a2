"""From what an operator types or presses to a command on a cluster: the prompt's grammar, the command palette, the
confirmation, the request and its outcome. It also writes a command back as a line of the prompt and as a command line.
"""
