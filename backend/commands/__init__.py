"""Everything that is to be known of a command: its words, keys and questions, whether it can be done now, what it does to links.

Keys, the prompt, command lines, scenarios and HTTP all come to this room. The commands themselves are in `core/commands.py`.
"""
