"""The replicas of one partition: who holds it, by replica index (seed 004, Background)."""

from __future__ import annotations

MOST_REPLICAS = 7
"""An owner at index 0 and up to six backups."""

Row = tuple[str | None, ...]
"""A member's name at each replica index, or None where nobody is."""
