"""Events are explained by events: their causes, the migration, claim or merge they belong to, and the space-time diagram.

Everything is a function of records.
"""
