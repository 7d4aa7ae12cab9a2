"""The mastership claim (Cluster Service Consistency Improvements, Mastership Claim Process; Hazelcast: mastership claim).

A slave that suspects every member older than itself becomes the claimant: it asks all it does not suspect for their lists, asks
also those it learns of in newer lists, and makes of the answers a list newer than any it has seen. No member loses its place
because a request or an answer gets lost: the claimant asks again until it is answered, refused, or out of time. A member that
suspects the old master only a little later answers then. Meanwhile the claimant sends heartbeats to those that have accepted, on
its list or not, and watches all that it asked.

Why "not yet" is no refusal:

1. A leads B, C and D, and dies. B suspects A first, claims mastership and asks C and D.
2. D suspects A and accepts. C trusts A still: it answers "not yet".
3. If B took that for a refusal, its list would be BD. C would suspect A a moment later, and be on no list.
4. So B waits for C. As soon as C suspects A it accepts the question that it has put off, and B publishes BCD.
"""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import ClaimEndCause, Reason
from quarterdeck.backend.core.membership import cluster_state
from quarterdeck.backend.core.membership.events import ClaimAbandoned, ClaimAnswered, ClaimFinished, ClaimStarted
from quarterdeck.backend.core.membership.facts import BecameMaster, SuspectedFact, SuspicionEnded
from quarterdeck.backend.core.membership.failure_detection import suspicion
from quarterdeck.backend.core.membership.failure_detection.failure_detector import Peer, detector
from quarterdeck.backend.core.membership.failure_detection.silence import await_confirmations, discount_own_pause
from quarterdeck.backend.core.membership.messages import ClaimAccepted, ClaimRefused, MastershipClaim
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Claim, Doing, Following, Idle, Leading
from quarterdeck.backend.core.membership.views import publishing
from quarterdeck.backend.core.membership.views.member_list import MemberList, mint_lineage
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US

CLAIM = "claim"
"""Name of the timer that asks again those who have not settled their answer."""

FIRST_ASK_AGAIN_US = 100 * MILLISECOND_US
ASK_AGAIN_US = 1 * SECOND_US
"""The longest delay between two requests. The first ones follow one another quickly, since the others will soon suspect the old
master, too.
"""


def on_suspected(state: Membership, now: int, fact: SuspectedFact) -> None:
    """Begin a claim if all older members are suspected; a claim that runs may have no answer left to wait for."""
    if state.claim is not None:
        finish_when_answered(state, now)
    else:
        _start_if_due(state, now)
        _answer_put_off(state, now)


def on_suspicion_ended(state: Membership, now: int, fact: SuspicionEnded) -> None:
    """Ask a member that this claimant trusts again, as if it had never suspected it."""
    if state.claim is not None:
        _ask_newly_known(state, now, state.claim)


def _start_if_due(state: Membership, now: int) -> None:
    members = state.members
    if members is None or not isinstance(state.doing, Following):
        return
    older = members.older_than(state.address)
    if not all(member.uuid in state.suspicions for member in older):
        return
    deadline_us = now + state.settings.mastership_claim_timeout_us
    claim = state.doing = Claim(_from_on(members, state.address), deadline_us, state.next_token())
    latest = state.latest_suspicion
    state.follow(now, state.address, Reason("suspects-older", "it suspects every older member", latest))
    asked = tuple(address for address in state.peers if not state.suspects(address))
    state.record(now, ClaimStarted(members.version, state.suspected_addresses, asked), latest)
    claim.started = state.context.cause
    _ask_newly_known(state, now, claim)
    state.timers.set(CLAIM, now + FIRST_ASK_AGAIN_US)
    finish_when_answered(state, now)


def on_claim_timer(state: Membership, now: int) -> None:
    """Ask again the members that have neither accepted nor refused; give up on them when the time is over."""
    discount_own_pause(state, now)
    claim = state.claim
    if claim is None:
        return
    if now >= claim.deadline_us:
        _finish(state, now, claim)
        return
    for address in _outstanding(state, claim):
        _ask(state, claim, address)
    claim.delay_us = min(2 * claim.delay_us or 2 * FIRST_ASK_AGAIN_US, ASK_AGAIN_US)
    state.timers.set(CLAIM, min(claim.deadline_us, now + claim.delay_us))


