"""What waits: members that leave or join, a cluster that is not ACTIVE, heartbeats, and invocations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from quarterdeck.backend.core.address import host_of
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed import events as witnessed
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.judgement.observations.observation import (
    LogEnds,
    LogEvidence,
    Observation,
    ObservationKind,
    observation,
)
from quarterdeck.backend.judgement.observations.wording import lasted, times

WAITS_US = 30 * SECOND_US
"""A member that takes longer to leave waits."""
FROZEN_US = 60 * SECOND_US
"""A state that lasts longer is not that of a merge, which freezes the cluster for a moment."""


@dataclass
class _Leaving:
    """A member that asked its master to let it leave, and has not left."""

    asked: InterpretedMessage
    evidence: LogEvidence = field(default_factory=LogEvidence)
    remaining: list[int] = field(default_factory=list)
    failed: int = 0

    @property
    def master(self) -> str:
        return self.asked.member


class WaitingShutdowns:
    """Follows members that ask their master to let them leave, until they have left, and what the master does meanwhile."""

    def __init__(self) -> None:
        self._leaving: dict[str, _Leaving] = {}
        self._ended: list[tuple[str, _Leaving, InterpretedMessage]] = []

    def add(self, message: InterpretedMessage) -> None:
        for asked in message.events(witnessed.LeaveRequested):
            leaving = self._leaving.setdefault(str(asked.address), _Leaving(message))
            leaving.evidence.add(message)
        for leaving in self._leaving.values():
            if leaving.master != message.member:
                continue
            for remaining in message.events(witnessed.MigrationsRemaining):
                leaving.remaining.append(remaining.count)
                leaving.evidence.add(message)
            for _ in message.events(witnessed.MigrationFailed):
                leaving.failed += 1
                leaving.evidence.add(message)
        if message.events(events.MemberStopped):
            self._end(message.member, message)
            for member in [name for name, leaving in self._leaving.items() if leaving.master == message.member]:
                del self._leaving[member]  # what its next master does begins anew
        for removed in message.events(events.MemberRemoved):
            self._end(str(removed.address), message)

    def _end(self, member: str, message: InterpretedMessage) -> None:
        leaving = self._leaving.pop(member, None)
        if leaving is not None and message.at - leaving.asked.at >= WAITS_US:
            self._ended.append((member, leaving, message))

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return for each member that waited how long, for whom, and for how many migrations."""
        for member, leaving, message in self._ended:
            yield _waiting(member, leaving, message.at, lasted(message.at - leaving.asked.at))
        for member, leaving in self._leaving.items():
            until_us = ends.of(leaving.master)
            if until_us - leaving.asked.at >= WAITS_US:
                waited = f"{lasted(until_us - leaving.asked.at)}, {ends.words}"
                yield _waiting(member, leaving, until_us, waited, is_open=True)


def _waiting(member: str, leaving: _Leaving, until_us: int, waited: str, *, is_open: bool = False) -> Observation:
    counts = leaving.remaining
    left = f"; {counts[-1]} migrations were left" if counts else ""
    known = f"It had {counts[0]} migrations left at first and {counts[-1]} at last" if counts else ""
    stuck = len(counts) > 1 and min(counts) == counts[0]
    failed = f"Migrations failed {times(leaving.failed)} meanwhile" if leaving.failed else ""
    detail = ". ".join(filter(None, (known, failed))) or "The master does not say how many migrations are left"
    return observation(
        "shutdown-waits",
        (member, leaving.master),
        f"{member} waited for its master {leaving.master} to let it leave: {waited}{left}",
        detail=f"{detail}.",
        cause="Migrations do not get on: a member fails to take partitions, or does not answer."
        if stuck or leaving.failed
        else "A graceful stop waits until the master has moved the member's partitions; much data takes long.",
        remedy="Do not kill it while migrations go on: what it alone holds would be lost. Look at the members that the failed "
        "migrations name. It gives up by itself after hazelcast.graceful.shutdown.max.wait (600 s); give its "
        "supervisor more time than that (terminationGracePeriodSeconds, TimeoutStopSec).",
        evidence=leaving.evidence,
        end_us=until_us,
        is_open=is_open,
    )


class _StateSpell(NamedTuple):
    began: InterpretedMessage
    changed: events.ClusterStateChanged


