"""What a member believes during one incarnation, as far as its log tells, and the events that follow from each message."""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import (
    ClaimFinished,
    ClaimStarted,
    ClusterStateChanged,
    DisconnectionReported,
    Event,
    ExplicitSuspicionReceived,
    JoinFailed,
    JoinRequested,
    ListRejected,
    MasterChanged,
    MemberRemoved,
    MergeAbandoned,
    MergeStarted,
    MergeVerdict,
    ObserverPaused,
    SuspicionCleared,
    SuspicionRaised,
)
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.hazelcast.logs.parsed_messages import (
    LoggedClaimAcceptance,
    LoggedClaimFinish,
    LoggedClaimRequest,
    LoggedClaimStart,
    LoggedClockJump,
    LoggedDetection,
    LoggedDisconnectionReport,
    LoggedExplicitSuspicion,
    LoggedJoinFailure,
    LoggedJoinRequest,
    LoggedLifecycle,
    LoggedListRejection,
    LoggedMergeAbandonment,
    LoggedMergeStart,
    LoggedMergeVerdict,
    LoggedPartitionLoss,
    LoggedRemoval,
    LoggedStateChange,
    LoggedSuspicion,
    LoggedSuspicionCleared,
    MemberMention,
    ParsedMessage,
)

_EXPLICIT = "explicit suspicion"


def lineage_of(master_uuid: str, reuse_count: int) -> str:
    """The lineage of the lists that a master made, for the `reuse_count`-th incarnation under its uuid."""
    return master_uuid if reuse_count == 1 else f"{master_uuid}#{reuse_count}"


