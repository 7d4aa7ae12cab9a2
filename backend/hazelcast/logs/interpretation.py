"""What the members of a run logged, in the order of time: what each message means and the records that it makes.

The records are of the same kinds as in our own journals. Each incarnation begins with `MemberWitnessed`, which says what logs
contain of it at all. What a log does not contain within that, and what stands there instead:

* `Member.join_version` is 0 and `Member.zone` empty: printed lists have neither.
* `ListInstalled.lineage` is the uuid of the list's first member. The product has no lineages, but its master is always the first
  of the list, and an incarnation that has become master remains so until it ends, for it can only cease by a merge, which gives
  it a new uuid. So the lists of one lineage are exactly those that one master made, and `author` is that master.
* Lists printed without a version (before 3.9) count from 1 within an incarnation, in a lineage of its own: nothing is
  concluded from comparing them with those of others.
* An incarnation that never printed its uuid gets one that begins with ``unknown-``, the same in every reading of the same lines.
  Where a member comes back under a uuid that it had before (persistence), its records go on in the same incarnation, and the
  lineages that it names get ``#2``.
* `MemberStarted.join_list` is empty. `ExplicitSuspicionReceived.heeded` is whether the suspicion is logged next, in the same
  thread where threads are logged.
* A claimant does not log the answers that it gets. The members on the list of its claim have accepted, and the version in
  `ClaimAnswered` is 0.
* A removal for which the master gives no reason has that of the connection to the member that was closed just before.
* Nothing is recorded of partition tables and single migrations: no message names the version of a table. How many migrations a
  master planned and completed is in the run's story (`observations.story`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from itertools import groupby
from math import inf
from typing import Any, TypeVar

from msgspec import Struct, structs

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import WITNESSED_FORM, Event, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import Aspect, ConnectionChanged, MemberWitnessed
from quarterdeck.backend.hazelcast.last_words import LastWords, after_log
from quarterdeck.backend.hazelcast.logs import parsed_messages as logged
from quarterdeck.backend.hazelcast.logs.incarnation_state import IncarnationState
from quarterdeck.backend.hazelcast.logs.log_set import LogSet, MemberMessage
from quarterdeck.backend.hazelcast.logs.patterns.matching import match_message

LOGGED_ASPECTS: tuple[Aspect, ...] = ("suspicions", "claims", "merge-verdicts", "losses", "cluster-state")
"""What a log shows of an incarnation that it has from its start, beside its lists.

