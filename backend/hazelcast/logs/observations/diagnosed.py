"""What the product's diagnostics show, where an operator has turned them on: late heartbeats, and invocations that wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quarterdeck.backend.core.membership.events import HeartbeatLate
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import InvocationsSlow
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.hazelcast.logs.observations.observation import (
    LogEnds,
    Observation,
    ObservationEvidence,
    ObservationKind,
    lasted,
    observation,
)

QUIET_US = 15 * SECOND_US
"""What is not written again for so long is over: invocations are sampled every 10 seconds."""


@dataclass
class _Lateness:
    """The same trouble of one member, written again and again."""

    kind: ObservationKind
    members: tuple[str, ...]
    first: InterpretedMessage
    last: InterpretedMessage
    worst_us: int = 0
    what: str = ""
    evidence: ObservationEvidence = field(default_factory=ObservationEvidence)


class Diagnosed:
    """Collects what is late at each member, and since when."""

    reads = (HeartbeatLate, InvocationsSlow)

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], _Lateness] = {}
        self._ended: list[_Lateness] = []

    def add(self, message: InterpretedMessage) -> None:
        for late in message.events(HeartbeatLate):
            members = (message.member, str(late.address))
            if late.over:
                self._end(("late-heartbeats", *members))
            else:
                self._note(message, "late-heartbeats", members, late.silence, "")
        for slow in message.events(InvocationsSlow):
            what = f"{slow.operation} at {slow.target or 'an unknown member'}"
            self._note(message, "slow-invocations", (message.member,), slow.waited, what)

    def _note(
        self, message: InterpretedMessage, kind: ObservationKind, members: tuple[str, ...], late_us: int, what: str
    ) -> None:
        name = (kind, *members)
        if name in self._open and message.at - self._open[name].last.at > QUIET_US:
            self._end(name)
        spell = self._open.setdefault(name, _Lateness(kind, members, message, message))
        spell.last = message
        spell.evidence.add(message)
        if late_us >= spell.worst_us:
            spell.worst_us, spell.what = late_us, what

    def _end(self, name: tuple[str, ...]) -> None:
        if (spell := self._open.pop(name, None)) is not None:
            self._ended.append(spell)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return what was late, and for how long."""
        for spell in (*self._ended, *self._open.values()):
            until_us = ends.of(spell.members[0])
            is_open = spell not in self._ended and until_us - spell.last.at <= QUIET_US
            yield _observed(spell, until_us if is_open else spell.last.at, is_open=is_open)


def _observed(spell: _Lateness, end_us: int, *, is_open: bool) -> Observation:
    member, worst = spell.members[0], lasted(spell.worst_us)
    if spell.kind == "late-heartbeats":
        headline = f"{member} heard nothing of {spell.members[1]} for {worst}"
        cause = "The other one stood still or is overloaded, or the network between the two loses packets."
        remedy = (
            "See whether other members miss it too: then look at its process (garbage, processor, swap), else at the link "
            "between these two. It is suspected after hazelcast.max.no.heartbeat.seconds."
        )
    else:
        headline = f"invocations of {member} wait, {spell.what} for {worst}"
        cause = "The member that is called, or one that keeps a backup for it, is slow or out of reach; or calls are too many."
        remedy = (
            "Look at the member that is called: its queue of operations, pauses, slow entry processors and queries. A call that "
            "waits for a backup names the owner: look at its backups, too."
        )
    return observation(
        spell.kind, spell.members, headline, detail="By the diagnostics that the member writes.", cause=cause, remedy=remedy,
        evidence=spell.evidence, first=spell.first, last=spell.last, end_us=end_us, is_open=is_open,
    )  # fmt: skip
