"""Events are explained by events: which one caused which, which belong to one migration, claim or merge, and how they
look as a space-time diagram. Everything is read from an index of the recorded events.
"""
