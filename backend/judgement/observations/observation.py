"""What is observed in logs: when, of which members, the lines that show it, and what usually causes and mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol, TypeVar

from msgspec import Struct

from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.judgement.losses.loss import Loss
from quarterdeck.backend.judgement.observations.wording import quoted

ObservationKind = Literal[
    "flapping", "oscillation", "halves-apart", "lone-master", "member-lost", "lasting-suspicion", "mutual-suspicion",
    "clock-jump", "unresponsive", "claim-not-accepted", "restart", "full-stop", "partition-lost", "migration-storm",
    "zones-differ", "shutdown-waits", "frozen", "join-refused", "late-heartbeats", "slow-invocations", "name-unresolved",
]  # fmt: skip

_Item = TypeVar("_Item")

MAX_EVIDENCE = 12
"""Lines of evidence that are kept of one observation: the first ones, and the last."""


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
    """Where the logs or the recording of a run end, and until when each member was there, on the run's clock."""

    end_us: int
    members: dict[str, int] = {}
    words: str = "until the logs end"
    """How long that lasts which has not ended."""
    is_witnessed: bool = False
    """Whether a witness recorded what members report; else these are their logs."""
    losses: tuple[Loss, ...] | None = None
    """All losses that are known; None where only logs are read."""

    def of(self, *members: str) -> int:
        """Return when the last of these members logged last; the end of all logs if none of them is known."""
        return max((self.members[name] for name in members if name in self.members), default=self.end_us)


class Observer(Protocol):
    """Looks for one kind of trouble in what the members of one run log, message by message in the order of time."""

    def add(self, message: InterpretedMessage) -> None:
        """Take one more message into account."""

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return what is observed if no more messages come. It may be asked again after more of them."""


class LogEvidence:
    """The lines that show an observation: how many there are, the first ones, and the last."""

    first: InterpretedMessage
    """There is none before one is added."""
    last: InterpretedMessage

    def __init__(self, messages: Iterable[InterpretedMessage] = ()) -> None:
        self.count = 0
        self.lines: list[EvidenceLine] = []
        for message in messages:
            self.add(message)

    def add(self, message: InterpretedMessage) -> None:
        self.first, self.last = self.first if self.count else message, message
        self.count += 1
        place = message.place
        line = EvidenceLine(place.file, place.line, place.utc, place.member, quoted(message))
        if len(self.lines) == MAX_EVIDENCE:
            self.lines[-1] = line
        else:
            self.lines.append(line)

    @classmethod
    def joined(cls, parts: Sequence[LogEvidence]) -> LogEvidence:
        whole = cls()
        whole.lines = [line for part in parts for line in part.lines]
        whole.count = sum(part.count for part in parts)
        return whole


def observation(
    kind: ObservationKind,
    members: Iterable[str],
    headline: str,
    *,
    detail: str,
    cause: str,
    remedy: str,
    evidence: LogEvidence | Sequence[InterpretedMessage],
    first: InterpretedMessage | None = None,
    last: InterpretedMessage | None = None,
    start_us: int | None = None,
    end_us: int | None = None,
    is_open: bool = False,
) -> Observation:
    """Make an observation that lasts from the `first` message to the `last`, or from `start_us` and to `end_us`.

    Where they are not given, they are those of the evidence; evidence that was joined has none. `first` alone is the last, too.
    """
    if not isinstance(evidence, LogEvidence):
        evidence = LogEvidence(evidence)
    last = last or first or evidence.last
    first = first or evidence.first
    start_us = first.at if start_us is None else start_us
    end_us = last.at if end_us is None else end_us
    return Observation(
        kind, first.place.run, start_us, end_us, is_open, tuple(members), headline, detail, cause, remedy,
        tuple(evidence.lines), evidence.count, first.place.utc + start_us - first.at, last.place.utc + end_us - last.at,
    )  # fmt: skip


def consecutive_groups(items: Iterable[_Item], belongs: Callable[[list[_Item], _Item], bool]) -> list[list[_Item]]:
    """Split items, in their order, into groups: each item joins the last group if it belongs there."""
    groups: list[list[_Item]] = []
    for item in items:
        if groups and belongs(groups[-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups
