"""What is observed in logs: when, of whom, the lines that show it, and what usually causes and mends it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, TypeVar

from msgspec import Struct

from quarterdeck.backend.core.events import Event, MemberMerging, MemberStopped, Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.told_messages import ToldMessage

ObservationKind = Literal[
    "flapping",
    "oscillation",
    "halves-apart",
    "lone-master",
    "member-lost",
    "lasting-suspicion",
    "mutual-suspicion",
    "clock-jump",
    "claim-not-accepted",
    "restart",
    "partition-lost",
    "migration-storm",
    "zones-differ",
]

MAX_EVIDENCE = 12
"""Lines of evidence that are kept of one observation: the first ones, and the last."""
_TEXT_CHARACTERS = 200

_Kind = TypeVar("_Kind", bound=Event)


class EvidenceLine(Struct, frozen=True):
    """A line of a log that shows something."""

    file: str
    line: int
    utc: int
    member: str
    text: str
    """The beginning of the message."""


class Observation(Struct, frozen=True):
    """Something that happened to a cluster, and is no violation. Times are on the run's clock, in microseconds."""

    kind: ObservationKind
    run: str
    start_us: int
    end_us: int
    is_open: bool
    """It lasted to the end of the logs."""
    members: tuple[str, ...]
    headline: str
    """In a few words, with who, how often and how long."""
    detail: str
    cause: str
    """What usually causes it."""
    remedy: str
    """What usually mends it."""
    evidence: tuple[EvidenceLine, ...]
    evidence_lines: int
    """How many lines show it; `evidence` may be shorter."""
    start_utc: int = 0
    end_utc: int = 0


class LogEnds(Struct, frozen=True):
    """How long the logs of a run go on, and those of each member, on the run's clock."""

    end_us: int
    members: dict[str, int] = {}

    def of(self, *members: str) -> int:
        """When the last of these members spoke last; the end of all logs where nothing is known of them."""
        return max((self.members[one] for one in members if one in self.members), default=self.end_us)


class Observer(Protocol):
    """Looks for one kind of trouble in what the members of one run say, message by message in the order of time."""

    def take(self, told: ToldMessage) -> None:
        """One more message."""

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Nothing more comes: what was observed."""


class EvidenceLines:
    """Collects the lines that show something, and keeps a few of them."""

    def __init__(self, lines: Iterable[ToldMessage] = ()) -> None:
        self.count = 0
        self._first: list[EvidenceLine] = []
        self._last: EvidenceLine | None = None
        for line in lines:
            self.add(line)

    def add(self, told: ToldMessage) -> None:
        """The message shows it."""
        self.count += 1
        line = evidence_line(told)
        if len(self._first) < MAX_EVIDENCE - 1:
            self._first.append(line)
        else:
            self._last = line

    @property
    def kept(self) -> tuple[EvidenceLine, ...]:
        """The first lines, and the last."""
        return (*self._first, *([self._last] if self._last else []))


def evidence_line(told: ToldMessage) -> EvidenceLine:
    """Where a message stands, and how it begins."""
    place = told.place
    text = " ".join(place.text.split())[:_TEXT_CHARACTERS]
    return EvidenceLine(place.file, place.line, place.utc, place.member, text)


def records_of_kind(told: ToldMessage, kind: type[_Kind]) -> list[tuple[Record, _Kind]]:
    """The records of a message whose events are of a kind."""
    return [(record, record.event) for record in told.records if isinstance(record.event, kind)]


def has_ended(told: ToldMessage) -> bool:
    """Whether the member's incarnation ends here: it stops, or goes on as another one after a merge."""
    return any(isinstance(record.event, MemberMerging | MemberStopped) for record in told.records)


def times(count: int) -> str:
    """How often, in words."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def lasted(us: int) -> str:
    """A span of time in words, in two units at most."""
    if us < 10 * SECOND_US:
        return f"{us / SECOND_US:.1f} s"
    seconds = round(us / SECOND_US)
    if seconds < 120:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 120:
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in words: all of them, or the first and how many more."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
