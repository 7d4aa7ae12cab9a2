"""The description of every command: its words, keys and questions, whether it can be done now, and its effect on links.

Keys, the prompt, command lines, scenarios and HTTP all come to this room. The commands themselves are in `core/commands.py`.
"""
