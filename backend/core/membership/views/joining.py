"""The joiner's side of joining through a TCP-IP join list (Hazelcast: joining; Emergent Leader).

A joiner asks every address on its join list for the master and sends its join request there until it is answered. When a round
of asking finds no master, the member with the lowest address among those found asks the others to let it form the cluster. When
a round finds no member at all, the joiner forms the cluster alone if its join list names itself or is empty, as that of a seed
node; otherwise it goes on asking until its attempts are used up (Decisions: Who may found a cluster).

A member that merges into another cluster asks that cluster's master first, and searches like any joiner when that master does not
admit it.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address, numeric_order
from quarterdeck.backend.core.causes import ListCause, Reason, UnreachableCause
from quarterdeck.backend.core.membership import cluster_state, messages
from quarterdeck.backend.core.membership.events import JoinFailed, JoinRequested, MemberStopped
from quarterdeck.backend.core.membership.facts import BecameMaster, HeldLinksProven, Joined, ListReceived
from quarterdeck.backend.core.membership.failure_detection import explicit_suspicion
from quarterdeck.backend.core.membership.split_brain.remembered_addresses import possible_addresses
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Doing, Following, Idle, JoinSearch, Leading
from quarterdeck.backend.core.membership.views import present_incarnation, publishing
from quarterdeck.backend.core.membership.views.identity import ListMetadata
from quarterdeck.backend.core.membership.views.member_list import MemberList, first_list
from quarterdeck.backend.core.properties import SECOND_US, Settings

JOIN = "join"
"""Name of the timer that asks again while joining."""

ASK_AGAIN_US = 1 * SECOND_US
LEAST_ROUND_US = 5 * SECOND_US
"""How long one round of asking waits at least for an address that neither answers nor refuses (tcp-ip connection timeout)."""

ATTEMPTS = 5
"""Attempts to join before the member gives up (Emergent Leader, maxJoinAttempts). Each forgets what the one before has found;
together they take ``hazelcast.max.join.seconds``.
"""

REQUESTS_BEFORE_NEW_SEARCH = 5
"""Join requests to one master without an answer, before other addresses are asked for the master."""


def begin_search(state: Membership, now: int, target: Address | None = None) -> None:
    """Start looking for a cluster, or form one at once when there is no other address to ask.

    `target` is the master of the cluster that this member's own has just merged into.
    """
    search = state.doing = JoinSearch(now, now + state.settings.max_join_us, state.next_token())
    if target is None:
        _new_round(state, now, search)
        return
    search.target = target
    search.target_until_us = now + state.settings.max_join_merge_target_us
    state.follow(now, target, Reason("merges", "its cluster merges into that one"))
    state.timers.set(JOIN, now + ASK_AGAIN_US)
    _request(state, now, search, target)


def on_join_timer(state: Membership, now: int) -> None:
    """Ask again once a second while joining; decide the round when it is over, and give up when the time is."""
    search = state.search
    if search is None:
        return
    state.context.act_for(state.followed or state.begun)
    if now >= search.deadline_us and search.target is None:
        _give_up(state, now, search)
        return
    state.timers.set(JOIN, now + ASK_AGAIN_US)
    attempt = min(ATTEMPTS, 1 + (now - search.begun_us) * ATTEMPTS // state.settings.max_join_us)
    if state.master is None:
        search.attempt = attempt
        if now >= search.round_ends_us:
            _decide_round(state, now, search)
        else:
            _ask_around(state, search)
    elif attempt > search.attempt and search.held is None:
        search.attempt = attempt
        _forget_master(state, now, search)
        _new_round(state, now, search)
    else:
        _ask_master(state, now, search, state.master)


def on_unreachable(state: Membership, now: int, address: Address, found: Reason[UnreachableCause]) -> None:
    """Note that the transport could not reach `address`."""
    search = state.search
    if search is None:
        return
    search.unreachable[address] = found
    search.without_master.discard(address)
    if state.master == address:
        if now >= search.target_until_us:
            _forget_master(state, now, search)
    elif state.master is None:
        _decide_when_heard_of_all(state, now, search)


def on_question_of_joiner(
    state: Membership, search: JoinSearch, now: int, sender: Address, question: messages.WhoIsMaster
) -> None:
    """Note another joiner, which knows no master either: its answer need not be awaited."""
    if sender in search.targets:
        search.unreachable.pop(sender, None)
        search.without_master.add(sender)
    if state.master != sender:
        state.send(sender, messages.MasterIs(None, question.token))


def on_who_is_master(
    state: Membership, doing: Following | Leading, now: int, sender: Address, question: messages.WhoIsMaster
) -> None:
    """Answer a joiner that asks a member that has joined."""
    if state.master in (state.address, sender) and present_incarnation.is_another(state, sender, question.uuid):
        present_incarnation.check(state, now, sender, question.uuid)
    if state.master != sender:
        state.send(sender, messages.MasterIs(state.master, question.token))


def on_master_is(state: Membership, search: JoinSearch, now: int, sender: Address, answer: messages.MasterIs) -> None:
    """Ask the master that a member names, or note that there is none yet."""
    if answer.master == state.address or answer.token != search.token:
        return
    search.unreachable.pop(sender, None)
    if answer.master is not None and answer.master != sender:
        search.failures[sender] = f"it names {answer.master} as master"
    if answer.master is None:
        search.without_master.add(sender)
        if state.master is None:
            _decide_when_heard_of_all(state, now, search)
    elif state.master is None or (state.master == sender and answer.master != sender):
        state.follow(now, answer.master, Reason("named", f"{sender} names it"), named_by=sender)
        search.requests_to_master = 0
        search.bid_votes = None
        search.held = None
        _request(state, now, search, answer.master)


def on_join_refused(
    state: Membership, search: JoinSearch, now: int, sender: Address, refusal: messages.JoinRefused
) -> None:
    """Note that the master refuses this joiner now."""
    if sender == state.master and refusal.token == search.token:
        search.unreachable[sender] = Reason("rejected", refusal.reason)
        _forget_master(state, now, search)


def on_foreign_join_answer(
    state: Membership, doing: Doing, now: int, sender: Address, final: messages.FinalizeJoin
) -> None:
    """Ask a member that admits this one, and is not its master, to treat it as dead.

    See Cluster Service Consistency Improvements, Explicit Suspicion.
    """
    if sender != state.master:
        claimed = ListMetadata(sender, final.members.master.uuid, sender, final.members.version)
        explicit_suspicion.send(state, now, claimed, "foreign-join-answer")


def on_finalize_join(
    state: Membership, search: JoinSearch, now: int, sender: Address, final: messages.FinalizeJoin
) -> None:
    """Join the cluster: the master has admitted this member.

    A master that this joiner has asked may answer late, when the joiner has given it up and looks for another: the admission
    counts.
    """
    members, admitted = final.members, state.context.cause
    was_asked = sender in search.asked_to_join and final.to_uuid == state.uuid
    if sender != state.master and not was_asked:
        on_foreign_join_answer(state, search, now, sender, final)
    elif final.to_uuid == state.uuid and members.holds(state.address, state.uuid):
        cluster_state.adopt(state, now, final.standing, "joined", "the cluster it joins is so", new_lineage=True)
        early = search.early_update
        state.context.act_for(admitted)
        state.follow(now, sender, Reason("named", "it let this member in"), named_by=sender)
        _become_member(state, now, members, sender, "joined")
        state.send(sender, messages.MembersUpdateAck(members.version))
        if early is not None and early.members.master == members.master:
            state.report(ListReceived(sender, early))


def _request(state: Membership, now: int, search: JoinSearch, master: Address) -> None:
    search.requests_to_master += 1
    search.asked_to_join.add(master)
    state.record(now, JoinRequested(master, search.attempt))
    proven = tuple(sorted(search.held.proven)) if search.held else ()
    request = messages.JoinRequest(
        state.uuid,
        state.lite,
        proven,
        state.seen_version,
        state.member_configuration.zone,
        state.settings.partitioning,
        search.token,
    )
    state.send(master, request)


def on_held_links_proven(state: Membership, now: int, fact: HeldLinksProven) -> None:
    """Send the join request again, since nothing holds this joiner back any more."""
    if state.search is not None and state.master is not None:
        _request(state, now, state.search, state.master)


def on_late_bid(
    state: Membership, doing: Following | Leading, now: int, sender: Address, bid: messages.FormationBid
) -> None:
    """Answer a joiner that wants to form the cluster, though there is one already."""
    on_who_is_master(state, doing, now, sender, messages.WhoIsMaster(bid.uuid, bid.token))


def on_formation_bid(
    state: Membership, search: JoinSearch, now: int, sender: Address, bid: messages.FormationBid
) -> None:
    """Vote on a joiner that wants to form the cluster.

    Joiners that know no other master and do not bid themselves agree.
    """
    granted = search.bid_votes is None and state.master in (None, sender) and search.granted_to in (None, sender)
    if granted:
        search.granted_to = sender
    state.send(sender, messages.FormationVote(granted, bid.token, bid.number))


def on_formation_vote(
    state: Membership, search: JoinSearch, now: int, sender: Address, vote: messages.FormationVote
) -> None:
    """Count an answer to this member's own bid: all must grant it."""
    if search.bid_votes is None or sender not in search.bid_votes:
        return
    if (vote.token, vote.number) != (search.token, search.bids):
        return  # it was given to another bid
    if not vote.granted:
        search.bid_votes = None
        _new_round(state, now, search)
        return
    search.bid_votes[sender] = True
    if all(search.bid_votes.values()):
        _form(state, now)


