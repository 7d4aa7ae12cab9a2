"""The boards lay out members, lists, suspicions and migrations as tables and facts for widgets to paint.

They choose and word rows, made on demand, so that a large cluster costs no more than its visible rows. The judge compares.
"""
