"""The rows of a report, and how many of them it shows. Imports no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Verdict = Literal["violated", "doubtful", "uncontradicted", "sound"]
"""`doubtful`: warnings only, because something is missing from the journal. `uncontradicted`: nothing in members' logs breaks
a rule, but logs show too little to judge most rules."""

BINS_PER_DECADE = 3
"""Bins of a histogram of durations for each factor of ten."""


class Row(dict[str, Any]):
    """A JSON object of the report whose fields drawings and templates read as attributes.

    docs/spark/report.md explains every field. Times are microseconds on the run's clock.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(frozen=True)
class ReportLimits:
    """The limits on a report's size, however many events there are. The report counts what it leaves out."""

    index: int = 200
    """Runs in the index."""
    sections: int = 8
    """Runs with a section of their own: those with findings first."""
    lanes: int = 24
    """Members in a timeline, in the order in which they started."""
    incarnations: int = 32
    """Incarnations of one member."""
    marks: int = 80
    """Lists in one lane. A lane with more shows the last list in each of so many equal spans of time."""
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
    """Events named with one finding."""
    names: int = 8
    """Members named in one place."""
    problems: int = 50
    """Quarantined lines."""
    letters: int = 2_000
    """Characters of one text."""
