"""A simulated cluster: events ordered by virtual time, a network with latency and faults, members with clocks of their own.

Heartbeats that change nothing may be left out, and a fingerprint shows whether two runs are equal.
"""
