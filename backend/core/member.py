"""A member: one state machine with a few doors (design section 2).

Time comes in with every call, in microseconds on the run's clock, and never goes backwards. What is to be done comes out as
effects, to be carried out in order. After every call `next_deadline` says when the member wants its next `tick`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from backend.core.address import Address
from backend.core.effects import Effect
from backend.core.events import MemberStarted, MemberStopped
from backend.core.membership import (
    admission,
    explicit_suspicion,
    heartbeats,
    joining,
    mastership_claim,
    publishing,
    suspicion,
)
from backend.core.membership.identity import Randomness
from backend.core.membership.state import Birth, Membership
from backend.core.messages import (
    ClaimAccepted,
    ClaimRefused,
    ExplicitSuspicion,
    FinalizeJoin,
    FormationBid,
    FormationVote,
    Heartbeat,
    HeartbeatComplaint,
    JoinRefused,
    JoinRequest,
    Leave,
    MasterIs,
    MastershipClaim,
    MembersUpdate,
    MembersUpdateAck,
    Message,
    TriggerExplicitSuspicion,
    WhoIsMaster,
)

__all__ = ["Birth", "MemberMachine"]

NOTHING: tuple[Effect, ...] = ()

RULES: dict[type, Callable[[Membership, int, Address, Any], None]] = {
    WhoIsMaster: joining.on_who_is_master,
    MasterIs: joining.on_master_is,
    FormationBid: joining.on_formation_bid,
    FormationVote: joining.on_formation_vote,
    JoinRequest: admission.on_join_request,
    JoinRefused: joining.on_join_refused,
    FinalizeJoin: joining.on_finalize_join,
    Leave: suspicion.on_leave,
    MembersUpdate: publishing.on_members_update,
    MembersUpdateAck: admission.on_acknowledgement,
    Heartbeat: heartbeats.on_heartbeat,
    HeartbeatComplaint: explicit_suspicion.on_complaint,
    ExplicitSuspicion: explicit_suspicion.on_explicit_suspicion,
    TriggerExplicitSuspicion: explicit_suspicion.on_trigger,
    MastershipClaim: mastership_claim.on_claim,
    ClaimAccepted: mastership_claim.on_claim_accepted,
    ClaimRefused: mastership_claim.on_claim_refused,
}
"""Which rule answers which message."""

TIMED: dict[str, Callable[[Membership, int], None]] = {
    joining.JOIN: joining.on_join_timer,
    heartbeats.HEARTBEAT: heartbeats.on_heartbeat_timer,
    publishing.PUBLISH: publishing.on_publish_timer,
    mastership_claim.CLAIM: mastership_claim.on_claim_timer,
}
"""Which rule answers which timer."""


class MemberMachine:
    """One life of one member."""

    __slots__ = ("_state", "timers")

    def __init__(self, birth: Birth, randomness: Randomness) -> None:
        self._state = Membership(birth, randomness)
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
    def next_deadline(self) -> int:
        """When the member wants its next tick, in microseconds; `timers.NEVER` when it wants none."""
        return self.timers.earliest

    def start(self, now: int) -> Sequence[Effect]:
        """Begin to look for the cluster."""
        birth = self._state.birth
        self._state.note(now, MemberStarted(birth.address, birth.lite, birth.join_list))
        joining.begin(self._state, now)
        return self._taken()

    def receive(self, now: int, sender: Address, message: Message) -> Sequence[Effect]:
        """A message came from the member at `sender`."""
        state = self._state
        RULES[type(message)](state, now, sender, message)
        if state.effects:
            return self._taken()
        return NOTHING

    def unreachable(self, now: int, address: Address, reason: str) -> Sequence[Effect]:
        """The transport could not bring a message to `address`. Joiners act on it; members wait for their detector."""
        joining.on_unreachable(self._state, now, address, reason)
        return self._taken()

    def tick(self, now: int) -> Sequence[Effect]:
        """Do what is due."""
        state = self._state
        while (name := self.timers.take_due(now)) is not None:
            rule = TIMED.get(name)
            if rule is not None:
                rule(state, now)
            else:
                admission.on_admission_timer(state, now, Address(name.removeprefix(admission.ADMISSION)))
        return self._taken()

    def stop(self, now: int) -> Sequence[Effect]:
        """Say goodbye and end this life."""
        state = self._state
        mastership_claim.abandon(state, now, "asked to stop")
        state.send_all(tuple(state.peers), Leave(state.uuid))
        state.note(now, MemberStopped("asked to stop"))
        state.halt("asked to stop", failed=False)
        return self._taken()

    def _taken(self) -> Sequence[Effect]:
        effects = self._state.effects
        self._state.effects = []
        return effects
