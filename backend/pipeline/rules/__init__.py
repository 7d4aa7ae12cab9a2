"""The audit's rules: `names` lists the invariants, and `finding` is what an audit reports where one is broken.

The invariants themselves are those of `backend.invariants`.
"""
