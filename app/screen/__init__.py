"""What every view is built from: the screen that all share, its first line, and tables of declared columns."""