Of another one the last is unknown: only changes of the cluster's state are logged, and the last may be older than the log.
"""
UNKNOWN_UUID_PREFIX = "unknown-"
_ROTATED = re.compile(r"\.(\d{1,4})(?:\.gz)?$")
_REST_US = 6 * SECOND_US
"""How long before a gap in heartbeats a member may have begun to start or merge."""
MAX_PENDING_EVENTS = 4096
"""Events of an incarnation that wait for its uuid."""


class EventReconstruction:
    """Makes records of what one member logged, in order. Call `end` when no more messages come."""

    def __init__(self, run: str, member: str, run_began_us: int) -> None:
        self._run = run
        self._member = member
        self._began = run_began_us
        self._incarnations = 0
        self._seen: Counter[str] = Counter()
        self._seqs: Counter[str] = Counter()
        self._now = self._utc = 0
        self._latest = 0, 0
        """The times of the message before."""
        self.uuid = ""
        """That of the present incarnation, as far as it is known."""
        self._pending: list[tuple[int, int, Event]] = []
        self._state = IncarnationState(Address(member))
        self._start_emitted = False
        self._merging_to: Address | None = None
        self._stopping = ""
        self._has_logged = False
        self._next_uuid = ""
        self._rested_us = -inf
        """When it last started, merged, or was about to."""

    def apply(self, at_us: int, utc: int, parsed: logged.ParsedMessage, thread: str = "") -> Iterator[Record]:
        """Apply a message and yield its records. `utc` and `at_us` are in microseconds since 1970.

        `at_us` is the time of the message without the steps back of a clock; `thread` logged it, if that is known.
        """
        self._now, self._utc = max(self._now, at_us - self._began), utc
        for event in self._state.resolve_pending_suspicion(parsed, thread, self._now):
            yield from self._emit(event)
        match parsed:
            case logged.LoggedStart():
                yield from self._start("")
            case logged.LoggedLifecycle(state="STARTING"):
                if not self._start_emitted or self.uuid:
                    yield from self._start("")
            case logged.LoggedLifecycle(state="SHUTTING_DOWN"):
                self._stopping = self._stopping or "asked to shut down"
            case logged.LoggedLifecycle(state="SHUTDOWN"):
                self._stopping = self._stopping or "shut down"
                yield from self._stop()
            case logged.LoggedShutdown(reason=reason):
                self._stopping = self._stopping or reason
            case logged.LoggedMergeOrder(target=target):
                self._merging_to = target
            case logged.LoggedUuidReset(previous=previous, next=next_uuid):
                if not self.uuid and not self._next_uuid:
                    yield from self._learn_uuid(previous)
                yield from self._change_uuid(next_uuid)
            case logged.LoggedMemberList():
                yield from self._list(parsed)
            case logged.LoggedClaimRequest(version=version, members=members) if members and not self._state.has_list:
                held = (structs.replace(member, this=member.address == self._state.address) for member in members)
                yield from self._list(logged.LoggedMemberList(version, tuple(held)), is_claimed=True)
                for event in self._state.events_of(parsed, thread, self._now):
                    yield from self._emit(event)
            case logged.LoggedClockJump(gap_us=gap) if self._rested_us + _REST_US >= self._now - gap:
                pass  # nothing jumped: it sent no heartbeats while it started or merged
            case _:
                for event in self._state.events_of(parsed, thread, self._now):
                    yield from self._emit(event)
        if isinstance(parsed, logged.LoggedStart | logged.LoggedLifecycle | logged.LoggedUuidReset):
            self._rested_us = self._now
        self._has_logged = True
        self._latest = self._now, self._utc

    def end(self, until_us: int = 0, known: ConnectionChanged | None = None) -> Iterator[Record]:
        """End the last incarnation of the member, which logged until `until_us`.

        `known` is what the others show of it after that; nothing where its last words may hold still.
        """
        for event in self._state.resolve_pending_suspicion(None, "", self._now):
            yield from self._emit(event)
        if known is not None and not self._stopping:
            now = max(self._now, until_us - self._began)
            self._utc, self._now = self._utc + now - self._now, now
            yield from self._emit(known)
        yield from self._close()

    def _start(self, merged_from: str) -> Iterator[Record]:
        if self._has_logged:
            begins = self._now, self._utc
            self._now, self._utc = self._latest  # the one before ended with its last words, not when the next begins
            yield from self._close()
            self._now, self._utc = begins
        self._start_emitted = True
        yield from self._emit(events.MemberStarted(self._state.address, False, (), merged_from))

    def _stop(self) -> Iterator[Record]:
        if self._stopping:
            yield from self._emit(events.MemberStopped(self._stopping))
        self._stopping = ""

    def _close(self) -> Iterator[Record]:
        """End the incarnation. Events that wait for its uuid get a substitute."""
        yield from self._stop()
        if self._pending:
            yield from self._learn_uuid(self._next_uuid or self._substitute_uuid())
        self._incarnations += 1
        self.uuid = self._next_uuid = ""
        self._start_emitted = self._has_logged = False
        self._merging_to = None
        self._state = IncarnationState(self._state.address)

    def _substitute_uuid(self) -> str:
        text = f"{self._run}\n{self._member}\n{self._incarnations}"
        return f"{UNKNOWN_UUID_PREFIX}{sha256(text.encode(errors='replace')).hexdigest()[:16]}"

    def _learn_uuid(self, uuid: str) -> Iterator[Record]:
        """Record what has waited for the uuid of the incarnation."""
        self.uuid = uuid
        self._seen[uuid] += 1
        self._state.reuse_count = self._seen[uuid]
        pending, self._pending = self._pending, []
        if not self._seqs[uuid]:
            now, utc, first = pending[0] if pending else (self._now, self._utc, None)
            aspects = LOGGED_ASPECTS if isinstance(first, events.MemberStarted) else LOGGED_ASPECTS[:-1]
            yield self._record(now, utc, MemberWitnessed(("logs",), aspects))
        for now, utc, event in pending:
            yield self._record(now, utc, event)

    def _change_uuid(self, uuid: str) -> Iterator[Record]:
        """Continue as another incarnation: after a merge, or because the member's data was discarded."""
        before, target = self.uuid or self._next_uuid, self._merging_to
        if target is not None:
            yield from self._emit(events.MemberMerging(target, uuid))
        elif before:
            yield from self._emit(events.MemberStopped("its uuid was reset"))
        yield from self._close()
        yield from self._start(before if target is not None else "")
        self._next_uuid = uuid

    def _list(self, printed: logged.LoggedMemberList, *, is_claimed: bool = False) -> Iterator[Record]:
        """Record a list; one of the time before a claim that has begun leaves the claimant as master."""
        this = next((member for member in printed.members if member.this), None)
        if this is not None:
            self._state.address = this.address
            yield from self._identify(this)
        members = tuple(self._listed(member) for member in printed.members)
        version, lineage = self._state.version_and_lineage_of(printed.version, members, self.uuid or self._next_uuid)
        if not self._state.is_new(lineage, version, members):
            return
        master = members[0].address
        change = self._state.change_of(members)
        claimant = self._state.master if is_claimed else None
        if claimant is None and self._state.master != master:
            yield from self._emit(events.MasterChanged(master, f"{master} is the first of the list"))
        self._state.install(lineage, version, members)
        self._state.master = claimant or master
        yield from self._emit(events.ListInstalled(version, lineage, master, members, master, "unknown", change))

    def _identify(self, this: logged.MemberMention) -> Iterator[Record]:
        uuid = this.uuid or self._next_uuid or self.uuid or self._substitute_uuid()
        if self.uuid and uuid != self.uuid and this.uuid:
            yield from self._change_uuid(uuid)
        if not self.uuid:
            if this.lite:
                self._pending = [
                    (now, utc, structs.replace(event, lite=True) if isinstance(event, events.MemberStarted) else event)
                    for now, utc, event in self._pending
                ]
            yield from self._learn_uuid(uuid)

    def _listed(self, member: logged.MemberMention) -> Member:
        known = member.uuid or (self.uuid if member.this else f"{UNKNOWN_UUID_PREFIX}{member.address}")
        return Member(member.address, known, 0, member.lite)

    def _emit(self, event: Event) -> Iterator[Record]:
        if self.uuid:
            yield self._record(self._now, self._utc, event)
            return
        self._pending.append((self._now, self._utc, event))
        if len(self._pending) > MAX_PENDING_EVENTS:
            yield from self._learn_uuid(self._next_uuid or self._substitute_uuid())

    def _record(self, now: int, utc: int, event: Event) -> Record:
        self._seqs[self.uuid] += 1
        return Record(self._run, self._member, self.uuid, self._seqs[self.uuid], now, utc, event, form=WITNESSED_FORM)


