"""Everything behind the screens and the command line.

Here are the protocols, the drivers that run them, what reads their events, and the audit. Nothing here draws, and nothing here
parses a command line.
"""
