"""Looking for other clusters to heal a split.

See Split-brain Recovery Improvements; Emergent Leader, Recovering from split brain; Hazelcast: split brain.

Every master looks now and then at all addresses where another cluster may be: its join list and those it remembers. It shows its
cluster to the member there. Another master shows its own in turn, and both come to the same decision; a slave names its master,
which is asked at once. The loser acts whichever side began. A master always knows why it is not merging.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Evidence, ObstacleCause, Reason
from quarterdeck.backend.core.cluster_profile import (
    ClusterProfile,
    ClusterStanding,
    ClusterState,
    ProfiledMember,
    allows_joins,
)
from quarterdeck.backend.core.membership import cluster_state
from quarterdeck.backend.core.membership.events import MergeVerdict, NotMerging, SearchPlanned
from quarterdeck.backend.core.membership.facts import BecameMaster, EvidenceFound, Installed, MergeDecided
from quarterdeck.backend.core.membership.failure_detection import explicit_suspicion
from quarterdeck.backend.core.membership.messages import MasterIs, SplitBrainAnswer, SplitBrainProbe
from quarterdeck.backend.core.membership.split_brain import remembered_addresses
from quarterdeck.backend.core.membership.split_brain.merge_decision import MergeDecision, decide_merge
from quarterdeck.backend.core.membership.split_brain.remembered_addresses import possible_addresses, remember_contact
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Doing, Following, Leading
from quarterdeck.backend.core.membership.views import readmission
from quarterdeck.backend.core.membership.views.identity import ListMetadata

NOTHING: Reason[ObstacleCause] = Reason("", "")
"""Nothing is known to be in the way, or not any more."""

SEARCH = "search"
"""Name of the timer of the search for other clusters."""

ANNOUNCED_WITHIN = 4
"""A search that is off by less than this part of the time between two of them counts as announced."""


def on_mastership(state: Membership, now: int, fact: BecameMaster) -> None:
    """Plan the searches of a new master, the first not before its delay since it joined is over."""
    settings = state.settings
    first_us = state.joined_us + settings.merge_first_run_delay_us
    if now != state.joined_us:
        first_us = max(first_us, now + settings.merge_next_run_delay_us)
    plan_search(state, now, first_us)


def plan_search(state: Membership, now: int, due_us: int) -> None:
    """Look for other clusters at `due_us`, and record that unless it follows from what was announced before."""
    state.timers.set(SEARCH, due_us)
    announced_us, every_us = state.other_clusters.announced
    if every_us == state.settings.merge_next_run_delay_us:
        off_us = (due_us - announced_us) % every_us
        if min(off_us, every_us - off_us) <= every_us // ANNOUNCED_WITHIN:
            return
    state.other_clusters.announced = due_us, state.settings.merge_next_run_delay_us
    planned = SearchPlanned(due_us - now, state.settings.merge_next_run_delay_us)
    state.record(now, planned, state.context.cause or state.followed)


def on_search_timer(state: Membership, now: int) -> None:
    """Search again. The state of a cluster that is still frozen for a merge that came to nothing is restored first."""
    leading, thawed = state.doing, state.standing.thawed
    if isinstance(leading, Leading):
        if thawed is not None and leading.merge is None and leading.state_change is None:
            cluster_state.begin_change(state, leading, now, ClusterStanding(thawed))
        search(state, leading, now)
    plan_search(state, now, now + state.settings.merge_next_run_delay_us)


def search(state: Membership, leading: Leading, now: int) -> None:
    """Show this cluster to all members that may belong to another; or record why not. A cluster that merges does not search."""
    if leading.merge is not None:
        return
    obstacle = _obstacle(state, leading)
    if obstacle is not None:
        state.other_clusters.unanswered = set()
        explain(state, now, obstacle)
        return
    readmission.forget_old(state, now)
    candidates = tuple(address for address in possible_addresses(state, now) if address not in state.peers)
    if not candidates:
        # A cluster that misses no member has none to look for: what has come back, stands on its list again.
        misses = any(left.address not in state.peers for left in state.left.values())
        known = "every address that it knows is a member already; edit the join list to name others"
        explain(state, now, Reason("nobody-known", known) if misses else NOTHING)
    elif state.other_clusters.unanswered >= set(candidates):
        named = ", ".join(remembered_addresses.described(state, address) for address in candidates)
        explain(state, now, Reason("nobody-answers", f"nobody answers at {named}"), silent=candidates)
    elif state.other_clusters.unanswered.isdisjoint(candidates):  # else those asked for the first time may answer
        explain(state, now, NOTHING)
    state.other_clusters.unanswered = set(candidates)
    state.send_all(candidates, SplitBrainProbe(profile(state)))


def profile(state: Membership, *, cluster_state: ClusterState | None = None) -> ClusterProfile:
    """Return what this master shows of its cluster, with `cluster_state` in place of one that is only for a merge."""
    assert state.members is not None
    members = state.members.members
    return ClusterProfile(
        address=state.address,
        uuid=state.uuid,
        cluster_name=state.member_configuration.cluster_name,
        state=cluster_state or state.standing.state,
        members=tuple(ProfiledMember(member.address, member.uuid, member.lite) for member in members),
        list_version=state.members.version,
        data_member_count=sum(not member.lite for member in members),
        partition_count=str(state.settings.partition_count),
        partition_groups=state.settings.grouping,
    )


def explain(
    state: Membership,
    now: int,
    reason: Reason[ObstacleCause],
    remote: Address | None = None,
    silent: tuple[Address, ...] = (),
) -> None:
    """Remember why this master is not merging (into the cluster of `remote`), and record it when it has changed.

    An empty reason: nothing is in the way any more.
    """
    if state.other_clusters.not_merging.get(remote, "") != reason.text:
        state.other_clusters.not_merging[remote] = reason.text
        state.record(now, NotMerging(reason.text, remote, reason.cause, silent), reason.because)


def _is_answered(state: Membership, now: int, sender: Address) -> None:
    """Note that a member that was asked at the last search answers: so there is a member to merge with."""
    if sender in state.other_clusters.unanswered:
        state.other_clusters.unanswered.discard(sender)
        explain(state, now, NOTHING)


def on_installed(state: Membership, now: int, fact: Installed) -> None:
    """Forget what was found about the clusters of newcomers: they have come in, and may split off again."""
    for member in fact.newcomers:
        state.other_clusters.verdicts.pop(member.address, None)
        state.other_clusters.not_merging.pop(member.address, None)


def on_probe_of_slave(state: Membership, _: Following, now: int, sender: Address, probe: SplitBrainProbe) -> None:
    """Name the own master to the master of another cluster."""
    if state.settings.helpful_answers and state.master != sender:
        state.send(sender, MasterIs(state.master))


def on_probe(state: Membership, leading: Leading, now: int, sender: Address, probe: SplitBrainProbe) -> None:
    """Judge the cluster that another master shows. A master that is still on this list has split off unnoticed."""
    remote = probe.profile
    peer = state.peers.get(sender)
    if peer is not None:
        if peer.uuid == remote.uuid:
            found = Evidence("leads-another-cluster", "it leads a cluster of its own")
            state.report(EvidenceFound({sender: found}))
        return
    remember_contact(state, now, sender)
    decision = judge(state, now, remote)
    state.send(sender, SplitBrainAnswer(profile(state)))
    if decision.decision == "local-merges" and state.settings.helpful_answers and _obstacle(state, leading) is None:
        state.send(sender, SplitBrainProbe(profile(state)))  # its answer shows that it can be reached


def on_answer(state: Membership, leading: Leading, now: int, sender: Address, answer: SplitBrainAnswer) -> None:
    """Judge the cluster of another master that answers."""
    _is_answered(state, now, sender)
    if sender in state.peers:
        return
    remember_contact(state, now, sender)
    if judge(state, now, answer.profile).decision == "local-merges":
        state.report(MergeDecided(answer.profile))


def on_master_named_to_slave(state: Membership, doing: Doing, now: int, sender: Address, answer: MasterIs) -> None:
    """Remember the master of another cluster: this member asks it if it becomes master."""
    if answer.master is not None:
        remember_contact(state, now, answer.master)


def on_master_named(state: Membership, leading: Leading, now: int, sender: Address, answer: MasterIs) -> None:
    """Ask the master that a member of another cluster names at once."""
    master = answer.master
    if master is None:
        return
    _is_answered(state, now, sender)
    remember_contact(state, now, master)
    if leading.merge is not None or _obstacle(state, leading) is not None:
        return
    if master in state.peers or master in (sender, state.address):
        return
    if state.settings.helpful_answers:
        state.send(master, SplitBrainProbe(profile(state)))


def judge(state: Membership, now: int, remote: ClusterProfile) -> MergeDecision:
    """Decide which cluster merges, and record the verdict when it has changed."""
    for member in remote.members:
        readmission.heard_of(state, now, member.address)
    decision = decide_merge(profile(state), remote)
    verdict = MergeVerdict(remote.address, decision.decision, decision.rule, decision.why)
    known, because = state.other_clusters.verdicts.get(remote.address, (None, None))
    if known == verdict:
        state.context.act_for(because)
    else:
        state.record(now, verdict)
        state.other_clusters.verdicts[remote.address] = verdict, state.latest_record
    if decision.decision != "local-merges":
        explain(state, now, Reason("verdict", decision.why), remote.address)
    if decision.rule == "i-am-its-member":
        about = ListMetadata(remote.address, remote.uuid, remote.address, remote.list_version)
        explicit_suspicion.send(state, now, about, "leads-another-cluster")
    return decision


def _obstacle(state: Membership, leading: Leading) -> Reason[ObstacleCause] | None:
    """Return why this member may not look for other clusters just now; None when it may."""
    if not allows_joins(state.standing.state):
        return Reason("state", f"its cluster is {state.standing.state}; make it ACTIVE first")
    if leading.state_change is not None:
        return Reason("state-changes", f"its cluster is changing to {leading.state_change.wanted.state}")
    if leading.admission is not None:
        return Reason("somebody-joins", f"{', '.join(leading.admission.joiners)} is just joining it")
    return None
