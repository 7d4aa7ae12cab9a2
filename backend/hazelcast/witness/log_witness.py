"""What members log, line by line as it is written: the events that only a log shows, and when they happened by our own clock.

A list that a member both logs and reports to its clients shows how far its clock is from ours. Before there is one, a line that
was just written shows nearly the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from statistics import median_low
from typing import NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.witnessed import events as witnessed
from quarterdeck.backend.hazelcast.logs.interpretation import EventReconstruction
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import FileContext, Message, MessageAssembler
from quarterdeck.backend.hazelcast.logs.patterns.matching import match_message

ONLY_LOGGED: tuple[type, ...] = (
    events.SuspicionRaised, events.SuspicionCleared, events.ExplicitSuspicionReceived, events.DisconnectionReported,
    events.ClaimStarted, events.ClaimAnswered, events.ClaimFinished, events.MergeVerdict, events.MergeStarted,
    events.MergeAbandoned, events.MemberMerging, events.MemberStopped, events.MemberRemoved, events.JoinRequested,
    events.JoinFailed, events.AddressUnusable, events.ListRejected, events.ObserverPaused, events.HeartbeatLate,
    witnessed.InvocationsSlow, witnessed.JoinerRefused, witnessed.LeaveRequested, witnessed.MigrationsRemaining,
    witnessed.MigrationFailed,
)  # fmt: skip
"""What the connection does not report. A log shows everything else later and no better."""

SAMPLES = 15
LISTS_REMEMBERED = 64


class Logged(NamedTuple):
    """An event that a member logged, and when by its own clock, in microseconds of UTC."""

    member: Address
    uuid: str
    utc_us: int
    event: Event


class LogWitness:
    """Reads the lines of one stream, which may be those of several members, in the order in which they were written."""

    def __init__(self, member: Address | None = None) -> None:
        """Begin. `member` writes the lines that do not name a member."""
        self._member = member
        self._assembler = MessageAssembler(FileContext())
        self._members: dict[Address, EventReconstruction] = {}
        self._offset = self._number = 0

    def add_line(self, line: str) -> Iterator[Logged]:
        """Yield the events of the messages that end before `line`."""
        for found in self._assembler.add_line(self._offset, self._number, f"{line}\n"):
            if isinstance(found, Message):
                yield from self._message(found)
        self._offset += len(line.encode(errors="replace")) + 1
        self._number += 1

    def flush(self) -> Iterator[Logged]:
        """Yield the events of messages that are complete because no lines have come for a while."""
        for found in self._assembler.end():
            if isinstance(found, Message):
                yield from self._message(found)

    def _message(self, message: Message) -> Iterator[Logged]:
        only_speaker = next(iter(self._members)) if len(self._members) == 1 else None  # diagnostics name no member
        member = message.member or self._member or only_speaker
        matched = match_message(message.text, message.logger) if message.ours else None
        if member is None or matched is None or message.utc is None or message.dateless:
            return
        reconstruction = self._members.setdefault(member, EventReconstruction("logs", member, 0))
        for record in reconstruction.apply(message.utc, message.utc, matched.parsed, message.thread):
            yield Logged(member, record.uuid, record.utc, record.event)


class LogClocks:
    """How far our clock is ahead of that of each member's log."""

    def __init__(self) -> None:
        self._lists: dict[tuple[Address, str, int], int] = {}
        self._samples: dict[Address, deque[int]] = {}
        self._at_most: dict[Address, int] = {}

    def heard(self, member: Address, installed: ListInstalled, utc_us: int) -> None:
        """Record when the connection reported a list, by our clock."""
        self._pair(member, installed, utc_us, 1)

    def logged(self, member: Address, installed: ListInstalled, utc_us: int) -> None:
        """Record when the member logged a list, by its clock."""
        self._pair(member, installed, utc_us, -1)

    def read(self, member: Address, logged_us: int, now_us: int) -> None:
        """Record that a line was read now. It cannot have been written later."""
        self._at_most[member] = min(now_us - logged_us, self._at_most.get(member, now_us - logged_us))

    def ahead_us(self, member: Address) -> int:
        """Return what to add to a time of its log."""
        samples = self._samples.get(member)
        return median_low(samples) if samples else self._at_most.get(member, 0)

    def _pair(self, member: Address, installed: ListInstalled, utc_us: int, sign: int) -> None:
        name = (member, installed.lineage, installed.version)
        other = self._lists.get(name)
        if other is not None and other * sign < 0:
            del self._lists[name]
            self._samples.setdefault(member, deque(maxlen=SAMPLES)).append(sign * utc_us + other)
            return
        self._lists[name] = sign * utc_us
        while len(self._lists) > LISTS_REMEMBERED:
            del self._lists[next(iter(self._lists))]
