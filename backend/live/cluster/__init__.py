"""A cluster on this machine: it starts, stops, kills and pauses its members, carries out commands, and records what happens.

Labels, ports, join lists and the run's records are kept here.
"""
