"""How one member is to run: read from a file, the environment and flags, and checked as a whole.

Every error says where the wrong value was given.
"""
