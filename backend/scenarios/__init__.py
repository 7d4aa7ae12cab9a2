"""The interpreter that leads a cluster through the steps of a scenario, and judges what it expects.

Expectations and the right answers to questions are computed here, for simulated and live runs alike. The room `format` says
what a scenario file may contain.
"""
