"""What a member believes during one incarnation, as far as its log shows, and the events that follow from each message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import SuspicionCause
from quarterdeck.backend.core.events import Event
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed import events as witnessed
from quarterdeck.backend.hazelcast.logs import parsed_messages as logged

_EXPLICIT = "explicit suspicion"
_NO_CONNECTION = "No connection"
_HEEDED_WITHIN_US = SECOND_US
"""How long after a request to be suspected the suspicion may be logged, where no thread shows that it belongs to the request."""
_NEIGHBOURS_US = SECOND_US
"""How long before a removal the loss of a connection explains it."""
_NOTED_AGAIN_US = SECOND_US // 2
"""Late heartbeats are written so much apart at least."""
_NOT_LATE_US = 5 * SECOND_US
"""Heartbeats that were not written to be late for so long are in time again, if anything was written meanwhile."""
_LEAVES = "it asked its master to let it leave"
_CAUSES: tuple[tuple[str, SuspicionCause], ...] = (
    ("disconnected from some", "disconnected"),
    ("master confirmation", "no-confirmation"),
    ("heartbeat", "no-heartbeat"),
    (_EXPLICIT, "asked"),
    (_LEAVES, "goodbye"),
    ("could not ping", "no-connection"),
    ("refused", "refused"),
    ("connection", "no-connection"),
)


class _Ask(NamedTuple):
    """A request to be suspected that may yet be heeded."""

    sender: Address
    thread: str
    at: int


def suspicion_cause(reason: str) -> SuspicionCause:
    """Return the cause of a suspicion or removal for which a log gives this reason."""
    text = reason.lower()
    return next((cause for words, cause in _CAUSES if words in text), "unknown")


def _heeds(parsed: logged.ParsedMessage | None, sender: Address) -> bool:
    match parsed:
        case logged.LoggedSuspicion(suspect=suspect, reason=reason):
            return suspect.address == sender and reason == _EXPLICIT
        case logged.LoggedRemoval(member=member):
            return member.address == sender
        case _:
            return False


def lineage_of(master_uuid: str, reuse_count: int) -> str:
    """Return the lineage of the lists that a master made, for the `reuse_count`-th incarnation under its uuid."""
    return master_uuid if reuse_count == 1 else f"{master_uuid}#{reuse_count}"


def change_between(before: Sequence[Member], after: Sequence[Member], hint: str = "") -> str:
    """Say what a list changes, after what is known of why."""
    former, present = set(before), set(after)
    joined = ", ".join(member.address for member in after if member not in former)
    left = ", ".join(member.address for member in before if member not in present)
    changes = [f"joined: {joined}"] * bool(joined) + [f"no longer listed: {left}"] * bool(left)
    return "; ".join([hint] * bool(hint) + changes) or "another version of the same members"


class IncarnationState:
    """The list, the master and the suspicions of one incarnation."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.reuse_count = 1
        """The number of this incarnation among those with its uuid, from 1."""
        self.master: Address | None = None
        self._members: tuple[Member, ...] = ()
        self._version_of_list: tuple[str, int] | None = None
        self._suspects: dict[tuple[Address, str], str] = {}
        self._leaving: set[tuple[Address, str]] = set()
        """The members that asked this one, as their master, to let them leave."""
        self._hint = ""
        self._asks: list[_Ask] = []
        self._failures: dict[Address, tuple[int, str]] = {}
        self._claim_asked: tuple[Address, ...] = ()
        self._merge_target: Address | None = None
        self._last_verdicts: dict[Address, events.MergeVerdict] = {}
        self._join_asks: dict[Address, int] = {}
        self._late: dict[Address, tuple[int, int]] = {}
        """Members whose heartbeats are late by diagnostics: when that was noted last, and how long nothing was heard."""
        self._slow: witnessed.InvocationsSlow | None = None

    @property
    def has_list(self) -> bool:
        """Whether a list of this incarnation was logged."""
        return bool(self._members)

    def version_and_lineage_of(
        self, version: int | None, members: tuple[Member, ...], own_uuid: str
    ) -> tuple[int, str]:
        if version is not None:
            return version, lineage_of(members[0].uuid, self.reuse_count)
        lineage = f"unversioned/{own_uuid}"
        before = self._version_of_list[1] if self._version_of_list and self._version_of_list[0] == lineage else 0
        same = members == self._members and before
        return (before if same else before + 1), lineage

    def is_new(self, lineage: str, version: int, members: tuple[Member, ...]) -> bool:
        return self._version_of_list != (lineage, version) or self._members != members

    def install(self, lineage: str, version: int, members: tuple[Member, ...]) -> None:
        self._version_of_list = (lineage, version)
        self._members = members
        self.master = members[0].address
        self._hint = ""
        listed = {(member.address, member.uuid) for member in members}
        self._suspects = {suspect: why for suspect, why in self._suspects.items() if suspect in listed}

    def change_of(self, members: tuple[Member, ...]) -> str:
        """Say what a list changes, and what was logged shortly before that explains it."""
        if not self._members:
            return self._hint or "the first list of this incarnation"
        return change_between(self._members, members, self._hint)

    def resolve_pending_suspicion(self, parsed: logged.ParsedMessage | None, thread: str, now: int) -> Iterator[Event]:
        """Yield what became of requests to be suspected: a member that heeds one logs the suspicion next, in the same thread."""
        for asked in list(self._asks):
            is_same = asked.thread == thread or not (asked.thread and thread)
            if is_same and _heeds(parsed, asked.sender):
                self._asks.remove(asked)
                if isinstance(parsed, logged.LoggedRemoval):  # a master says no more than that
                    self._suspects.setdefault(self._identity_of(logged.MemberMention(asked.sender)), _EXPLICIT)
                yield events.ExplicitSuspicionReceived(asked.sender, True, "the suspicion follows")
            elif parsed is None or (asked.thread and is_same) or now - asked.at >= _HEEDED_WITHIN_US:
                self._asks.remove(asked)
                yield events.ExplicitSuspicionReceived(asked.sender, False, "no suspicion follows in the log")

    def events_of(self, parsed: logged.ParsedMessage, thread: str, now: int) -> Iterator[Event]:
        """Yield the events of a message that a `thread` logged at `now`."""
        match parsed:
            case logged.LoggedSuspicion(suspect=suspect, reason=reason):
                if not parsed.is_detection or self.master in (self.address, None):
                    yield from self._suspect(suspect, reason, now)
            case logged.LoggedSuspicionCleared(suspect=suspect, reason=reason):
                place = self._identity_of(suspect)
                self._suspects.pop(place, None)
                yield events.SuspicionCleared(*place, reason)
            case logged.LoggedExplicitSuspicion(sender=sender):
                self._asks.append(_Ask(sender, thread, now))
            case logged.LoggedConnectionFailure(endpoint=endpoint, reason=reason):
                self._failures[endpoint] = (now, reason)
            case logged.LoggedShutdownRequest(member=member):
                self._leaving.add(self._identity_of(member))
                yield witnessed.LeaveRequested(*self._identity_of(member))
            case logged.LoggedRemoval(member=member, reason=reason):
                yield from self._remove(member, reason, now)
            case logged.LoggedJoinRequest(master=master):
                self._join_asks[master] = self._join_asks.get(master, 0) + 1
                yield events.JoinRequested(master, self._join_asks[master])
            case logged.LoggedJoinFailure(reason=reason):
                yield events.JoinFailed({self.address: reason})
            case logged.LoggedLateHeartbeats() | logged.LoggedInvocations():
                yield from self._diagnosed(parsed, now)
            case logged.LoggedClockJump(gap_us=gap, is_backwards=is_backwards):
                yield events.ObserverPaused(gap, is_backwards, is_by_clock=True)
            case (
                events.DisconnectionReported() | events.ListRejected() | events.ClusterStateChanged() | PartitionLost()
                | events.AddressUnusable() | witnessed.JoinerRefused() | witnessed.MigrationFailed()
                | witnessed.MigrationsRemaining() | witnessed.ReplicaMigrated()
            ):  # fmt: skip
                yield parsed
            case _:
                yield from self._claim(parsed)
                yield from self._merge(parsed)

    def _diagnosed(self, parsed: logged.LoggedLateHeartbeats | logged.LoggedInvocations, now: int) -> Iterator[Event]:
        """Yield what diagnostics say. Invocations are sampled all the time, late heartbeats are written as long as they are."""
        late = dict(parsed.silences) if isinstance(parsed, logged.LoggedLateHeartbeats) else {}
        for address, silence in late.items():
            if now - self._late.get(address, (0, 0))[0] >= _NOTED_AGAIN_US:
                yield events.HeartbeatLate(*self._identity_of(logged.MemberMention(address)), silence, 0, False)
                self._late[address] = now, silence
        for address, (noted, silence) in tuple(self._late.items()):
            if now - noted > _NOT_LATE_US:
                del self._late[address]
                yield events.HeartbeatLate(*self._identity_of(logged.MemberMention(address)), silence, 0, True)
        if isinstance(parsed, logged.LoggedInvocations) and parsed.waiting:
            operation, target, waited = max(parsed.waiting, key=lambda one: one[2])
            slow = witnessed.InvocationsSlow(len(parsed.waiting), operation, target, waited)
            if slow != self._slow:  # diagnostics that are turned on twice write everything twice
                self._slow = slow
                yield slow

    def _suspect(self, suspect: logged.MemberMention, reason: str, now: int) -> Iterator[Event]:
        place = self._identity_of(suspect)
        if place in self._leaving:
            reason = _LEAVES  # that its connection ends is how it leaves
        elif reason == _NO_CONNECTION:
            reason = self._lost_connection(suspect.address, now) or reason
        if place not in self._suspects:
            self._suspects[place] = reason
            yield events.SuspicionRaised(*place, reason, suspicion_cause(reason))

    def _remove(self, member: logged.MemberMention, reason: str, now: int) -> Iterator[Event]:
        place = self._identity_of(member)
        if place in self._leaving:
            reason = reason and _LEAVES
            self._suspects[place] = _LEAVES
        known = reason or self._suspects.get(place, "") or self._lost_connection(member.address, now)
        if reason:  # announced; the next message is the removal itself
            self._suspects[place] = reason
            return
        self._suspects.pop(place, None)
        if self.master is None:
            self.master = self.address
            yield events.MasterChanged(self.address, "it removes a member, which only a master does")
        self._hint = f"the master removed {place[0]}"
        yield events.MemberRemoved(*place, known, suspicion_cause(known))

    def _lost_connection(self, address: Address, now: int) -> str:
        """Return why the connection to this address was lost, if that was just now."""
        failed_at, failure = self._failures.get(address, (now, ""))
        return f"{_NO_CONNECTION}: {failure}" if failure and now - failed_at < _NEIGHBOURS_US else ""

    def _identity_of(self, member: logged.MemberMention) -> tuple[Address, str]:
        """Return address and uuid of a member; where the message names no uuid, the one on the list."""
        if member.uuid:
            return member.address, member.uuid
        return member.address, next((known.uuid for known in self._members if known.address == member.address), "")

    def _claim(self, parsed: logged.ParsedMessage) -> Iterator[Event]:
        match parsed:
            case logged.LoggedClaimStart():
                self._hint = "mastership claimed"
                if self.master != self.address:
                    self.master = self.address
                    yield events.MasterChanged(self.address, "it claims mastership")
            case logged.LoggedClaimRequest(version=version, suspected=suspected, asked=asked):
                self._claim_asked = _addresses(asked)
                yield events.ClaimStarted(version, _addresses(suspected), _addresses(asked))
            case logged.LoggedClaimFinish(version=int(version), members=members):
                staying = tuple(member.address for member in members)
                uuid = next((member.uuid for member in members if member.address == self.address), "")
                left_out = tuple(member for member in self._claim_asked if member not in staying)
                for accepting in staying[1:]:
                    yield events.ClaimAnswered(accepting, "accepted", 0, "it is on the list of the claim")
                yield events.ClaimFinished(version, lineage_of(uuid, self.reuse_count), staying[1:], left_out)
            case logged.LoggedClaimAcceptance(claimant=claimant):
                self._hint = f"the mastership of {claimant} accepted"
                if self.master != claimant:
                    self.master = claimant
                    yield events.MasterChanged(claimant, "its mastership is accepted")

    def _merge(self, parsed: logged.ParsedMessage) -> Iterator[Event]:
        match parsed:
            case events.MergeVerdict(remote=remote):
                if self._last_verdicts.get(remote) != parsed:
                    self._last_verdicts[remote] = parsed
                    yield parsed
            case logged.LoggedMergeStart(target=target):
                self._merge_target = target
                yield events.MergeStarted(target, tuple(member.address for member in self._members))
            case logged.LoggedMergeAbandonment(reason=reason) if self._merge_target is not None:
                yield events.MergeAbandoned(self._merge_target, reason)
                self._merge_target = None
            case logged.LoggedLifecycle(state="MERGE_FAILED") if self._merge_target is not None:
                yield events.MergeAbandoned(self._merge_target, "the merge failed")


def _addresses(members: tuple[logged.MemberMention, ...]) -> tuple[Address, ...]:
    return tuple(sorted(member.address for member in members))
