"""Everything that an operator can do, described once: id, keys, words at the prompt, and the views that know it.

The views are described here too. The key map checks the keys and binds them.
"""
