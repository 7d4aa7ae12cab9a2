"""The operators' paths under ``/hazelcast`` and ``/metrics``, which existing curl lines, health checks and scrapers use.

One file holds one group of paths.
"""
