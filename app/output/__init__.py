"""What leaves the console: rows to the clipboard, tables and screens to files, and the command lines that do the same."""