def on_claim(state: Membership, doing: Doing, now: int, sender: Address, request: MastershipClaim) -> None:
    """Accept or refuse the mastership that another member claims, and send it this member's list."""
    refusal = _why_refuse(state, sender, request)
    state.put_off_claim = (sender, request) if refusal is not None and refusal.retry else None
    if refusal is not None:
        state.send(sender, refusal)
        return
    if not suspicion.clear(state, now, sender, "claim-accepted", "its mastership claim is accepted"):
        state.send(sender, _refusal(request, "a younger member's claim was accepted before"))
        return
    state.peers[sender].detector.heard(now)
    state.follow(now, sender, Reason("claim-accepted", "its mastership claim is accepted"))
    assert state.members is not None
    state.send(sender, ClaimAccepted(_from_on(state.members, sender), state.standing, request.token, state.uuid))


def _answer_put_off(state: Membership, now: int) -> None:
    """Accept a claim that was refused for now, as soon as this member suspects all older ones."""
    if state.put_off_claim is not None and _why_refuse(state, *state.put_off_claim) is None:
        on_claim(state, state.doing, now, *state.put_off_claim)


def on_claim_accepted(state: Membership, claim: Claim, now: int, sender: Address, answer: ClaimAccepted) -> None:
    """Count a follower: its list may be newer, and may name members that this one does not know yet."""
    if not _is_awaited(claim, sender, answer):
        return
    answered = state.context.cause
    claim.accepted.add(sender)
    state.context.heartbeat_round = None  # it takes this claimant for its master, and wants to hear of it
    cluster_state.adopt(state, now, answer.standing, "claim-answer", f"{sender} has heard of it")
    state.record(now, ClaimAnswered(sender, "accepted", answer.members.version, ""), answered)
    if answer.members.version > claim.latest.version:
        claim.latest = answer.members
        _ask_newly_known(state, now, claim)
    finish_when_answered(state, now)


def on_claim_refused(state: Membership, claim: Claim, now: int, sender: Address, answer: ClaimRefused) -> None:
    """Leave out a member that refuses; "not yet" is answered by asking again at the next timer."""
    if not _is_awaited(claim, sender, answer):
        return
    if claim.refusals.get(sender) != answer.reason:
        claim.refusals[sender] = answer.reason
        state.record(now, ClaimAnswered(sender, "retry" if answer.retry else "refused", 0, answer.reason))
    if not answer.retry:
        claim.refused.add(sender)
        finish_when_answered(state, now)


def heard_of_asked(state: Membership, now: int, sender: Address, uuid: str) -> bool:
    """Note a heartbeat of a member off this claimant's list. Return whether the claim has asked that very incarnation."""
    peer = state.claim.watched.get(sender) if state.claim is not None else None
    if peer is None or peer.uuid != uuid:
        return False
    peer.detector.heard(now)
    return True


def followers_off_the_list(claim: Claim) -> Iterator[tuple[Address, Peer]]:
    """Return the members that have accepted and are not on the claimant's own list: they need its heartbeats, too."""
    return ((address, peer) for address, peer in claim.watched.items() if address in claim.accepted)


def look_at_asked(state: Membership, now: int) -> None:
    """Give up silent members off the claimant's own list; those on it are watched like any member."""
    claim = state.doing
    if type(claim) is not Claim:
        return
    silent = [address for address, peer in claim.watched.items() if not peer.detector.alive(now)]
    for address in silent:
        peer = claim.watched.pop(address)
        reason = f"no heartbeat for {peer.detector.silence_us(now) / SECOND_US:.1f} s"
        state.record(now, ClaimAnswered(address, "refused", 0, reason), claim.started)
        claim.accepted.discard(address)
        claim.refused.add(address)
    if silent:
        state.context.heartbeat_round = None
        finish_when_answered(state, now)


def finish_when_answered(state: Membership, now: int) -> None:
    """Finish the claim as soon as no answer is outstanding."""
    claim = state.claim
    if claim is not None and not _outstanding(state, claim):
        _finish(state, now, claim)


