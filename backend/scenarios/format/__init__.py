"""The content of a scenario file: its steps and actions, and the values in them.

Files are read and written here, with line and field in every error.
"""
