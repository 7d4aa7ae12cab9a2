"""What leaves the console: rows to the clipboard, tables and screens to files.

It also writes the command lines that do the same.
"""
