"""A conclusion: the answer to one question about a cluster, with the statements of members on which it rests."""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct

Question = Literal[
    "lists-agree", "one-cluster", "absent", "master", "tables-agree", "data-lost", "data-safe", "refused",
    "migration-hangs", "apart", "may-stop",
]  # fmt: skip
Answer = Literal["yes", "no", "unknown"]
Standing = Literal["stands", "past", "healed", "refuted"]
"""Whether the conclusion holds now, held once, was made good, or turned out to be false."""


class Statement(NamedTuple):
    """One statement of a member, or of the watcher itself, on which a conclusion rests."""

    source: str
    """Label of the member that made the statement; empty for the watcher's own."""
    statement: str
    at_us: int


class Conclusion(Struct, frozen=True):
    """The answer to one question about a cluster, a side of it or a member, at one moment."""

    question: Question
    answer: Answer
    subject: str = ""
    """The member, or the master of the side, that the question is about; empty for the whole cluster."""
    value: object = None
    """More than yes or no, as the question defines it: labels, a number, the way in which a member is absent."""
    since_us: int | None = None
    evidence: tuple[Statement, ...] = ()
    standing: Standing = "stands"

    @property
    def oldest_us(self) -> int | None:
        """Return the time of the oldest statement that the conclusion needs; None without evidence."""
        return min((statement.at_us for statement in self.evidence), default=None)
