"""The audit's rules: `names` says which invariants there are, and `finding` what is told where one is broken.

The invariants themselves are those of `backend.invariants`.
"""
