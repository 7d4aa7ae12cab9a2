"""Everything that an operator can do, described once per action: its id, keys, prompt words and the views that know it.

The key map checks the keys and binds them.
"""
