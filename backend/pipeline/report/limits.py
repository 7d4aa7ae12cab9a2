"""How much a report shows. Whatever is left out is counted, and said where it is missing."""

from __future__ import annotations

from dataclasses import dataclass

BINS_PER_DECADE = 3
"""Of a histogram of spans of time."""


@dataclass(frozen=True)
class ReportLimits:
    """A report's size is bounded by these alone, however many events there are."""

    index: int = 200
    """Runs in the index."""
    sections: int = 8
    """Runs with a section of their own: those with findings first."""
    lanes: int = 24
    """Members in a timeline, in the order in which they came."""
    lives: int = 32
    """Incarnations of one member."""
    marks: int = 80
    """Lists in one lane. Of a lane with more, the last list in each of so many equal spans of time."""
    suspicions: int = 300
    """Pairs of members in a suspicion matrix."""
    migrations: int = 120
    """Migrations in the chart: the open ones, then those that took longest."""
    faults: int = 120
    rows: int = 60
    """Rows of a table of claims, of merges and of splits."""
    metrics: int = 60
    """Rows of a run's table of metrics."""
    findings: int = 100
    """Findings of one run."""
    witnesses: int = 6
    """Events that are named with one finding."""
    names: int = 8
    """Members that are named in one place."""
    problems: int = 50
    """Quarantined lines."""
    letters: int = 2_000
    """Of one text."""
