"""Chance judges the judge. Simulated runs, in which everything is known, show whether what is concluded of a cluster is true.

Each run has watchers that see less than the simulator. At random moments each of their conclusions is compared with the truth.
"""
