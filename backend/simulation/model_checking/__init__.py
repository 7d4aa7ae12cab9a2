"""Every order of events within bounds: the real core, explored state by state instead of by chance.

A model is a small cluster and what may befall it. Of each state that it can be in, every next one is looked at once.
"""