def round_us(settings: Settings) -> int:
    """Return how long one round of asking waits for an address that is silent.

    A question and its answer may each be as late as any message; but no round lasts longer than an attempt.
    """
    answer_us = min(2 * settings.max_no_heartbeat_us + ASK_AGAIN_US, settings.max_join_us // ATTEMPTS - ASK_AGAIN_US)
    return max(LEAST_ROUND_US, answer_us)


def _new_round(state: Membership, now: int, search: JoinSearch) -> None:
    search.round_ends_us = now + round_us(state.settings)
    _keep_failures(search)
    search.bid_votes = None
    search.granted_to = None
    state.timers.set(JOIN, now + ASK_AGAIN_US)
    search.targets = possible_addresses(state, now)
    if not search.targets:
        _form(state, now)
    else:
        _ask_around(state, search)


def _ask_around(state: Membership, search: JoinSearch) -> None:
    waiting = tuple(address for address in search.targets if address not in search.unreachable)
    question = messages.WhoIsMaster(state.uuid, search.token) if search.bid_votes is None else _bid(state, search)
    state.send_all(waiting, question, state.begun)


def _decide_when_heard_of_all(state: Membership, now: int, search: JoinSearch) -> None:
    heard = search.unreachable.keys() | search.without_master
    if search.bid_votes is None and all(address in heard for address in search.targets):
        _decide_round(state, now, search)


def _decide_round(state: Membership, now: int, search: JoinSearch) -> None:
    """Act on a round that found no master: bid, leave it to a lower address, form the cluster alone, or begin another round."""
    if search.bid_votes is not None:
        _new_round(state, now, search)
        return
    for address in search.targets:
        if address not in search.without_master:
            waited = f"no answer within {round_us(state.settings) // SECOND_US} s"
            search.unreachable.setdefault(address, Reason("no-answer", waited))
    if not search.without_master:
        if _may_form_alone(state, search):
            _form(state, now)
        elif now >= search.round_ends_us:
            _new_round(state, now, search)
        else:
            search.round_ends_us = now
    elif _refused(state, search, "rejected-by-cluster"):
        if now >= search.round_ends_us:  # whom a cluster refuses founds none with others whom it refuses
            _new_round(state, now, search)
    elif numeric_order(state.address) < min(numeric_order(address) for address in search.without_master):
        search.bid_votes = dict.fromkeys(sorted(search.without_master), False)
        search.round_ends_us = now + round_us(state.settings)
        search.bids += 1
        state.send_all(tuple(search.bid_votes), _bid(state, search))
    elif now >= search.round_ends_us:
        _new_round(state, now, search)


def _may_form_alone(state: Membership, search: JoinSearch) -> bool:
    """Return whether this member may form a cluster although none of the addresses that it asked has answered.

    A host that does not resolve counts as not named, and so does a cluster of another name. A member that is refused is set up
    wrongly, and a cluster of its own would hide that.
    """
    if _refused(state, search, "rejected", "rejected-by-cluster"):
        return False
    causes = {address: search.unreachable[address].cause for address in search.targets}
    others = [cause for cause in causes.values() if cause not in ("unresolvable", "other-cluster", "itself")]
    if not others:
        return True
    named = [entry for entry in state.join_list if causes.get(entry) != "unresolvable"]
    return not named or any(entry == state.address or causes.get(entry) == "itself" for entry in named)


def _refused(state: Membership, search: JoinSearch, *causes: UnreachableCause) -> bool:
    """Return whether one of the addresses that it asked is known to refuse it, for one of these causes."""
    return any(target in state.unusable and state.unusable[target].cause in causes for target in search.targets)


def _bid(state: Membership, search: JoinSearch) -> messages.FormationBid:
    return messages.FormationBid(state.uuid, search.token, search.bids)


def _ask_master(state: Membership, now: int, search: JoinSearch, master: Address) -> None:
    """Send the request to the named master again, unless it makes this joiner wait. Give the master up when it is silent."""
    if search.held is not None:
        if now >= search.held.next_probe_us:
            search.held.proven.clear()
        elif search.held.missing:
            return
    if search.requests_to_master >= REQUESTS_BEFORE_NEW_SEARCH and now >= search.target_until_us:
        reason = f"no answer to {search.requests_to_master} join requests"
        search.unreachable[master] = Reason("no-answer", reason)
        _forget_master(state, now, search)
        return
    _request(state, now, search, master)


def _forget_master(state: Membership, now: int, search: JoinSearch) -> None:
    state.master = None
    search.targets = possible_addresses(state, now)
    search.held = None
    search.requests_to_master = 0
    search.bid_votes = None
    search.round_ends_us = now + round_us(state.settings)
    _keep_failures(search)


def _keep_failures(search: JoinSearch) -> None:
    """Remember at the end of a round why no address helped, and ask all again."""
    search.failures.update(dict.fromkeys(sorted(search.without_master), "it knows no master"))
    search.failures.update((address, found.text) for address, found in search.unreachable.items())
    search.without_master.clear()
    search.unreachable.clear()


def _form(state: Membership, now: int) -> None:
    state.follow(now, state.address, Reason("forms-cluster", "it forms the cluster", state.begun))
    members = first_list(state.address, state.uuid, state.lite, state.member_configuration.zone)
    _become_member(state, now, members, state.address, "formed")


def _become_member(state: Membership, now: int, members: MemberList, author: Address, cause: ListCause) -> None:
    state.doing = Leading() if state.master == state.address else Following()
    state.timers.clear(JOIN)
    publishing.install(state, now, members, author, cause)
    state.joined_us = state.last_round_us = now
    state.report(Joined())
    if state.is_master:
        state.report(BecameMaster())


def _give_up(state: Membership, now: int, search: JoinSearch) -> None:
    _keep_failures(search)
    reasons = dict.fromkeys(search.targets, "no answer") | search.failures
    state.doing = Idle()
    state.record(now, JoinFailed(reasons))
    tried = "; ".join(f"{address}: {reason}" for address, reason in reasons.items())
    reason = f"could not join in {ATTEMPTS} attempts within {state.settings.max_join_us / SECOND_US:g} s ({tried})"
    state.record(now, MemberStopped(reason, "could-not-join"))
    state.halt(reason, failed=True)
