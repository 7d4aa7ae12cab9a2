"""The boards lay out members, lists, suspicions and migrations as tables and facts for widgets to paint.

Rows and cells are made on demand, so that a large cluster costs no more than what is shown.
"""
