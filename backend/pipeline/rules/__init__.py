"""The audit's rules: what breaks an invariant, found in the events of many runs at a time.

`registry` says what a rule is, `evidence` what rules read, and `all_rules` runs them all.
"""