class IncarnationState:
    """The list, the master and the suspicions of one incarnation."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.reuse_count = 1
        """The how-manieth incarnation under its uuid this is."""
        self.master: Address | None = None
        self._members: tuple[Member, ...] = ()
        self._version_of_list: tuple[str, int] | None = None
        self._suspects: dict[tuple[Address, str], str] = {}
        self._hint = ""
        self._master_reason = ""
        self._asked_by: Address | None = None
        self._claim_asked: tuple[Address, ...] = ()
        self._merge_target: Address | None = None
        self._last_verdicts: dict[Address, MergeVerdict] = {}
        self._join_asks: dict[Address, int] = {}

    # Lists

    def version_and_lineage_of(
        self, version: int | None, members: tuple[Member, ...], own_uuid: str
    ) -> tuple[int, str]:
        """Version and lineage of a list."""
        if version is not None:
            return version, lineage_of(members[0].uuid, self.reuse_count)
        lineage = f"unversioned/{own_uuid}"
        before = self._version_of_list[1] if self._version_of_list and self._version_of_list[0] == lineage else 0
        same = members == self._members and before
        return (before if same else before + 1), lineage

    def is_new(self, lineage: str, version: int, members: tuple[Member, ...]) -> bool:
        """The product prints a list again now and then; only one that says something else is a new one."""
        return self._version_of_list != (lineage, version) or self._members != members

    def install(self, lineage: str, version: int, members: tuple[Member, ...]) -> None:
        """The member has this list from now on."""
        self._version_of_list = (lineage, version)
        self._members = members
        self.master = members[0].address
        self._hint = self._master_reason = ""
        listed = {(member.address, member.uuid) for member in members}
        self._suspects = {suspect: why for suspect, why in self._suspects.items() if suspect in listed}

    def change_of(self, members: tuple[Member, ...]) -> str:
        """In words, what the list changes, and what was said shortly before that explains it."""
        if not self._members:
            return self._hint or "the first list of this life"
        before, after = set(self._members), set(members)
        joined = ", ".join(member.address for member in members if member not in before)
        left = ", ".join(member.address for member in self._members if member not in after)
        changes = [f"joined: {joined}"] * bool(joined) + [f"left: {left}"] * bool(left)
        return "; ".join([*([self._hint] if self._hint else []), *changes]) or "another version of the same members"

    def reason_for(self, master: Address) -> str:
        """In words, why the member follows `master` now."""
        return self._master_reason or f"{master} is the first of the list"

    @property
    def _is_master(self) -> bool:
        return self.master is not None and self.master == self.address

    # Messages

    def resolve_pending_suspicion(self, parsed: ParsedMessage | None) -> Iterator[Event]:
        """A request to be suspected is heeded if the suspicion is what the log says next."""
        if self._asked_by is None:
            return
        sender, self._asked_by = self._asked_by, None
        match parsed:
            case LoggedSuspicion(suspect=suspect, reason=reason) if suspect.address == sender and reason == _EXPLICIT:
                heeded = True
            case LoggedRemoval(member=member) if member.address == sender:
                heeded = True
            case _:
                heeded = False
        reason = "the suspicion follows" if heeded else "no suspicion follows in the log"
        yield ExplicitSuspicionReceived(sender, heeded, reason)

    def take(self, parsed: ParsedMessage) -> Iterator[Event]:
        """The events that `parsed` makes."""
        match parsed:
            case LoggedDetection(suspect=suspect, reason=reason):
                if self._is_master:  # the others log the suspicion itself
                    yield from self._suspect(suspect, reason)
            case LoggedSuspicion(suspect=suspect, reason=reason):
                yield from self._suspect(suspect, reason)
            case LoggedSuspicionCleared(suspect=suspect, reason=reason):
                place = self._identity_of(suspect)
                self._suspects.pop(place, None)
                yield SuspicionCleared(*place, reason)
            case LoggedExplicitSuspicion(sender=sender):
                self._asked_by = sender
            case LoggedRemoval(member=member, reason=reason):
                yield from self._remove(member, reason)
            case LoggedDisconnectionReport(reporter=reporter, suspects=suspects):
                yield DisconnectionReported(reporter.address, tuple(one.address for one in suspects))
            case LoggedListRejection(sender=sender, reason=reason):
                yield ListRejected(0, sender, reason)
            case LoggedJoinRequest(master=master):
                self._join_asks[master] = self._join_asks.get(master, 0) + 1
                yield JoinRequested(master, self._join_asks[master])
            case LoggedJoinFailure(reason=reason):
                yield JoinFailed({self.address: reason})
            case LoggedClaimStart() | LoggedClaimRequest() | LoggedClaimFinish() | LoggedClaimAcceptance():
                yield from self._claim(parsed)
            case LoggedMergeVerdict() | LoggedMergeStart() | LoggedMergeAbandonment() | LoggedLifecycle():
                yield from self._merge(parsed)
            case LoggedStateChange(state=state, reason=reason):
                yield ClusterStateChanged(state, reason)
            case LoggedClockJump(gap_us=gap):
                yield ObserverPaused(gap)
            case LoggedPartitionLoss(partition=partition):
                yield PartitionLost(partition, ALL_LOST)
            case _:
                pass

    def _suspect(self, suspect: MemberMention, reason: str) -> Iterator[Event]:
        place = self._identity_of(suspect)
        if place not in self._suspects:
            self._suspects[place] = reason
            yield SuspicionRaised(*place, reason)

    def _remove(self, member: MemberMention, reason: str) -> Iterator[Event]:
        place = self._identity_of(member)
        known = reason or self._suspects.get(place, "")
        if reason:  # announced; the next message is the removal itself
            self._suspects[place] = reason
            return
        self._suspects.pop(place, None)
        self._hint = f"the master removed {place[0]}"
        yield MemberRemoved(*place, known)

    def _identity_of(self, member: MemberMention) -> tuple[Address, str]:
        """Address and uuid of a member; where the message names no uuid, the one on the list."""
        if member.uuid:
            return member.address, member.uuid
        listed = (one.uuid for one in self._members if one.address == member.address)
        return member.address, next(listed, "")

    def _claim(self, parsed: ParsedMessage) -> Iterator[Event]:
        match parsed:
            case LoggedClaimStart():
                self._hint = "mastership claimed"
                if self.master != self.address:
                    self.master = self.address
                    yield MasterChanged(self.address, "it claims mastership")
            case LoggedClaimRequest(version=version, suspected=suspected, asked=asked):
                self._claim_asked = _addresses(asked)
                yield ClaimStarted(version, _addresses(suspected), _addresses(asked))
            case LoggedClaimFinish(version=version, members=members):
                staying = tuple(one.address for one in members)
                uuid = next((one.uuid for one in members if one.address == self.address), "")
                left_out = tuple(one for one in self._claim_asked if one not in staying)
                yield ClaimFinished(version, lineage_of(uuid, self.reuse_count), staying[1:], left_out)
            case LoggedClaimAcceptance(claimant=claimant):
                self._hint = f"the mastership of {claimant} accepted"
                if self.master != claimant:
                    self.master = claimant
                    yield MasterChanged(claimant, "its mastership is accepted")

    def _merge(self, parsed: ParsedMessage) -> Iterator[Event]:
        match parsed:
            case LoggedMergeVerdict(remote=remote, decision=decision, rule=rule, why=why):
                verdict = MergeVerdict(remote, decision, rule, why)
                if self._last_verdicts.get(remote) != verdict:
                    self._last_verdicts[remote] = verdict
                    yield verdict
            case LoggedMergeStart(target=target):
                self._merge_target = target
                yield MergeStarted(target, tuple(member.address for member in self._members))
            case LoggedMergeAbandonment(reason=reason) if self._merge_target is not None:
                yield MergeAbandoned(self._merge_target, reason)
                self._merge_target = None
            case LoggedLifecycle(state="MERGE_FAILED") if self._merge_target is not None:
                yield MergeAbandoned(self._merge_target, "the merge failed")
            case _:
                pass


def _addresses(members: tuple[MemberMention, ...]) -> tuple[Address, ...]:
    return tuple(sorted(member.address for member in members))
