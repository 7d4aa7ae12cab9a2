"""The master's side of joining (behaviour 1.9; seed 003, Sending membership updates to all the existing members).

The master puts the joiner on the list, publishes, and answers the joiner when every other member has acknowledged that list, or
after two seconds. So a joiner that is told the list can rely on the others to know it.
"""

from __future__ import annotations

from backend.core.address import Address
from backend.core.cluster_profile import allows_joins
from backend.core.events import MemberAdmitted
from backend.core.membership import cluster_state, publishing, readmission, suspicion
from backend.core.membership.state import Admission, Membership
from backend.core.messages import FinalizeJoin, JoinRefused, JoinRequest, MasterIs, MembersUpdateAck
from backend.core.properties import SECOND_US

ADMISSION = "admission:"
"""Prefix of the timers that bound the wait for acknowledgements, one for each joiner."""

ACKNOWLEDGEMENT_TIMEOUT_US = 2 * SECOND_US


def on_join_request(state: Membership, now: int, sender: Address, request: JoinRequest) -> None:
    """Somebody wants to join; it asks again every second, so a request may always be ignored."""
    if state.members is None or state.claim is not None:
        return
    if not state.is_master:
        _answer_as_slave(state, now, sender, request)
        return
    present = state.members.find(sender)
    if present is not None and present.uuid == request.uuid:
        if sender not in state.admissions:
            state.send(sender, FinalizeJoin(request.uuid, state.members, state.standing))
        return
    if present is not None:
        suspicion.suspect(state, now, sender, "a new life of the same address asks to join")
    if any(member.uuid == request.uuid for member in state.members.members) or _is_stale(state, now, request):
        return
    if state.merge is not None or cluster_state.is_changing(state, now):
        return
    if not allows_joins(state.standing.state) and sender not in state.missing:
        state.send(sender, JoinRefused(f"the cluster is {state.standing.state} and takes no newcomers"))
        return
    if readmission.is_held(state, now, sender, request):
        return
    _admit(state, now, sender, request)


def on_acknowledgement(state: Membership, now: int, sender: Address, ack: MembersUpdateAck) -> None:
    """A member has the list that it was sent."""
    for admission in list(state.admissions.values()):
        if ack.version >= admission.version:
            admission.waiting.discard(sender)
            if not admission.waiting:
                _answer(state, now, admission)


def on_admission_timer(state: Membership, now: int, joiner: Address) -> None:
    """The others took too long: answer the joiner all the same."""
    admission = state.admissions.get(joiner)
    if admission is not None:
        _answer(state, now, admission)


def answer_settled(state: Membership, now: int) -> None:
    """Answer those whose last missing acknowledgement will never come, because its member is gone."""
    for admission in [one for one in state.admissions.values() if not one.waiting]:
        _answer(state, now, admission)


def _answer_as_slave(state: Membership, now: int, sender: Address, request: JoinRequest) -> None:
    if sender != state.master:
        state.send(sender, MasterIs(state.master))
    elif state.peers[sender].uuid != request.uuid:
        suspicion.suspect(state, now, sender, "a new life of the same address asks to join")


def _is_stale(state: Membership, now: int, request: JoinRequest) -> bool:
    """Whether the request is an echo of a life that has left the list just now."""
    oldest_us = now - state.settings.stale_join_prevention_us
    for uuid in [uuid for uuid, since in state.left.items() if since <= oldest_us]:
        del state.left[uuid]
    return request.uuid in state.left


def _admit(state: Membership, now: int, sender: Address, request: JoinRequest) -> None:
    assert state.members is not None
    others = set(state.peers)
    members = state.members.joined_by(sender, request.uuid, request.lite)
    publishing.install(state, now, members, state.address, "join")
    admission = Admission(sender, request.uuid, members.version, others, len(others))
    state.admissions[sender] = admission
    if not others:
        _answer(state, now, admission)
        return
    state.timers.set(ADMISSION + sender, now + ACKNOWLEDGEMENT_TIMEOUT_US)
    state.send_all(tuple(sorted(others)), publishing.update(state, wants_ack=True))


def _answer(state: Membership, now: int, admission: Admission) -> None:
    assert state.members is not None
    del state.admissions[admission.joiner]
    state.timers.clear(ADMISSION + admission.joiner)
    acknowledged = admission.expected - len(admission.waiting)
    state.note(
        now,
        MemberAdmitted(admission.joiner, admission.uuid, admission.version, acknowledged, admission.expected),
    )
    state.send(admission.joiner, FinalizeJoin(admission.uuid, state.members, state.standing))
