"""Each invariant against a core that was broken on purpose: it is noticed. The same run of the sound core breaks none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import (
    ChangeState,
    Command,
    CutLink,
    DelayLink,
    DropMessages,
    Heal,
    KillMember,
    Partition,
    StartMember,
)
from quarterdeck.backend.core.membership import mastership_claim
from quarterdeck.backend.core.membership.events import ClaimAnswered, MemberAdmitted
from quarterdeck.backend.core.membership.facts import EvidenceFound
from quarterdeck.backend.core.membership.failure_detection import suspicion
from quarterdeck.backend.core.membership.handlers import MESSAGE_RULES, REACTIONS
from quarterdeck.backend.core.membership.messages import ClaimRefused, JoinRequest, MembersUpdate
from quarterdeck.backend.core.membership.partial_disconnection import disconnection_reports
from quarterdeck.backend.core.membership.partial_disconnection.conflict_graph import CliqueCandidate, ConflictResolution
from quarterdeck.backend.core.membership.split_brain import merging
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import HAS_JOINED, Claim, Doing, Leading
from quarterdeck.backend.core.membership.views import admission, publishing, readmission
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.invariants import CheckedRun, InvariantChecker
from quarterdeck.backend.invariants.invariant_checker import membership_invariants
from quarterdeck.backend.simulation.virtual_time.world import World
from tests.invariants.mutation import SEEDS, Mutation, Patch

TRAINING = Settings.of(preset="training")
BOUND_US = 60 * SECOND_US
FORMING_US = 5 * SECOND_US
"""Within this time all have joined for sure."""

Step = tuple[Command, float]
"""What is done, and how many seconds pass after it."""


def play(steps: tuple[Step, ...], seed: int = 1) -> tuple[World, InvariantChecker]:
    """A cluster of `n1` to `n5`; `late` runs only when it is started by a step."""
    invariant_checker = InvariantChecker()
    labels = [*(f"n{place}" for place in range(1, 6)), "late"]
    world = World(labels, seed=seed, settings=TRAINING, on_record=invariant_checker.observe)
    for label in labels[:-1]:
        take(world, StartMember(label), 1)
    world.run_until(world.now_us + FORMING_US)
    for command, seconds in steps:
        take(world, command, seconds)
    return world, invariant_checker


def take(world: World, command: Command, seconds: float) -> None:
    world.execute(command)
    world.run_until(world.now_us + int(seconds * SECOND_US))


def concluded(steps: tuple[Step, ...], seed: int = 1) -> CheckedRun:
    """The verdict after everything was mended and left alone for long enough."""
    world, invariant_checker = play((*steps, (Heal(), 2 * BOUND_US / SECOND_US)), seed)
    return invariant_checker.conclude(world.now_us, BOUND_US)


A_CRASH: tuple[Step, ...] = ((KillMember("n4"), 15),)
A_DEAD_MASTER: tuple[Step, ...] = ((KillMember("n1"), 15),)
A_NEWCOMER: tuple[Step, ...] = ((StartMember("late"), 15),)
A_SPLIT: tuple[Step, ...] = ((Partition((("n1", "n2", "n5"), ("n3", "n4", "late"))), 15),)
A_SPLIT_AND_A_RESTART: tuple[Step, ...] = (
    *A_SPLIT,
    *((KillMember("n4"), 10), (StartMember("n4"), 15), (KillMember("n4"), 10), (StartMember("n4"), 15)),
)
A_SLAVE_BEHIND: tuple[Step, ...] = (
    (DropMessages(("n1",), ("n2",), ("members-update",)), 1),
    (StartMember("late"), 5),
    (KillMember("n1"), 20),
)
A_LOST_MASTER: tuple[Step, ...] = ((CutLink(("n1",), ("n2",)), 25),)
A_LOST_MASTER_AND_ONE_BEHIND: tuple[Step, ...] = (
    (DelayLink(("n1",), ("n4",), 300_000, one_way=True), 1),
    (CutLink(("n1",), ("n2",)), 25),
)
FROZEN: tuple[Step, ...] = (
    (ChangeState("n2", "FROZEN"), 3),
    (StartMember("late"), 10),
    (ChangeState("n1", "ACTIVE"), 5),
)
A_BROKEN_LINK: tuple[Step, ...] = ((CutLink(("n3",), ("n4",)), 60),)
A_BROKEN_LINK_AND_A_RESTART: tuple[Step, ...] = (
    (CutLink(("n3",), ("n4",)), 12),
    (KillMember("n4"), 3),
    (StartMember("n4"), 30),
)

SCENARIOS = {
    "crash": A_CRASH,
    "dead master": A_DEAD_MASTER,
    "newcomer": A_NEWCOMER,
    "split": A_SPLIT,
    "split and restart": A_SPLIT_AND_A_RESTART,
    "slave behind": A_SLAVE_BEHIND,
    "lost master": A_LOST_MASTER,
    "lost master, one behind": A_LOST_MASTER_AND_ONE_BEHIND,
    "frozen": FROZEN,
    "broken link": A_BROKEN_LINK,
    "broken link and restart": A_BROKEN_LINK_AND_A_RESTART,
}


def obey(patch: Patch, kind: type, rule: Any) -> None:
    """Whoever has joined treats messages of this kind so."""
    for doing in HAS_JOINED:
        patch.setitem(MESSAGE_RULES[kind], doing, rule)


# The mutations: each is one rule of the protocol that somebody forgot


def a_claimant_leaves_itself_out(patch: Patch) -> None:
    def conclude(state: Membership, now: int, claim: Any) -> None:
        younger = tuple(member for member in claim.latest.members if member.address != state.address)
        claim.latest = msgspec.structs.replace(claim.latest, members=younger)
        sound(state, now, claim)

    sound = mastership_claim._finish
    patch.setattr(mastership_claim, "_finish", conclude)


def a_follower_installs_older_lists(patch: Patch) -> None:
    def install(state: Membership, doing: Doing, now: int, sender: Address, update: MembersUpdate) -> None:
        if sender == state.master and update.members.holds(state.address, state.uuid):
            publishing.install(state, now, update.members, sender, "published")

    obey(patch, MembersUpdate, install)


def a_removal_does_not_bump_the_version(patch: Patch) -> None:
    sound = MemberList.without
    patch.setattr(
        MemberList, "without", lambda self, gone: msgspec.structs.replace(sound(self, gone), version=self.version)
    )


def a_claim_goes_on_with_the_lineage(patch: Patch) -> None:
    def keep(uuid: str, version: int) -> str:
        return "the one and only"

    patch.setattr("quarterdeck.backend.core.membership.views.member_list.mint_lineage", keep)
    patch.setattr(mastership_claim, "mint_lineage", keep)


def a_claimant_takes_refusers_along_and_they_obey_everybody(patch: Patch) -> None:
    def install(state: Membership, doing: Doing, now: int, sender: Address, update: MembersUpdate) -> None:
        if state.members not in (None, update.members) and update.members.holds(state.address, state.uuid):
            publishing.install(state, now, update.members, sender, "published")

    a_claimant_takes_refusers_along(patch)
    obey(patch, MembersUpdate, install)


def newcomers_stand_second(patch: Patch) -> None:
    def joined_by(self: MemberList, *newcomer: Any) -> MemberList:
        longer = sound(self, *newcomer)
        *old, youngest = longer.members
        return msgspec.structs.replace(longer, members=(old[0], youngest, *old[1:]))

    sound = MemberList.joined_by
    patch.setattr(MemberList, "joined_by", joined_by)


def a_slave_removes_whom_it_suspects(patch: Patch) -> None:
    def remove(state: Membership, now: int, fact: EvidenceFound) -> None:
        known = {address: found for address, found in fact.evidence.items() if address in state.peers}
        if known and state.members is not None:
            suspicion._remove(state, now, known)

    patch.setitem(REACTIONS, EvidenceFound, (remove,))


def the_master_tells_nobody(patch: Patch) -> None:
    patch.setattr(publishing, "publish", lambda state: None)
    patch.setattr(publishing, "publish_to", lambda state, address: None)


def the_master_tells_nobody_and_waits_for_ever(patch: Patch) -> None:
    the_master_tells_nobody(patch)
    patch.setattr(publishing, "on_lagging", lambda state, now, address, peer, version: None)


def a_claimant_takes_refusers_along(patch: Patch) -> None:
    def take_along(state: Membership, claim: Claim, now: int, sender: Address, answer: ClaimRefused) -> None:
        if sender in claim.asked:
            state.record(now, ClaimAnswered(sender, "refused", 0, answer.reason))
            claim.accepted.add(sender)
            mastership_claim.finish_when_answered(state, now)

    patch.setitem(MESSAGE_RULES[ClaimRefused], Claim, take_along)


def a_claimant_leaves_followers_out(patch: Patch) -> None:
    def forget(state: Membership, now: int, claim: Any) -> None:
        claim.accepted.discard(max(claim.accepted, default=None))
        sound(state, now, claim)

    sound = mastership_claim._finish
    patch.setattr(mastership_claim, "_finish", forget)


def a_claimant_counts_from_its_own_version(patch: Patch) -> None:
    def conclude(state: Membership, now: int, claim: Any) -> None:
        assert state.members is not None
        claim.latest = msgspec.structs.replace(claim.latest, version=state.members.version)
        sound(state, now, claim)

    sound = mastership_claim._finish
    patch.setattr(mastership_claim, "_finish", conclude)


def a_claimant_asks_no_member_that_an_answer_names(patch: Patch) -> None:
    def ask(state: Membership, now: int, claim: Any) -> None:
        if not claim.asked:
            sound(state, now, claim)

    sound = mastership_claim._ask_newly_known
    patch.setattr(mastership_claim, "_ask_newly_known", ask)


def only_the_master_counts_as_older(patch: Patch) -> None:
    patch.setattr(MemberList, "older_than", lambda self, address: self.members[:1])


def the_winner_does_not_raise_its_version(patch: Patch) -> None:
    def admit(state: Membership, leading: Leading, now: int, sender: Address, request: JoinRequest) -> None:
        sound(state, leading, now, sender, msgspec.structs.replace(request, seen_version=0))

    sound = admission.on_join_request
    patch.setitem(MESSAGE_RULES[JoinRequest], Leading, admit)


def a_removal_takes_one_more_along(patch: Patch) -> None:
    sound = MemberList.without
    patch.setattr(MemberList, "without", lambda self, gone: sound(self, {*gone, self.members[-1].address}))


def a_removal_removes_nobody(patch: Patch) -> None:
    patch.setattr(
        MemberList, "without", lambda self, gone: msgspec.structs.replace(self, version=self.version + len(gone))
    )


def an_admission_is_not_told(patch: Patch) -> None:
    def record(self: Membership, now: int, event: Any, because: Any = None) -> None:
        if not isinstance(event, MemberAdmitted):
            sound(self, now, event, because)

    sound = Membership.record
    patch.setattr(Membership, "record", record)


def newcomers_enter_a_frozen_cluster(patch: Patch) -> None:
    patch.setattr(admission, "allows_joins", lambda state: True)


def decide_by(patch: Patch, resolve: Callable[..., ConflictResolution]) -> None:
    """Let masters decide on disconnections by `resolve`, in one slice."""

    class Decision:
        def __init__(self, members: list[CliqueCandidate], conflicts: list[tuple[str, str]], **limits: object) -> None:
            self.resolution = resolve(members, conflicts, **limits)

        def search_on(self) -> ConflictResolution:
            return self.resolution

    patch.setattr(disconnection_reports, "ConflictSearch", Decision)


def everybody_stays(patch: Patch) -> None:
    def resolve_conflicts(members: list[CliqueCandidate], conflicts: object, **limits: object) -> ConflictResolution:
        return ConflictResolution(tuple(member.name for member in members), (), True, 0, "")

    decide_by(patch, resolve_conflicts)


def both_ends_of_a_broken_link_go(patch: Patch) -> None:
    def resolve_conflicts(
        members: list[CliqueCandidate], conflicts: list[tuple[str, str]], **limits: object
    ) -> ConflictResolution:
        ends = {end for conflict in conflicts for end in conflict}
        names = [member.name for member in members]
        keep, remove = [name for name in names if name not in ends], [name for name in names if name in ends]
        return ConflictResolution(tuple(keep), tuple(remove), True, 0, "")

    decide_by(patch, resolve_conflicts)


def the_youngest_goes_whoever_is_reported(patch: Patch) -> None:
    def resolve_conflicts(members: list[CliqueCandidate], conflicts: object, **limits: object) -> ConflictResolution:
        *keep, last = [member.name for member in members]
        return ConflictResolution(
            tuple(address for address in keep if not address.endswith("5704")), (keep[3], last), True, 0, ""
        )

    decide_by(patch, resolve_conflicts)


def nobody_is_held_back(patch: Patch) -> None:
    patch.setattr(readmission, "is_held", lambda state, now, sender, request: False)


def clusters_merge_without_proving_their_links(patch: Patch) -> None:
    patch.setattr(merging, "_prove", merging._freeze)


def records_are_numbered_by_twos(patch: Patch) -> None:
    def record(self: Membership, now: int, event: Any, because: Any = None) -> None:
        self.record_count += 1
        sound(self, now, event, because)

    sound = Membership.record
    patch.setattr(Membership, "record", record)


MUTATIONS = (
    Mutation("numbering", records_are_numbered_by_twos, "crash"),
    Mutation("version", a_follower_installs_older_lists, "crash"),
    Mutation("version", a_removal_does_not_bump_the_version, "crash"),
    Mutation("unique content", a_removal_does_not_bump_the_version, "crash"),
    Mutation("unique content", a_claim_goes_on_with_the_lineage, "split and restart"),
    Mutation("one master", a_claim_goes_on_with_the_lineage, "split and restart"),
    Mutation("one author", a_claim_goes_on_with_the_lineage, "split"),
    Mutation("one author", a_slave_removes_whom_it_suspects, "lost master"),
    Mutation("view order", a_claimant_takes_refusers_along_and_they_obey_everybody, "lost master, one behind"),
    Mutation("age order", newcomers_stand_second, "newcomer"),
    Mutation("view agreement", the_master_tells_nobody_and_waits_for_ever, "crash"),
    Mutation("claim soundness", a_claimant_takes_refusers_along, "lost master"),
    Mutation("claim soundness", a_claimant_leaves_followers_out, "dead master"),
    Mutation("claim soundness", a_claimant_counts_from_its_own_version, "slave behind"),
    Mutation("claim completeness", a_claimant_asks_no_member_that_an_answer_names, "slave behind"),
    Mutation("oldest leads", only_the_master_counts_as_older, "dead master"),
    Mutation("oldest leads", a_slave_removes_whom_it_suspects, "lost master"),
    Mutation("lineage", a_claimant_takes_refusers_along_and_they_obey_everybody, "lost master, one behind"),
    Mutation("merged version", the_winner_does_not_raise_its_version, "split and restart"),
    Mutation("removal", a_removal_takes_one_more_along, "crash"),
    Mutation("removal", a_removal_removes_nobody, "crash"),
    Mutation("admission", an_admission_is_not_told, "newcomer"),
    Mutation("no newcomers", newcomers_enter_a_frozen_cluster, "frozen"),
    Mutation("full connection", everybody_stays, "broken link"),
    Mutation("full connection", both_ends_of_a_broken_link_go, "broken link"),
    Mutation("full connection", the_youngest_goes_whoever_is_reported, "broken link"),
    Mutation("no flapping", nobody_is_held_back, "broken link and restart"),
    Mutation("no flapping", clusters_merge_without_proving_their_links, "broken link"),
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_broken_core_is_noticed(mutation: Mutation, monkeypatch: Patch) -> None:
    mutation.must_be_noticed(monkeypatch, lambda scenario, seed: concluded(SCENARIOS[scenario], seed).violations)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_sound_core_passes_the_same_run(scenario: str, seed: int) -> None:
    conclusion = concluded(SCENARIOS[scenario], seed)
    assert not conclusion.violations
    assert conclusion.verdict == "ok", conclusion.open


def test_a_claimant_that_leaves_itself_out_is_noticed(monkeypatch: Patch) -> None:
    """On its own, because a member that is not on its own list soon does not know what to do."""
    a_claimant_leaves_itself_out(monkeypatch)
    _, invariant_checker = play(((KillMember("n1"), 2),))
    assert "view integrity" in {violation.invariant for violation in invariant_checker.violations}


def test_every_invariant_has_a_mutation() -> None:
    """But for one of which every order of events is tried: tests/simulation/model_checking."""
    broken = {"view integrity", "incarnation order", *(mutation.breaks for mutation in MUTATIONS)}
    assert broken == {invariant.name for invariant in membership_invariants(InvariantChecker().tables)}


def test_what_a_fault_prevents_is_left_open() -> None:
    world, invariant_checker = play(A_CRASH)
    take(world, DropMessages(("n1",), ("n5",), ("members-update",)), 1)
    take(world, StartMember("late"), 5)
    conclusion = invariant_checker.conclude(world.now_us, BOUND_US)
    assert conclusion.verdict == "unknown"
    assert any("n5 on it never came there" in text for text in conclusion.open)
    take(world, Heal(), 2 * BOUND_US / SECOND_US)
    assert invariant_checker.conclude(world.now_us, BOUND_US).verdict == "ok"