class FrozenStates:
    """Follows the state of the cluster at each member, where it is not ACTIVE for long. One spell of all members is one."""

    def __init__(self) -> None:
        self._states: dict[str, _StateSpell] = {}
        self._ended: list[tuple[str, _StateSpell, InterpretedMessage]] = []

    def add(self, message: InterpretedMessage) -> None:
        if message.ends_incarnation:
            self._end(message.member, message)
        for changed in message.events(events.ClusterStateChanged):
            spell = self._states.get(message.member)
            if spell is not None and spell.changed.state == changed.state:
                continue
            self._end(message.member, message)
            if changed.state != "ACTIVE":
                self._states[message.member] = _StateSpell(message, changed)

    def _end(self, member: str, message: InterpretedMessage) -> None:
        spell = self._states.pop(member, None)
        if spell is not None and message.at - spell.began.at >= FROZEN_US:
            self._ended.append((member, spell, message))

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return each time in which the cluster was in another state than ACTIVE for long."""
        found = [(member, spell, message.at, False) for member, spell, message in self._ended]
        found += [
            (member, spell, ends.of(member), True)
            for member, spell in self._states.items()
            if ends.of(member) - spell.began.at >= FROZEN_US
        ]
        found.sort(key=lambda one: one[1].began.at)
        while found:
            _, first, first_end_us, _ = found[0]
            state, reason = first.changed.state, first.changed.reason
            same = [spell for spell in found if spell[1].changed.state == state and spell[1].began.at <= first_end_us]
            found = [spell for spell in found if spell not in same]
            end_us, is_open = max(spell[2] for spell in same), any(spell[3] for spell in same)
            spent = f"{lasted(end_us - first.began.at)}{f', {ends.words}' if is_open else ''}"
            yield observation(
                "frozen",
                sorted(member for member, *_ in same),
                f"the cluster was {state}: {spent}",
                detail=f"{reason[:1].upper()}{reason[1:]}." if reason else "No member says who changed it.",
                cause=_STATES.get(state, "")
                + "An operator or an orchestrator set it and did not set it back, or a merge "
                "or a shutdown that froze the cluster was given up half-way.",
                remedy="Set it back before a member that went meanwhile is started again: quarterdeck cluster state ACTIVE, or "
                "at a member: hz-cluster-admin -o change-state -s ACTIVE.",
                evidence=[spell.began for _, spell, _, _ in same],
                end_us=end_us,
                is_open=is_open,
            )


_STATES = {
    "FROZEN": "New members are refused, partitions of members that leave are not given to others, and a member that is started "
    "again begins empty in spite of backups. ",
    "PASSIVE": "Members refuse nearly all operations of clients, and no new member joins. ",
    "NO_MIGRATION": "Members join and leave, but no partition moves to those that join and no backup is copied again: each "
    "further member that goes takes data with it. ",
}


class RefusedJoins:
    """Collects the members that a master did not let in, or that gave up joining, and why."""

    def __init__(self) -> None:
        self._refused: dict[str, list[tuple[InterpretedMessage, str]]] = {}
        self._admitted: dict[str, int] = {}

    def add(self, message: InterpretedMessage) -> None:
        for refused in message.events(witnessed.JoinerRefused):
            self._refused.setdefault(str(refused.joiner), []).append((message, refused.reason))
        for failed in message.events(events.JoinFailed):
            self._refused.setdefault(message.member, []).append((message, "; ".join(failed.reasons.values())))
        for installed in message.events(events.ListInstalled):
            if len(installed.members) > 1:
                self._admitted.update(dict.fromkeys((str(member.address) for member in installed.members), message.at))

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return for each member that was refused why, in the words of the master, and which setting differs."""
        for joiner, found in self._refused.items():
            messages = [message for message, _ in found]
            reason, differs, remedy = min((_refusal(reason) for _, reason in found), key=lambda known: not known[1])
            admitted = self._admitted.get(joiner, -1) >= messages[-1].at
            others = sorted({message.member for message in messages} - {joiner})
            what = f": {differs}" if differs else ""
            yield observation(
                "join-refused",
                (joiner, *others),
                f"{joiner} was refused {times(len(messages))}{what}{'; it joined later' if admitted else ''}",
                detail=f"“{reason}”",
                cause="A master compares the configuration of a member that asks to join with its own, and lets in only what "
                "fits. A member that is refused shuts itself down, or founds a cluster of its own.",
                remedy=remedy,
                evidence=messages,
                is_open=not admitted and ends.of(*others) <= messages[-1].at,
            )


