"""What the master does when some members cannot reach one another (Partial Member Disconnection Resolution).

It collects their reports, builds the conflict graph and keeps its heaviest independent set.
"""