_Kind = TypeVar("_Kind", bound=Event)
_NONE: list[Any] = []


class InterpretedMessage(Struct, frozen=True, gc=False):
    """A message of a member with its place, what it means, and the records that became known with it."""

    place: MemberMessage
    at: int
    """Microseconds on the run's clock."""
    parsed: logged.ParsedMessage
    records: tuple[Record, ...]
    kinds: dict[type, list[Any]]
    """The events of the records, by class: each of many observers asks for a few."""

    @classmethod
    def of(
        cls, place: MemberMessage, at: int, parsed: logged.ParsedMessage, records: tuple[Record, ...]
    ) -> InterpretedMessage:
        kinds: dict[type, list[Any]] = {}
        for record in records:
            kinds.setdefault(type(record.event), []).append(record.event)
        return cls(place, at, parsed, records, kinds)

    @property
    def member(self) -> str:
        return self.place.member

    def events(self, kind: type[_Kind]) -> list[_Kind]:
        found: list[_Kind] = self.kinds.get(kind, _NONE)
        return found

    @property
    def ends_incarnation(self) -> bool:
        """Whether the member stops here, or goes on as another incarnation after a merge."""
        return events.MemberMerging in self.kinds or events.MemberStopped in self.kinds


def sort_messages(placed: list[MemberMessage]) -> None:
    """Sort by run, then by time; at the same time the member that logged first comes first, and each keeps its order."""
    firsts: dict[str, int] = {}
    for message in placed:
        firsts[message.member] = min(message.at_us, firsts.get(message.member, message.at_us))
    placed.sort(
        key=lambda one: (one.run, one.at_us, firsts[one.member], one.member, one.file_us, *_age(one.file), one.rank)
    )


