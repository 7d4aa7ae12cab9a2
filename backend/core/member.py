"""A member: one state machine with a few doors (design section 2).

Time comes in with every call, in microseconds on the run's clock, and never goes backwards. What is to be done comes out as
effects, to be carried out in order. After every call `next_deadline` says when the member wants its next `tick`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.core.data import merging_entries
from quarterdeck.backend.core.data.calls import map_calls
from quarterdeck.backend.core.data.calls.operations import Operation
from quarterdeck.backend.core.data.handlers import (
    DATA_MESSAGE_HANDLERS,
    DATA_TIMER_HANDLERS,
    on_incarnation_end,
    on_list_changed,
    on_table_changed,
)
from quarterdeck.backend.core.data.map_service import MapService
from quarterdeck.backend.core.effects import Effect
from quarterdeck.backend.core.events import MemberStarted, MemberStopped, SettingsChanged
from quarterdeck.backend.core.membership import cluster_state, mastership_claim
from quarterdeck.backend.core.membership.failure_detection import (
    connection_loss,
    explicit_suspicion,
    heartbeat_ring,
    heartbeats,
    link_probes,
    master_confirmation,
)
from quarterdeck.backend.core.membership.split_brain import cluster_search, merging, runtime_join_list
from quarterdeck.backend.core.membership.state import MemberConfiguration, Membership, Stopwatch
from quarterdeck.backend.core.membership.views import admission, joining, minimum_cluster_size, publishing, readmission
from quarterdeck.backend.core.membership.views.identity import Randomness
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.messages import (
    ClaimAccepted,
    ClaimRefused,
    ExplicitSuspicion,
    FailureReport,
    FinalizeJoin,
    FormationBid,
    FormationVote,
    Heartbeat,
    HeartbeatComplaint,
    JoinHeld,
    JoinListUpdate,
    JoinListUpdateAck,
    JoinRefused,
    JoinRequest,
    Leave,
    LinkProbe,
    LinkProbeReply,
    LinksReport,
    MasterConfirmation,
    MasterIs,
    MastershipClaim,
    MembersUpdate,
    MembersUpdateAck,
    MergeClusters,
    MergeClustersAck,
    MergeOffer,
    MergeReply,
    Message,
    ProveLinks,
    SplitBrainAnswer,
    SplitBrainProbe,
    StateDecision,
    StateDecisionAck,
    StateLock,
    StateLockAnswer,
    StateRefusal,
    StateRequest,
    TriggerExplicitSuspicion,
    WhoIsMaster,
)
from quarterdeck.backend.core.partitions import graceful_shutdown
from quarterdeck.backend.core.partitions import master_role as master_role
from quarterdeck.backend.core.partitions.arrangement import arrangement_request
from quarterdeck.backend.core.partitions.messages import (
    ArrangeRequest,
    MigrationChunk,
    MigrationChunkAck,
    MigrationCommit,
    MigrationCommitAck,
    MigrationReport,
    MigrationRequest,
    ShutdownGranted,
    ShutdownRequest,
    TableAck,
    TableAnswer,
    TableFetch,
    TableUpdate,
)
from quarterdeck.backend.core.partitions.migration import migration_queue, migration_transfer, safe_commit
from quarterdeck.backend.core.partitions.table import table_publishing, table_recovery
from quarterdeck.backend.core.partitions.table.partition_table import PartitionTable
from quarterdeck.backend.core.properties import PropertyValue, Settings

__all__ = ["MemberConfiguration", "MemberMachine"]

NOTHING: tuple[Effect, ...] = ()

MESSAGE_HANDLERS: dict[type, Callable[[Membership, int, Address, Any], None]] = {
    WhoIsMaster: joining.on_who_is_master,
    MasterIs: joining.on_master_is,
    FormationBid: joining.on_formation_bid,
    FormationVote: joining.on_formation_vote,
    JoinRequest: admission.on_join_request,
    JoinRefused: joining.on_join_refused,
    FinalizeJoin: joining.on_finalize_join,
    Leave: graceful_shutdown.on_goodbye,
    MembersUpdate: publishing.on_members_update,
    MembersUpdateAck: admission.on_acknowledgement,
    Heartbeat: heartbeats.on_heartbeat,
    HeartbeatComplaint: explicit_suspicion.on_complaint,
    ExplicitSuspicion: explicit_suspicion.on_explicit_suspicion,
    TriggerExplicitSuspicion: explicit_suspicion.on_trigger,
    MastershipClaim: mastership_claim.on_claim,
    ClaimAccepted: mastership_claim.on_claim_accepted,
    ClaimRefused: mastership_claim.on_claim_refused,
    JoinHeld: readmission.on_join_held,
    MasterConfirmation: master_confirmation.on_confirmation,
    FailureReport: heartbeat_ring.on_failure_report,
    LinkProbe: link_probes.on_probe,
    LinkProbeReply: link_probes.on_reply,
    SplitBrainProbe: cluster_search.on_probe,
    SplitBrainAnswer: cluster_search.on_answer,
    ProveLinks: link_probes.on_prove_links,
    LinksReport: merging.on_links_report,
    MergeOffer: merging.on_offer,
    MergeReply: merging.on_reply,
    MergeClusters: merging.on_merge_clusters,
    MergeClustersAck: merging.on_merge_clusters_ack,
    JoinListUpdate: runtime_join_list.on_update,
    JoinListUpdateAck: runtime_join_list.on_acknowledgement,
    StateRequest: cluster_state.on_request,
    StateRefusal: cluster_state.on_refusal,
    StateLock: cluster_state.on_lock,
    StateLockAnswer: cluster_state.on_lock_answer,
    StateDecision: cluster_state.on_decision,
    StateDecisionAck: cluster_state.on_decision_ack,
    ArrangeRequest: arrangement_request.on_arrange_request,
    TableUpdate: table_publishing.on_table_update,
    TableAck: table_publishing.on_ack,
    TableFetch: table_recovery.on_table_fetch,
    TableAnswer: table_recovery.on_table_answer,
    MigrationRequest: migration_transfer.on_request,
    MigrationReport: migration_queue.on_report,
    MigrationChunk: migration_transfer.on_chunk,
    MigrationChunkAck: migration_transfer.on_chunk_ack,
    MigrationCommit: safe_commit.on_commit,
    MigrationCommitAck: migration_queue.on_commit_ack,
    ShutdownRequest: graceful_shutdown.on_shutdown_request,
    ShutdownGranted: graceful_shutdown.on_shutdown_granted,
    **DATA_MESSAGE_HANDLERS,
}
"""Which handler answers which message."""

TIMER_HANDLERS: dict[str, Callable[[Membership, int], None]] = {
    joining.JOIN: joining.on_join_timer,
    admission.ADMISSION: admission.on_admission_timer,
    heartbeats.HEARTBEAT: heartbeats.on_heartbeat_timer,
    publishing.PUBLISH: publishing.on_publish_timer,
    mastership_claim.CLAIM: mastership_claim.on_claim_timer,
    master_confirmation.CONFIRMATION: master_confirmation.on_confirmation_timer,
    link_probes.PROBE: link_probes.on_probe_timer,
    link_probes.PROOF: link_probes.on_proof_timer,
    cluster_search.SEARCH: cluster_search.on_search_timer,
    merging.MERGE: merging.on_merge_timer,
    cluster_state.STATE: cluster_state.on_state_timer,
    cluster_state.STATE_REQUEST: cluster_state.on_request_timer,
    runtime_join_list.SPREAD: runtime_join_list.on_spread_timer,
    arrangement_request.ARRANGE: arrangement_request.on_arrange_timer,
    table_publishing.TABLE: table_publishing.on_table_timer,
    table_recovery.RECOVERY: table_recovery.on_recovery_timer,
    migration_queue.MIGRATIONS: migration_queue.on_migrations_timer,
    migration_transfer.TRANSFER: migration_transfer.on_transfer_timer,
    graceful_shutdown.DRAIN: graceful_shutdown.on_drain_timer,
    **DATA_TIMER_HANDLERS,
}
"""Which handler answers which timer."""

ADDRESS_TIMER_HANDLERS: dict[str, Callable[[Membership, int, Address], None]] = {
    connection_loss.CONNECTION: connection_loss.on_connection_timer,
}
"""The timers of which there is one for each address, by the prefix of their names."""


class MemberMachine:
    """One incarnation of one member."""

    __slots__ = ("_state", "_table_version", "timers")

    def __init__(
        self, member_configuration: MemberConfiguration, randomness: Randomness, stopwatch: Stopwatch | None = None
    ) -> None:
        """`stopwatch` guards a live member against long computations; a simulated one has none."""
        self._state = Membership(member_configuration, randomness, stopwatch)
        self._state.services = (MapService(self._state),)
        self._table_version = 0
        """Of the table that the services that keep data were told of."""
        self.timers = self._state.timers
        """Read by drivers on their hot path; `timers.earliest` is `next_deadline`."""

    @property
    def uuid(self) -> str:
        return self._state.uuid

    @property
    def address(self) -> Address:
        return self._state.address

    @property
    def joined(self) -> bool:
        return self._state.joined

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._state.settings

    @property
    def master(self) -> Address | None:
        """Whom this member follows; itself when it is master, or claims to be."""
        return self._state.master

    @property
    def is_master(self) -> bool:
        return self._state.is_master

    @property
    def members(self) -> MemberList | None:
        """The installed list."""
        return self._state.members

    @property
    def cluster_state(self) -> ClusterState:
        return self._state.standing.state

    @property
    def join_list(self) -> tuple[Address, ...]:
        """Where it looks for its cluster: the configured list, as it was edited last."""
        return self._state.join_list

    @property
    def view(self) -> tuple[Address, ...] | None:
        """The addresses on the installed list, the oldest first; None before the first list."""
        return self._state.members.addresses if self._state.members is not None else None

    @property
    def next_deadline(self) -> int:
        """When the member wants its next tick, in microseconds; `timers.NEVER` when it wants none."""
        return self.timers.earliest

    def start(self, now: int) -> Sequence[Effect]:
        """Begin to look for the cluster."""
        member_configuration = self._state.member_configuration
        settings = member_configuration.settings.not_as_documented()
        self._state.record(
            now,
            MemberStarted(
                member_configuration.address,
                member_configuration.lite,
                member_configuration.join_list,
                settings=settings,
            ),
        )
        joining.begin(self._state, now)
        return self._taken(now)

    def receive(self, now: int, sender: Address, message: Message) -> Sequence[Effect]:
        """A message came from the member at `sender`."""
        state = self._state
        MESSAGE_HANDLERS[type(message)](state, now, sender, message)
        if state.effects or state.departing_for is not None:
            return self._taken(now)
        return NOTHING

    def unreachable(self, now: int, address: Address, reason: str) -> Sequence[Effect]:
        """The transport could not reach `address`, or lost a connection to it without a goodbye."""
        joining.on_unreachable(self._state, now, address, reason)
        connection_loss.on_unreachable(self._state, now, address, reason)
        return self._taken(now)

    @property
    def all_heard_until_us(self) -> int:
        """Until then the member looks at nobody's silence, for nobody can have been silent for too long."""
        return self._state.all_heard_until_us

    def assume_peers_heard_since(self, since_us: int) -> None:
        """Every member of the list was heard of at `since_us` or later, whatever this member was told.

        Only for a driver that leaves out heartbeats, and for detectors with a deadline.
        """
        state = self._state
        state.all_heard_until_us = max(state.all_heard_until_us, since_us + state.late_after_us)

    def record_heartbeat(self, address: Address, at_us: int) -> None:
        """A heartbeat that said nothing new came from `address` at `at_us`, and was left out by the driver."""
        peer = self._state.peers.get(address)
        if peer is not None and peer.detector.last_heard_us < at_us:
            peer.detector.heard(at_us)

    def tick(self, now: int) -> Sequence[Effect]:
        """Do what is due."""
        state = self._state
        timers = self.timers
        while timers.earliest <= now:
            name = timers.take_earliest()
            rule = TIMER_HANDLERS.get(name)
            if rule is not None:
                rule(state, now)
            else:
                prefix, colon, address = name.partition(":")
                ADDRESS_TIMER_HANDLERS[prefix + colon](state, now, Address(address))
        return self._taken(now)

    def edit_join_list(self, now: int, addresses: tuple[Address, ...]) -> Sequence[Effect]:
        """An operator edits the join list of this member's whole cluster."""
        runtime_join_list.edit(self._state, now, addresses)
        return self._taken(now)

    def change_state(self, now: int, wanted: ClusterState) -> Sequence[Effect]:
        """An operator wants the cluster in another state. The outcome is told by events."""
        cluster_state.request(self._state, now, wanted)
        return self._taken(now)

    def search(self, now: int) -> Sequence[Effect]:
        """Look for other clusters now. Raises `CommandRefused` unless this member is master."""
        if not self._state.is_master:
            raise CommandRefused(
                f"{self._state.member_configuration.label} is no master; ask {self._state.master or 'another member'}"
            )
        cluster_search.search(self._state, now)
        return self._taken(now)

    def reconfigure(self, now: int, properties: Mapping[str, PropertyValue]) -> Sequence[Effect]:
        """Change properties while the member runs. Raises `BadProperty`, and then nothing is changed.

        What is under way goes on as it began; timers that are set keep their times.
        """
        state = self._state
        state.settings = state.settings.changed_at_runtime(properties)
        state.record(now, SettingsChanged({name: str(value) for name, value in properties.items()}))
        return self._taken(now)

    def operate(self, now: int) -> Sequence[Effect]:
        """A client asks for an operation. Raises `NotEnoughMembers` while this member sees too few."""
        minimum_cluster_size.check_operation(self._state)
        return NOTHING

    def stop(self, now: int) -> Sequence[Effect]:
        """Say goodbye and end this incarnation; first let the others take over what only this member may hold (behaviour 8.14).

        Asked a second time, the member does not wait for that.
        """
        state = self._state
        if state.partitions.draining_until_us is None and graceful_shutdown.must_drain(state):
            graceful_shutdown.begin_drain(state, now)
        else:
            self._leave(now)
        return self._taken(now)

    def stop_all(self, now: int) -> Sequence[Effect]:
        """End this incarnation at once, and have every member of the cluster that hears of it do the same."""
        self._leave(now, all_stop=True)
        return self._taken(now)

    def arrange(self, now: int) -> Sequence[Effect]:
        """See to it that the partitions are arranged, if they are not yet."""
        arrangement_request.ask_for_arrangement(self._state, now)
        return self._taken(now)

    def call(self, now: int, call: int, operation: Operation, watched: bool = False) -> Sequence[Effect]:
        """A client asks for an operation on a map; `Answered` with the number `call` tells how it ended, maybe much later.

        One that is `watched`, if it is for one key, is recorded as well.
        """
        map_calls.call(self._state, now, call, operation, watched)
        return self._taken(now)

    @property
    def table(self) -> PartitionTable | None:
        """The partition table as this member knows it; None before the first arrangement. Not to be changed."""
        return self._state.partitions.table

    def _leave(self, now: int, *, all_stop: bool = False) -> None:
        state = self._state
        on_incarnation_end(state, now, "the member stops", for_good=True)
        mastership_claim.abandon(state, now, "asked to stop")
        state.send_all(tuple(state.peers), Leave(state.uuid, all_stop))
        state.record(now, MemberStopped("asked to stop"))
        state.halt("asked to stop", failed=False)
        state.departing_for = None

    def _merge_into(self, now: int, target: Address) -> None:
        """End this incarnation and begin another, which brings its data along."""
        state = self._state
        on_incarnation_end(state, now, "the member merges into another cluster", for_good=False)
        merge_entries = merging_entries.collect(state)
        draining_until_us = state.partitions.draining_until_us
        merging.rejoin_as_new_incarnation(state, now, target)
        self._table_version = 0
        merging_entries.adopt(state, now, merge_entries)
        if draining_until_us is not None:
            graceful_shutdown.drain_until(state, now, draining_until_us)

    def _taken(self, now: int) -> Sequence[Effect]:
        """The effects of this call, those that follow from what has changed included.

        An incarnation that is to end, in a merge or because nothing keeps it any more, ends here, when no rule is at work on it.
        """
        state = self._state
        partitions = state.partitions
        if state.members is not partitions.members or state.standing is not partitions.standing:
            master_role.follow(state, now)
            on_list_changed(state, now)
        if partitions.master_role is not None or (state.members is not None and state.is_master):
            master_role.advance(state, now)
        if partitions.table is not None and partitions.table.version != self._table_version:
            self._table_version = partitions.table.version
            on_table_changed(state, now)
        if graceful_shutdown.may_leave(state, now):
            self._leave(now)
        elif state.departing_for is not None:
            self._merge_into(now, state.departing_for)
        effects = state.effects
        state.effects = []
        return effects
