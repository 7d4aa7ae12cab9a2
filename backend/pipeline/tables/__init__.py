"""The tables that are made of journals, one row for each incarnation, view, suspicion, claim, migration, call or fault.

`store` keeps them as Parquet and updates them when more journals arrive; `commit` replaces them all or not at all.
"""
