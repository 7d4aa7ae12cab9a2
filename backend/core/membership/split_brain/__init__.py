"""How two clusters find each other after a split and become one again (Split-brain Recovery Improvements).

Here are the search, the decision who merges, the merge itself, and the addresses that the search goes by.
"""
