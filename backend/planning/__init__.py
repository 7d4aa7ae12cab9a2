"""Decisions of a master, computed from JSON that is handed in. No cluster is asked."""
