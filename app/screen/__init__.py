"""What every view is built from: the screen that all of them share, and tables of declared columns.

The first line and the detail of a row stand here too.
"""
