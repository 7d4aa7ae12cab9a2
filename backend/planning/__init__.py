"""Decisions of a master, computed from JSON that somebody hands in. No cluster is asked."""
