"""A conclusion: the answer to one question about a cluster, with the statements of members on which it rests."""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct

from quarterdeck.backend.core.properties import SECOND_US

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

    def as_fields(self, now_us: int) -> dict[str, object]:
        """Return the fields of the JSON contract; members that say the same share one statement."""

        def seconds(at_us: int | None) -> float | None:
            return None if at_us is None else round(max(now_us - at_us, 0) / SECOND_US, 1)

        said: dict[str, list[Statement]] = {}
        for statement in self.evidence:
            said.setdefault(statement.statement, []).append(statement)
        evidence = [
            {
                "statement": text,
                "of": [statement.source for statement in said_by if statement.source],
                "oldest_seconds": seconds(min(statement.at_us for statement in said_by)),
            }
            for text, said_by in said.items()
        ]
        return {
            "question": self.question, "answer": self.answer, "subject": self.subject or None, "value": self.value,
            "since_seconds": seconds(self.since_us), "standing": self.standing, "evidence": evidence,
        }  # fmt: skip
