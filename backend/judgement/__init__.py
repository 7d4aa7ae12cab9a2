"""The judge draws conclusions from the picture, for all surfaces: who agrees, who is absent, what is lost, may a member stop.

Outside the core, the invariants and the fold it is the only room that compares the beliefs of two members.
"""
