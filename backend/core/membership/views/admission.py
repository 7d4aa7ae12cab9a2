"""The master's side of joining.

See Hazelcast: answering a join request; Emergent Leader, Sending membership updates to all the existing members.

The master puts the joiner on the list, publishes, and answers the joiner when every other member has acknowledged that list, or
after two seconds. So a joiner that gets its answer can rely on the others to know it. Those that ask in the meantime are admitted
together afterwards, each with a version of its own but all in one publication, so a storm of joiners costs a few lists only.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import allows_joins
from quarterdeck.backend.core.membership import cluster_state, messages
from quarterdeck.backend.core.membership.events import MemberAdmitted
from quarterdeck.backend.core.membership.facts import AdmissionEnded, AliveConfirmed, Removed
from quarterdeck.backend.core.membership.message_checks import LEAD
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Admission, Following, Leading
from quarterdeck.backend.core.membership.views import present_incarnation, publishing, readmission

ADMISSION = "admission"
"""Name of the timer that bounds the wait for acknowledgements."""


def on_join_request(
    state: Membership,
    leading: Leading,
    now: int,
    sender: Address,
    request: messages.JoinRequest,
    *,
    is_alive: bool = False,
) -> None:
    """Note that a joiner asks to be admitted; it asks again every second, so a request may always be ignored.

    `is_alive`: it has answered since it asked.
    """
    if _may_join(state, leading, now, sender, request, is_alive=is_alive):
        state.asking_to_join[sender] = request
        if leading.admission is None:
            _admit_all(state, leading, now)


def on_request_to_slave(
    state: Membership, following: Following, now: int, sender: Address, request: messages.JoinRequest
) -> None:
    """Name the master to a joiner that asks a slave."""
    if sender != state.master:
        state.send(sender, messages.MasterIs(state.master, request.token))
    elif present_incarnation.is_another(state, sender, request.uuid):
        present_incarnation.check(state, now, sender, request.uuid)


def on_acknowledgement(
    state: Membership, leading: Leading, now: int, sender: Address, ack: messages.MembersUpdateAck
) -> None:
    """Note that a member has the list that it was sent."""
    admission = leading.admission
    if admission is not None and ack.version >= admission.version:
        admission.waiting.discard(sender)
        _answer_when_settled(state, leading, now, admission)


def on_admission_timer(state: Membership, now: int) -> None:
    """Answer the joiners although the others took too long."""
    leading = state.doing
    if isinstance(leading, Leading) and leading.admission is not None:
        _answer(state, leading, now, leading.admission)


def on_removed(state: Membership, now: int, fact: Removed) -> None:
    """Drop members that left from the joiners and from those that must acknowledge."""
    leading, admission = state.doing, state.admission
    if isinstance(leading, Leading) and admission is not None:
        for address in fact.gone:
            admission.joiners.pop(address, None)
        admission.waiting -= fact.gone
        _answer_when_settled(state, leading, now, admission)


def on_alive_confirmed(state: Membership, now: int, fact: AliveConfirmed) -> None:
    """Judge the request again of an incarnation that has shown that it is alive, unless the other one is still listed."""
    leading = state.doing
    if isinstance(leading, Leading) and not present_incarnation.is_another(state, fact.address, fact.request.uuid):
        on_join_request(state, leading, now, fact.address, fact.request, is_alive=True)


def on_admission_ended(state: Membership, now: int, fact: AdmissionEnded) -> None:
    """Judge the requests that came meanwhile, for much may have changed."""
    leading = state.doing
    if not isinstance(leading, Leading):
        return
    asking, state.asking_to_join = state.asking_to_join, {}
    # Those held back come last: they have to prove their links to the others that are admitted with them.
    for address in sorted(asking, key=state.held_back.__contains__):
        if _may_join(state, leading, now, address, asking[address], is_alive=True):
            state.asking_to_join[address] = asking[address]
    if state.asking_to_join:
        _admit_all(state, leading, now)


def _may_join(
    state: Membership, leading: Leading, now: int, sender: Address, request: messages.JoinRequest, *, is_alive: bool
) -> bool:
    """Return whether the joiner is admitted. If not, it has been answered here, or asks again anyway."""
    assert state.members is not None
    just_left = present_incarnation.just_left(state, now)
    present = state.members.find(sender)
    if present is not None and present.uuid == request.uuid:
        if leading.admission is None or sender not in leading.admission.joiners:
            state.send(sender, messages.FinalizeJoin(request.uuid, state.members, state.standing))
        return False
    if request.uuid in state.members.uuids or request.uuid in just_left:
        return False  # an echo
    if any(other.uuid == request.uuid for address, other in state.asking_to_join.items() if address != sender):
        return False  # one incarnation has one address
    if present_incarnation.is_another(state, sender, request.uuid):
        present_incarnation.check(state, now, sender, request.uuid, request)
        return False
    if leading.merge is not None or cluster_state.is_changing(state, now):
        return False
    ours = state.settings.partitioning
    if request.partitioning and request.partitioning != ours:
        reason = f"the cluster has {ours}, the newcomer is set to {request.partitioning}"
        state.send(sender, messages.JoinRefused(reason, request.token))
        return False
    if not allows_joins(state.standing.state) and sender not in state.missing:
        reason = f"the cluster is {state.standing.state} and takes no newcomers"
        state.send(sender, messages.JoinRefused(reason, request.token))
        return False
    if readmission.is_held(state, now, sender, request):
        return False
    if not is_alive and sender in just_left.values():
        present_incarnation.check(state, now, sender, request.uuid, request)
        return False
    return True


def _admit_all(state: Membership, leading: Leading, now: int) -> None:
    assert state.members is not None
    others = set(state.peers)
    joiners = {address: request.uuid for address, request in state.asking_to_join.items()}
    members = state.members
    for address, request in state.asking_to_join.items():
        seen_version = min(request.seen_version, members.version + LEAD)  # no peer raises the version for ever
        members = members.joined_by(address, request.uuid, request.lite, seen_version, request.zone)
    state.asking_to_join.clear()
    admission = leading.admission = Admission(joiners, members.version, others, len(others))
    publishing.install(state, now, members, state.address, "join")
    admission.listed = state.listed
    state.timers.set(ADMISSION, now + publishing.ACKNOWLEDGEMENT_TIMEOUT_US)
    state.send_all(tuple(sorted(others)), publishing.update(state, wants_ack=True))
    _answer_when_settled(state, leading, now, admission)


def _answer_when_settled(state: Membership, leading: Leading, now: int, admission: Admission) -> None:
    if not admission.waiting:
        _answer(state, leading, now, admission)


def _answer(state: Membership, leading: Leading, now: int, admission: Admission) -> None:
    assert state.members is not None
    leading.admission = None
    state.timers.clear(ADMISSION)
    acknowledged = admission.expected - len(admission.waiting)
    for address, uuid in admission.joiners.items():
        admitted = MemberAdmitted(address, uuid, admission.version, acknowledged, admission.expected)
        state.record(now, admitted, admission.listed)
        state.send(address, messages.FinalizeJoin(uuid, state.members, state.standing))
    state.report(AdmissionEnded())