def abandon(state: Membership, now: int, cause: ClaimEndCause, reason: str) -> None:
    """Drop a running claim without a result."""
    claim = state.claim
    if claim is not None:
        started, state.doing = claim.started, Idle()
        state.timers.clear(CLAIM)
        state.record(now, ClaimAbandoned(reason, cause), started)


def _why_refuse(state: Membership, claimant: Address, request: MastershipClaim) -> ClaimRefused | None:
    members = state.members
    if request.to_uuid != state.uuid or members is None:
        return _refusal(request, "the member that was asked is no longer there")
    if state.master == state.address:
        return _refusal(request, "the member that was asked is master itself, or claims it")
    if not members.holds(claimant, request.uuid):
        return _refusal(request, "the claimant is not on the list of the member that was asked")
    expected = {state.uuid, *state.suspicions}
    trusted = [older.address for older in members.older_than(claimant) if older.uuid not in expected]
    if trusted:
        return _refusal(request, f"it does not suspect {', '.join(trusted)}, older than the claimant", retry=True)
    if any(older.address == state.address for older in members.older_than(claimant)):
        return _refusal(request, "the member that was asked is older than the claimant")
    return None


def _refusal(request: MastershipClaim, reason: str, *, retry: bool = False) -> ClaimRefused:
    return ClaimRefused(retry, reason, request.token, request.to_uuid)


def _is_awaited(claim: Claim, sender: Address, answer: ClaimAccepted | ClaimRefused) -> bool:
    """Return whether the claim waits for this answer of this incarnation.

    It does not if the answer is late, or to an earlier claimant.
    """
    is_answer = answer.token == claim.token and claim.asked.get(sender) == answer.asked_uuid
    return is_answer and sender not in claim.accepted


def _outstanding(state: Membership, claim: Claim) -> list[Address]:
    known = {member.address: member.uuid for member in claim.latest.members}
    settled = claim.accepted | claim.refused
    open_questions = ((address, uuid) for address, uuid in claim.asked.items() if address not in settled)
    return [address for address, uuid in open_questions if uuid not in state.suspicions and known.get(address) == uuid]


def _ask_newly_known(state: Membership, now: int, claim: Claim) -> None:
    for member in claim.latest.members:
        is_new = claim.asked.get(member.address) != member.uuid
        if is_new and member.uuid not in state.suspicions and member.address != state.address:
            claim.asked[member.address] = member.uuid
            if member.address in claim.accepted | claim.refused:
                answered = ClaimAnswered(member.address, "retry", 0, "another incarnation is there now")
                state.record(now, answered, claim.started)
                claim.accepted.discard(member.address)
                claim.refused.discard(member.address)
            if member.address not in state.peers:
                claim.watched[member.address] = Peer(member.uuid, detector(state.settings, now), now)
            _ask(state, claim, member.address)


def _ask(state: Membership, claim: Claim, address: Address) -> None:
    state.send(address, MastershipClaim(state.uuid, claim.asked[address], claim.token), claim.started)


def _finish(state: Membership, now: int, claim: Claim) -> None:
    state.doing = Leading()
    state.timers.clear(CLAIM)
    staying = tuple(
        member
        for member in claim.latest.members
        if member.address == state.address
        or (
            member.address in claim.accepted
            and claim.asked[member.address] == member.uuid
            and member.uuid not in state.suspicions
        )
    )
    version = claim.latest.version + 1
    members = MemberList(version, staying, mint_lineage(state.uuid, version))
    left_out = tuple(address for address in claim.asked if members.find(address) is None)
    state.record(now, ClaimFinished(version, members.lineage, members.addresses[1:], left_out), claim.started)
    publishing.install(state, now, members, state.address, "mastership claim")
    state.report(BecameMaster())
    state.followed_change.locked = None
    await_confirmations(state, now)
    cluster_state.thaw_after_claim(state, now)
    publishing.publish(state)


def _from_on(members: MemberList, address: Address) -> MemberList:
    return MemberList(members.version, members.from_on(address), members.lineage)