class UnresolvedNames:
    """Follows the names that have no address for members that look for others under them, until these are not alone."""

    def __init__(self) -> None:
        self._open: dict[str, dict[str, list[InterpretedMessage]]] = {}
        self._ended: dict[str, list[InterpretedMessage]] = {}

    def add(self, message: InterpretedMessage) -> None:
        for unusable in message.events(events.AddressUnusable):
            if unusable.cause == "unresolvable":
                self._open.setdefault(host_of(unusable.address), {}).setdefault(message.member, []).append(message)
        if any(len(installed.members) > 1 for installed in message.events(events.ListInstalled)):
            for host, members in self._open.items():
                self._ended.setdefault(host, []).extend(members.pop(message.member, ()))

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return for each name which members could not resolve it."""
        for host in {**self._open, **self._ended}:
            waiting = self._open.get(host, {})
            messages = sorted([*self._ended.get(host, ()), *chain(*waiting.values())], key=lambda one: one.at)
            if not messages:
                continue
            members = sorted({message.member for message in messages})
            until_us = ends.of(*waiting) if waiting else messages[-1].at
            yield observation(
                "name-unresolved",
                members,
                f"{host} has no address for {', '.join(members)}{'' if waiting else '; they found others later'}",
                detail=f"It was looked up in vain {times(len(messages))}.",
                cause="DNS did not answer in time, or knows no pods: the service selects none, or only ready ones, and none is "
                "ready before it has joined. A member that finds no other founds a cluster of its own.",
                remedy=f"Look the name up where the member runs: getent ahosts {host}. The service has to be headless, to select "
                "all members and to publish those that are not ready (publishNotReadyAddresses). When DNS answers, masters find "
                "each other at their next search and merge; hazelcast.merge.first.run.delay.seconds says when.",
                evidence=messages,
                end_us=until_us,
                is_open=bool(waiting),
            )


_REFUSALS = (
    ("joiners", "the joiners differ (hazelcast.network.join)",
     "Give all members the same network.join section: one of tcp-ip, multicast, kubernetes or a cloud's."),
    ("partition group", "the partition groups differ (hazelcast.partition-group)",
     "Give all members the same partition-group: enabled or not, and the same group-type."),
    ("partition count", "the numbers of partitions differ (hazelcast.partition.count)",
     "Give all members the same hazelcast.partition.count. It can be changed only while no member runs."),
    ("validation.token", "the validation tokens differ (hazelcast.application.validation.token)",
     "Give all members the same hazelcast.application.validation.token, or none."),
    ("different cluster", "the names of the clusters differ (cluster-name)",
     "If they belong together, give them the same cluster-name; else leave its address off the join list."),
    ("version", "the versions do not fit",
     "Start it with the version of the others, or stop all and start all with the new one: members of two minor "
     "versions form one cluster only where rolling upgrades are licensed."),
    ("cluster state", "the state of the cluster lets no member join",
     "Set the cluster ACTIVE, and only then start the member again: in another state it would begin empty."),
    ("wrong bind request", "it connects to another address than the member's own",
     "Give that member the address under which others reach it, as public-address, or interfaces that name its own: it has to be "
     "the one on their join lists."),
    ("kubernetes api access is forbidden", "its service account may not ask Kubernetes for members",
     "Give its service account the role that may get endpoints, pods, nodes and services (the RBAC file of the product's "
     "documentation), then restart it: it runs as a cluster of its own."),
    ("couldn't join to the master", "the master did not answer in time",
     "Look whether the master runs and reaches this member, and at the log of the master at that time."),
    ("authentication", "the credentials differ",
     "Give all members the same member authentication (security, cluster password or realm)."),
)  # fmt: skip
"""What a reason says, what differs then, and what helps."""


def _refusal(reason: str) -> tuple[str, str, str]:
    """Return the reason, what differs then, and what helps."""
    text = reason.lower()
    for sign, differs, remedy in _REFUSALS:
        if sign in text:
            return reason, differs, remedy
    return reason, "", "Compare its configuration with that of the members: the message says what differs."


QUIET_US = 15 * SECOND_US
"""What is not written again for so long is over: invocations are sampled every 10 seconds."""


@dataclass
class _Lateness:
    """The same trouble of one member, written again and again."""

    kind: ObservationKind
    members: tuple[str, ...]
    worst_us: int = 0
    what: str = ""
    evidence: LogEvidence = field(default_factory=LogEvidence)


class Diagnosed:
    """Collects what is late at each member, and since when."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], _Lateness] = {}
        self._ended: list[_Lateness] = []

    def add(self, message: InterpretedMessage) -> None:
        for late in message.events(events.HeartbeatLate):
            members = (message.member, str(late.address))
            if late.over:
                self._end(("late-heartbeats", *members))
            else:
                self._note(message, "late-heartbeats", members, late.silence, "")
        for slow in message.events(witnessed.InvocationsSlow):
            what = f"{slow.operation} at {slow.target or 'an unknown member'}"
            self._note(message, "slow-invocations", (message.member,), slow.waited, what)

    def _note(
        self, message: InterpretedMessage, kind: ObservationKind, members: tuple[str, ...], late_us: int, what: str
    ) -> None:
        name = (kind, *members)
        if name in self._open and message.at - self._open[name].evidence.last.at > QUIET_US:
            self._end(name)
        spell = self._open.setdefault(name, _Lateness(kind, members))
        spell.evidence.add(message)
        if late_us >= spell.worst_us:
            spell.worst_us, spell.what = late_us, what

    def _end(self, name: tuple[str, ...]) -> None:
        if (spell := self._open.pop(name, None)) is not None:
            self._ended.append(spell)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        for spell in (*self._ended, *self._open.values()):
            until_us = ends.of(spell.members[0])
            is_open = spell not in self._ended and until_us - spell.evidence.last.at <= QUIET_US
            yield _observed(spell, until_us if is_open else spell.evidence.last.at, is_open=is_open)


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
        evidence=spell.evidence, end_us=end_us, is_open=is_open,
    )  # fmt: skip