@lru_cache(maxsize=4096)
def _age(file: str) -> tuple[int, str]:
    """Return what sorts files that begin at one time: of rotated ones, the greatest number is the oldest."""
    found = _ROTATED.search(file)
    return -int(found[1]) if found else 0, file


def interpret_messages(placed: Iterable[MemberMessage], whole: LogSet) -> Iterator[InterpretedMessage]:
    """Interpret messages that `sort_messages` has sorted. Those of one member are in the order in which it logged them."""
    for run, messages in groupby(placed, key=lambda message: message.run):
        interpreter = MessageInterpreter(run, whole.run_began_us(run))
        for message in messages:
            yield from interpreter.interpret(message)
        yield from interpreter.end(whole.last_logged_us(run))


class MessageInterpreter:
    """Interprets what the members of one run logged, in order. Call `end` when no more messages come.

    Logs that were copied, or written to two files at once, repeat everything: a repeated message counts once.
    """

    def __init__(self, run: str, began_us: int) -> None:
        self._run = run
        self._began_us = began_us
        self._members: dict[str, EventReconstruction] = {}
        self._lasts: dict[str, MemberMessage] = {}
        self._last_words = LastWords()
        self._at_us: int | None = None
        self._files: dict[tuple[str, str], dict[str, int]] = {}
        """By member and text of messages at `_at_us`: how often each file has it."""

    def interpret(self, message: MemberMessage) -> Iterator[InterpretedMessage]:
        """Yield the message with its records, or nothing when another file had it already or no pattern fits."""
        if self._is_repeated(message):
            return
        parsed = message.parsed
        if parsed is None:
            if (matched := match_message(message.text, message.logger)) is None:
                return
            parsed = matched.parsed
        if message.member not in self._members:
            self._members[message.member] = EventReconstruction(self._run, message.member, self._began_us)
        records = tuple(self._members[message.member].apply(message.at_us, message.utc, parsed, message.thread))
        for record in records:
            self._last_words.add(record)
        self._lasts[message.member] = message
        yield InterpretedMessage.of(message, message.at_us - self._began_us, parsed, records)

    def end(self, last_logged_us: Mapping[str, int]) -> Iterator[InterpretedMessage]:
        """Yield what is known of each member when no more messages come. `last_logged_us`: when it logged last."""
        for name, member in self._members.items():
            last = self._lasts[name]
            at_us = last.at_us - self._began_us
            until_us = max(last_logged_us.get(name, 0), at_us)
            known = after_log(self._last_words.standing(name, member.uuid, last_logged_us), until_us)
            records = tuple(member.end(self._began_us + until_us, known))
            yield InterpretedMessage.of(last, at_us, logged.NoEvent(), records)

    def _is_repeated(self, message: MemberMessage) -> bool:
        if message.at_us != self._at_us:
            self._at_us = message.at_us
            self._files.clear()
        files = self._files.setdefault((message.member, message.text), {})
        files[message.file] = times = files.get(message.file, 0) + 1
        return not all(times > others for file, others in files.items() if file != message.file)
