"""A member: one state machine with one entry, `step`.

Time comes in with every step, in microseconds on the run's clock, and never goes backwards. What is to be done comes out as
effects, to be carried out in order. After every step `next_deadline` says when the member wants its next `Tick`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quarterdeck.backend.core import commands, snapshots
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Evidence, Reason, RecordId, UnreachableCause
from quarterdeck.backend.core.data import map_calls, merging_entries
from quarterdeck.backend.core.data.handlers import (
    DATA_MESSAGE_HANDLERS,
    DATA_TIMER_HANDLERS,
    on_incarnation_end,
    on_list_changed,
    on_table_changed,
)
from quarterdeck.backend.core.data.map_service import MapService
from quarterdeck.backend.core.data.message_checks import DATA_MESSAGE_CHECKS
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.effects import Effect
from quarterdeck.backend.core.inputs import (
    Call,
    HeartbeatsElided,
    Input,
    PeersHeardSince,
    PeerUnreachable,
    Receive,
    Start,
    Tick,
)
from quarterdeck.backend.core.membership import cluster_state, mastership_claim, refused_messages
from quarterdeck.backend.core.membership.events import (
    ClusterStateChanged,
    ListInstalled,
    MemberStarted,
    MemberStopped,
    SettingsChanged,
)
from quarterdeck.backend.core.membership.facts import EvidenceFound
from quarterdeck.backend.core.membership.failure_detection import connection_loss, heartbeats
from quarterdeck.backend.core.membership.handlers import (
    ADDRESS_TIMER_HANDLERS,
    MEMBERSHIP_TIMER_HANDLERS,
    MESSAGE_RULES,
    Rule,
    settle,
)
from quarterdeck.backend.core.membership.message_checks import MEMBERSHIP_MESSAGE_CHECKS
from quarterdeck.backend.core.membership.messages import Leave
from quarterdeck.backend.core.membership.split_brain import (
    cluster_search,
    merging,
    remembered_addresses,
    runtime_join_list,
)
from quarterdeck.backend.core.membership.state import MemberConfiguration
from quarterdeck.backend.core.membership.undertakings import Doing, Leading
from quarterdeck.backend.core.membership.views import joining
from quarterdeck.backend.core.membership.views.identity import Randomness
from quarterdeck.backend.core.partitions import graceful_shutdown, lite_members, master_role
from quarterdeck.backend.core.partitions.arrangement import repartitioning
from quarterdeck.backend.core.partitions.events import TableChanged
from quarterdeck.backend.core.partitions.handlers import PARTITION_MESSAGE_HANDLERS, PARTITION_TIMER_HANDLERS
from quarterdeck.backend.core.partitions.message_checks import PARTITION_MESSAGE_CHECKS
from quarterdeck.backend.core.partitions.state import PartitionContext
from quarterdeck.backend.core.properties import BadProperty

__all__ = ["MemberConfiguration", "MemberMachine"]

NOTHING: tuple[Effect, ...] = ()

MESSAGE_HANDLERS: dict[type, Callable[[MemberState, int, Address, Any], None]] = {
    **PARTITION_MESSAGE_HANDLERS,
    **DATA_MESSAGE_HANDLERS,
}
MESSAGE_CHECKS = {**MEMBERSHIP_MESSAGE_CHECKS, **PARTITION_MESSAGE_CHECKS, **DATA_MESSAGE_CHECKS}
RULES: dict[type, dict[type[Doing], Rule] | None] = {**dict.fromkeys(MESSAGE_HANDLERS), **MESSAGE_RULES}
"""The rules for each kind of message; None where a handler stands, for it does not matter what the member is doing."""

TIMER_HANDLERS: dict[str, tuple[Callable[[MemberState, int], None], ...]] = {
    **MEMBERSHIP_TIMER_HANDLERS,
    **PARTITION_TIMER_HANDLERS,
    **DATA_TIMER_HANDLERS,
}


class MemberMachine:
    """One member, through all its incarnations: a merge begins another one, with another uuid."""

    __slots__ = ("_context", "_state", "timers")

    def __init__(self, member_configuration: MemberConfiguration, randomness: Randomness) -> None:
        self._adopt(MemberState.born(PartitionContext(member_configuration), randomness))

    def _adopt(self, state: MemberState) -> None:
        self._state = state
        self._context = state.context
        self._context.service = MapService(state)
        self.timers = state.timers
        """Read by drivers on their hot path; `timers.earliest` is `next_deadline`."""

    @property
    def uuid(self) -> str:
        """The identity of the present incarnation."""
        return self._state.uuid

    @property
    def address(self) -> Address:
        return self._state.address

    @property
    def joined(self) -> bool:
        return self._state.members is not None

    @property
    def next_deadline(self) -> int:
        """When the member wants its next tick, in microseconds; `timers.NEVER` when it wants none."""
        return self.timers.earliest

    def inspect(self) -> MemberState:
        """Return what this member knows and believes: only `step` changes it. A caller that keeps a part of it keeps a copy."""
        return self._state

    def snapshot(self) -> bytes:
        """Return everything that this member has between two steps (chapter `snapshots`)."""
        return snapshots.freeze(self._state)

    @classmethod
    def restored(
        cls, snapshot: bytes, member_configuration: MemberConfiguration, randomness: Randomness | None = None
    ) -> MemberMachine:
        """Make a member that goes on from `snapshot`, made by one of the same configuration, with other `randomness` if given."""
        machine = cls.__new__(cls)
        machine._adopt(snapshots.thaw(snapshot, PartitionContext(member_configuration), randomness))
        return machine

    def canonical(self) -> str:
        """Return a text that two members share only if they have the same future."""
        return snapshots.canonical(self._state)

    def step(self, now: int, input: Input, because: RecordId | None = None) -> Sequence[Effect]:
        """Let the member act on `input` at the time `now`, and return what it wants done.

        `because` is the record that an order was given; messages bring theirs along.

        Raises:
            CommandRefused: This member cannot carry out the order. Then nothing has changed.
        """
        state, context = self._state, self._context
        if type(input) is Receive:
            # The hot path. A message that asks for nothing and ends no incarnation has no consequences either.
            message, context.cause = input.message, input.because
            check = MESSAGE_CHECKS.get(type(message))
            refusal = check(state, input.sender, message) if check is not None else ""
            if refusal or input.sender == state.address:
                return _refuse(state, now, input, refusal or "it comes from this member's own address")
            rules = RULES[type(message)]
            if rules is not None:
                doing = state.doing
                rules[type(doing)](state, doing, now, input.sender, message)
            else:
                MESSAGE_HANDLERS[type(message)](state, now, input.sender, message)
            if context.effects or context.facts:
                return conclude(state, now)
            return NOTHING
        handler = INPUT_HANDLERS.get(type(input))
        if handler is not None:
            context.act_for(because)
            handler(state, now, input)
            return conclude(state, now)
        INERT_INPUT_HANDLERS[type(input)](state, input)
        return NOTHING


def _refuse(state: MemberState, now: int, input: Receive, reason: str) -> Sequence[Effect]:
    """Record that a message is refused. Nothing else follows from it."""
    context = state.context
    context.act_for(input.because)
    refused_messages.refuse(state, now, input.sender, str(type(input.message).__struct_config__.tag), reason)
    effects, context.effects, context.latest = context.effects, [], None
    return effects


def conclude(state: MemberState, now: int) -> Sequence[Effect]:
    """Let what has changed in this step have its consequences in the other chapters, and return the effects of it all.

    An incarnation that is to end, in a merge or after a drain, ends here, when no handler is at work on it.
    """
    context = state.context
    if context.facts:
        settle(state, now)
    partitions = state.partitions
    members, standing = state.members, state.standing
    # Most often it is the very same list: that is seen at once.
    if (members is not partitions.members and members != partitions.members) or standing != partitions.standing:
        context.go_on_from(ListInstalled, ClusterStateChanged)
        master_role.follow(state, now)
        on_list_changed(state, now)
    if partitions.master_role is not None or (state.members is not None and state.is_master):
        master_role.advance(state, now)
    if partitions.changed_rows:
        context.go_on_from(TableChanged)
        on_table_changed(state, now)
    if graceful_shutdown.may_leave(state, now):
        _leave(state, now)
    elif context.departing_for is not None:
        _merge_into(state, now, context.departing_for)
        settle(state, now)
    effects, context.effects, context.latest = context.effects, [], None
    return effects


def _leave(state: MemberState, now: int) -> None:
    """Say goodbye to all peers and end this incarnation for good."""
    on_incarnation_end(state, now, "the member stops", for_good=True)
    mastership_claim.abandon(state, now, "stopping", "asked to stop")
    stopped = RecordId(state.uuid, state.record_count + 1)
    state.send_all(tuple(state.peers), Leave(state.uuid, state.partitions.cluster_stops), stopped)
    state.record(now, MemberStopped("asked to stop", "asked"))
    state.halt("asked to stop", failed=False)
    state.context.departing_for = None


def _merge_into(state: MemberState, now: int, target: Address) -> None:
    """End this incarnation and begin another, which brings its data along."""
    state.context.departing_for = None
    on_incarnation_end(state, now, "the member merges into another cluster", for_good=False)
    merge_entries = merging_entries.collect(state)
    draining_until_us, lite_change = state.partitions.draining_until_us, state.partitions.lite_change
    merging.rejoin_as_new_incarnation(state, now, target, brings_entries=merge_entries is not None)
    merging_entries.adopt(state, now, merge_entries)
    if draining_until_us is not None:
        graceful_shutdown.drain_until(state, now, draining_until_us)
    lite_members.go_on(state, now, lite_change)


# What each input does


def _on_start(state: MemberState, now: int, _: Start) -> None:
    configured = state.member_configuration
    settings = configured.settings.not_as_documented()
    state.record(now, MemberStarted(configured.address, configured.lite, configured.join_list, settings=settings))
    joining.begin_search(state, now)


def _on_peer_unreachable(state: MemberState, now: int, input: PeerUnreachable) -> None:
    found: Reason[UnreachableCause] = Reason(input.cause, input.reason)
    remembered_addresses.on_unreachable(state, now, input.address, found)
    joining.on_unreachable(state, now, input.address, found)
    connection_loss.on_unreachable(state, now, input.address, input.reason)


def _on_tick(state: MemberState, now: int, _: Tick) -> None:
    timers, context = state.timers, state.context
    while timers.earliest <= now:
        name = timers.pop_earliest()
        handlers = TIMER_HANDLERS.get(name)
        if handlers is None:
            prefix, colon, address = name.partition(":")
            context.cause = context.latest = None
            ADDRESS_TIMER_HANDLERS[prefix + colon](state, now, Address(address))
            settle(state, now)
        else:
            for handler in handlers:
                context.cause = context.latest = None
                handler(state, now)
                if context.facts:
                    settle(state, now)


def _on_stop(state: MemberState, now: int, _: commands.StopMember) -> None:
    """Let the others first take over what only this member may hold; asked a second time, do not wait.

    See Hazelcast: graceful shutdown.
    """
    if state.partitions.draining_until_us is None and graceful_shutdown.must_drain(state):
        graceful_shutdown.drain_until(state, now, now + state.settings.graceful_shutdown_us)
    else:
        _leave(state, now)


def _on_stop_cluster(state: MemberState, now: int, _: commands.StopCluster) -> None:
    state.partitions.cluster_stops = True
    _leave(state, now)


def _on_suspect_member(state: MemberState, now: int, input: commands.SuspectMember) -> None:
    label, address = state.member_configuration.label, Address(input.suspect)
    if address not in state.peers:
        raise commands.CommandRefused(f"{label} has no other member {address} on its list")
    state.report(EvidenceFound({address: Evidence("ordered", "an operator said so")}))


def _on_search_clusters(state: MemberState, now: int, _: commands.SearchClusters) -> None:
    if not isinstance(state.doing, Leading):
        master = state.master or "another member"
        raise commands.CommandRefused(f"{state.member_configuration.label} is no master; ask {master}")
    cluster_search.search(state, state.doing, now)


def _on_set_properties(state: MemberState, now: int, input: commands.SetProperties) -> None:
    """Change settings. What is under way goes on as it began, and timers keep their times, but for those of heartbeats."""
    try:
        settings = state.settings.changed_at_runtime(input.properties)
    except BadProperty as problem:
        raise commands.CommandRefused(str(problem)) from problem
    state.record(now, SettingsChanged({name: str(value) for name, value in input.properties.items()}))
    heartbeats.apply_settings(state, now, settings)


INPUT_HANDLERS: dict[type, Callable[[MemberState, int, Any], None]] = {
    Start: _on_start,
    PeerUnreachable: _on_peer_unreachable,
    Tick: _on_tick,
    Call: lambda state, now, input: map_calls.call(state, now, input.number, input.operation, input.watched),
    commands.StopMember: _on_stop,
    commands.StopCluster: _on_stop_cluster,
    commands.SuspectMember: _on_suspect_member,
    commands.SetJoinList: lambda state, now, input: runtime_join_list.edit(
        state, now, tuple(map(Address, input.addresses))
    ),
    commands.ChangeState: lambda state, now, input: cluster_state.request(state, now, input.state),
    commands.PromoteMember: lambda state, now, _: lite_members.request(state, now, lite=False),
    commands.DemoteMember: lambda state, now, _: lite_members.request(state, now, lite=True),
    commands.SearchClusters: _on_search_clusters,
    commands.SetProperties: _on_set_properties,
    commands.ArrangePartitions: lambda state, now, _: repartitioning.ask_for_arrangement(state, now),
}
"""Which handler answers which input. Messages have tables of their own."""


def _on_operate(state: MemberState, _: commands.Operate) -> None:
    if refusal := cluster_state.why_not_operating(state):
        raise commands.CommandRefused(refusal)


def _on_heartbeats_elided(state: MemberState, input: HeartbeatsElided) -> None:
    for address, at_us in input.heard_us.items():
        peer = state.peers.get(address)
        if peer is not None and peer.detector.last_heard_us < at_us:
            peer.detector.heard(at_us)


def _on_peers_heard_since(state: MemberState, input: PeersHeardSince) -> None:
    state.all_heard_until_us = max(state.all_heard_until_us, input.since_us + state.late_after_us)


INERT_INPUT_HANDLERS: dict[type, Callable[[MemberState, Any], None]] = {
    commands.Operate: _on_operate,
    HeartbeatsElided: _on_heartbeats_elided,
    PeersHeardSince: _on_peers_heard_since,
}
"""Inputs that change nothing that another chapter follows."""
