"""What operators ask first, answered from pictures of members of Hazelcast and of ours; what is not reported is said to be so."""

from __future__ import annotations

import pytest

from quarterdeck.backend.boards.migration_board import migration_board
from quarterdeck.backend.boards.operator_questions import operator_questions
from quarterdeck.backend.boards.suspicion_board import suspicion_sentence
from quarterdeck.backend.clusters.key_owner import key_owner
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import SetJoinList
from quarterdeck.backend.core.data.partition_store import partition_of
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership.events import (
    ClusterStateChanged,
    JoinListChanged,
    ListInstalled,
    MemberRemoved,
    MemberStopped,
    MergeVerdict,
    SettingsChanged,
    SuspicionRaised,
)
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import Holder
from quarterdeck.backend.core.witnessed.events import (
    Aspect,
    ConnectionChanged,
    MemberWitnessed,
    OwnersTold,
    ReplicaMigrated,
)
from quarterdeck.backend.hazelcast.key_partition import partition_of_key
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.merging.merge_blockers import RETENTION
from quarterdeck.backend.judgement.merging.why_not_merging import Pair, why_not_merging
from quarterdeck.backend.judgement.table_agreement import differs_from_master
from quarterdeck.backend.picture.fold.picture import Picture

A, B, C = (Address(f"10.0.0.{number}:5701") for number in (1, 2, 3))
TOLD: tuple[Aspect, ...] = ("owners", "migration-ends", "losses", "cluster-state", "join-list")
SECOND_US = 1_000_000


class Story:
    """What happened, and the picture of it."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.picture = Picture()

    def tell(self, member: Address, *events: Event, at_s: int = 1) -> None:
        for event in events:
            number = len(self.records) + 1
            record = Record("run", member, f"uuid of {member}", number, at_s * SECOND_US, at_s * SECOND_US, event)
            self.records.append(record)
            self.picture.apply(record)

    def answers(self, now_s: int = 10) -> dict[str, str]:
        found: dict[str, str] = {}
        heading = ""
        for fact in operator_questions(Judge(self.picture, now_us=now_s * SECOND_US), self.records):
            heading = fact.heading or heading
            found[heading] = f"{found[heading]}\n{fact.text}" if heading in found else fact.text
        return found


def listed(version: int, *members: Address) -> ListInstalled:
    entries = tuple(Member(member, f"uuid of {member}", 0) for member in members)
    return ListInstalled(version, entries[0].uuid, members[0], entries, members[0], "unknown")


def table(digest: str, stamp: int | None, *owners: Address) -> OwnersTold:
    return OwnersTold(
        tuple(Holder(owner, f"uuid of {owner}") for owner in owners), tuple(range(len(owners))), digest, stamp
    )


def watched(*members: Address) -> Story:
    story = Story()
    for member in members:
        story.tell(
            member, MemberWitnessed(("client-protocol",), TOLD), ConnectionChanged("connected"), listed(1, *members)
        )
    return story


def test_one_cluster_with_one_table() -> None:
    story = watched(A, B)
    for address in (A, B):
        story.tell(address, table("abcdef99", 17, A, B))
    answers = story.answers()
    assert answers["is it one cluster"].startswith("yes")
    assert "2 members with table abcdef" in answers["have all the same partition table"]
    assert "no member" in answers["who was removed, and why"]
    assert answers["is the migration stuck"] == "no migration was seen to end"
    assert "none" in answers["which health answers mislead"]


def test_two_halves_of_one_name_why_and_what_they_hide() -> None:
    story = watched(A, B)
    story.tell(A, listed(2, A), table("a" * 8, 1, A))
    story.tell(B, listed(2, B), table("b" * 8, 2, B))
    answers = story.answers()
    assert answers["is it one cluster"].startswith("no: 2 masters")
    assert f"{A} and {B}" in answers["why do they not merge"] or f"{B} and {A}" in answers["why do they not merge"]
    assert answers["have all the same partition table"].startswith("no: there are 2 tables")
    assert "one half alone" in answers["which health answers mislead"]


def test_the_decisive_removal_is_not_hidden_by_those_of_a_thawed_master() -> None:
    others = tuple(Address(f"10.0.0.{number}:5701") for number in range(2, 8))
    story = watched(A, *others)
    heading = "who was removed, and why"
    story.tell(B, listed(2, *others), at_s=20)
    for count in range(1, 7):  # one after the other, until it is alone
        story.tell(A, listed(1 + count, A, *others[count:]), at_s=40)
    answers = story.answers(60)[heading].splitlines()
    assert len(answers) == 2
    assert answers[0].startswith(f"{B}, {C}") and f"by {A}, 20 s ago" in answers[0]
    assert answers[1].startswith(f"{A} by {B}, which claimed the mastership, 40 s ago")


def test_who_is_left_out_by_a_claim_did_not_accept_it() -> None:
    story = Story()
    for member in (A, B, C):
        story.tell(member, listed(1, A, B, C))
    story.tell(B, listed(2, B, C), at_s=20)
    answer = story.answers(60)["who was removed, and why"]
    assert answer == f"{A} by {B}, which claimed the mastership, 40 s ago: no acceptance of its claim came"


def test_whom_a_claimant_suspects_it_removed_for_that() -> None:
    story = watched(A, B, C)
    story.tell(B, SuspicionRaised(A, f"uuid of {A}", "No connection", "no-connection"), listed(2, B, C), at_s=4)
    assert story.answers()["who was removed, and why"].endswith("6 s ago: No connection")


def test_of_a_member_that_has_ended_it_is_not_asked_whom_it_follows() -> None:
    story = watched(A, B, C)
    story.tell(B, ConnectionChanged("gone", "no process listens there"), at_s=4)
    story.tell(C, ConnectionChanged("silent", "it says nothing"), at_s=4)
    answer = story.answers()["is it one cluster"]
    assert f"ended: {B}" in answer and f"not seen: {C}; whom they follow now is not known" in answer


def test_a_member_that_stopped_as_asked_was_not_lost() -> None:
    story = watched(A, B)
    story.tell(B, MemberStopped("asked to shut down"), at_s=3)
    story.tell(A, MemberRemoved(B, f"uuid of {B}", "Connection refused", "refused"), listed(2, A), at_s=4)
    assert story.answers()["who was removed, and why"] == f"{B} by {A}, 6 s ago: it stopped: asked to shut down"


def test_two_that_suspect_each_other_stay_so_unless_one_leads() -> None:
    story = watched(A, B, C)
    for one, other in ((B, C), (C, B)):
        story.tell(one, MemberWitnessed(("client-protocol", "logs"), (*TOLD, "suspicions")))
        story.tell(one, SuspicionRaised(other, f"uuid of {other}", "no heartbeat"), at_s=4)
    assert "suspect each other for 6 s: it does not clear by itself" in story.answers()["which suspicions stay"]
    assert "restart one of the two" in story.answers()["which suspicions stay"]
    assert "does not clear by itself" in suspicion_sentence(story.picture, B, 10 * SECOND_US)
    story.tell(B, listed(2, B, C), at_s=9)
    story.tell(C, listed(2, B, C), at_s=9)
    assert "which suspicions stay" not in story.answers(), "a master sends heartbeats to all"


def test_stamps_of_different_moments_are_no_two_tables() -> None:
    story = watched(A, B, C)
    for one, stamp in ((A, 17), (B, 17), (C, None)):
        story.tell(one, table("a" * 8, stamp, A, B, C), at_s=5)
    story.tell(A, table("a" * 8, 18, A, B, C), at_s=20)
    heading = "have all the same partition table"
    assert story.answers(22)[heading] == "yes: 3 members with table aaaaaa"
    assert not differs_from_master(story.picture, story.picture.members[B], 22 * SECOND_US)
    lasting = story.answers(60)[heading]
    assert lasting.startswith("yes: 3 members") and "another state stamp for 40 s, with the same owners" in lasting


def test_owners_that_differ_are_two_tables_once_that_has_lasted() -> None:
    story = watched(A, B)
    for address in (A, B):
        story.tell(address, table("a" * 8, 17, A, B), at_s=5)
    story.tell(A, table("b" * 8, 18, A), at_s=20)
    follower = story.picture.members[B]
    assert story.answers(24)["have all the same partition table"].startswith("yes: 2 members with table bbbbbb")
    assert not differs_from_master(story.picture, follower, 24 * SECOND_US)
    assert story.answers(31)["have all the same partition table"].startswith("no: there are 2 tables")
    assert differs_from_master(story.picture, follower, 31 * SECOND_US)


def test_one_that_has_just_joined_has_no_table_yet() -> None:
    story = watched(A, B)
    story.tell(A, table("a" * 8, 17, A), at_s=1)
    assert not differs_from_master(story.picture, story.picture.members[B], 8 * SECOND_US)
    assert differs_from_master(story.picture, story.picture.members[B], 12 * SECOND_US)


def halves() -> tuple[Story, Pair]:
    """Two halves of real members that list each other for joining: whether they reach each other is not reported."""
    story = watched(A, B)
    for address in (A, B):
        story.tell(address, JoinListChanged((A, B), 0, address), listed(2, address), at_s=5)
    (pair,) = why_not_merging(story.picture, 10 * SECOND_US)
    return story, pair


def test_that_links_are_up_is_not_concluded_where_they_are_not_reported() -> None:
    story, pair = halves()
    assert (pair.state, pair.rule, pair.unblock) == ("waits", "not-told", None)
    assert "not reported" in pair.sentence and "nothing is in the way" not in pair.sentence
    assert "nothing is in the way" not in story.answers()["why do they not merge"]


@pytest.mark.parametrize(("settings", "state"), [({}, "waits"), ({RETENTION: "0"}, "blocked")])
def test_a_merge_has_to_be_begun_by_the_smaller_half_which_has_to_look_for_the_other(
    settings: dict[str, str], state: str
) -> None:
    story = watched(A, B)
    for one, join_list in ((A, (A, B)), (B, (B,))):
        story.tell(one, JoinListChanged(join_list, 0, one), SettingsChanged(settings), listed(2, one), at_s=5)
    (pair,) = why_not_merging(story.picture, 10 * SECOND_US)
    assert (pair.smaller, pair.state, pair.rule) == (B, state, "one-sided")
    assert pair.unblock is not None and pair.unblock.commands == (SetJoinList(B, (B, A)),)
    story.tell(B, JoinListChanged((B, A), 1, B), at_s=11)
    story.tell(A, JoinListChanged((A,), 1, A), at_s=11)
    (pair,) = why_not_merging(story.picture, 12 * SECOND_US)
    assert (pair.rule, pair.unblock) == ("not-told", None)


def test_a_verdict_shows_that_they_met_and_when() -> None:
    story, _ = halves()
    story.tell(B, MergeVerdict(A, "local-merges", "total-members", "it is smaller"), at_s=7)
    (pair,) = why_not_merging(story.picture, 10 * SECOND_US)
    assert f"{B} met {A} 3 s ago" in pair.sentence and pair.unblock is None


def test_a_refusal_to_merge_is_of_its_moment_and_is_tried_again() -> None:
    """A member that was frozen still lists the others when it is thawed, and merges seconds later."""
    story, _ = halves()
    why = "CANNOT merge, because it thinks the third is its member"
    story.tell(B, MergeVerdict(A, "cannot-merge", "split-brain", why), at_s=7)
    (pair,) = why_not_merging(story.picture, 10 * SECOND_US)
    assert (pair.state, pair.unblock) == ("waits", None)
    assert f"{B} met {A} 3 s ago: they could not merge then" in pair.sentence and why in pair.sentence
    assert "the next search compares them again" in pair.sentence


def test_a_verdict_of_an_earlier_split_shows_nothing_of_this_one() -> None:
    story = watched(A, B)
    story.tell(A, MergeVerdict(B, "remote-merges", "total-members", "it is smaller"), at_s=2)
    for address in (A, B):
        story.tell(address, JoinListChanged((A, B), 0, address), listed(2, address), at_s=5)
    (pair,) = why_not_merging(story.picture, 10 * SECOND_US)
    assert "met" not in pair.sentence and "not reported" in pair.sentence


def test_who_was_removed_is_told_by_lists_and_why_only_by_logs() -> None:
    story = watched(A, B, C)
    story.tell(A, listed(2, A, B), at_s=4)
    assert (
        f"{C} by {A}, 6 s ago: why is not reported: give logs with --logs"
        in story.answers()["who was removed, and why"]
    )
    story.tell(A, MemberRemoved(B, f"uuid of {B}", "Suspecting: no heartbeat since …"), listed(3, A), at_s=5)
    assert "no heartbeat" in story.answers()["who was removed, and why"]


def test_what_removed_several_at_once_is_worded_once() -> None:
    story = watched(A, B, C)
    removed = [MemberRemoved(who, f"uuid of {who}", f"uuid of {who} is silent", "no-heartbeat") for who in (B, C)]
    story.tell(A, *removed, listed(2, A), at_s=4)
    assert story.answers()["who was removed, and why"] == f"{B}, {C} by {A}, 6 s ago: uuid of {B} is silent"
    refused = MemberRemoved(C, f"uuid of {C}", "Connection refused", "refused")
    story = watched(A, B, C)
    story.tell(A, removed[0], refused, listed(2, A), at_s=4)
    assert "is silent; Connection refused" in story.answers()["who was removed, and why"]


@pytest.mark.parametrize(
    ("done", "now_s", "said"), [(54, 90, "no: all 54"), (31, 12, "no: 31 of 54"), (31, 90, "stands still")]
)
def test_whether_the_migration_is_stuck(done: int, now_s: int, said: str) -> None:
    story = watched(A, B)
    story.tell(A, ReplicaMigrated(7, 0, A, B, True, 1_000, 54, done), at_s=10)
    assert said in story.answers(now_s)["is the migration stuck"]


def test_a_round_whose_master_is_gone_does_not_stand_still() -> None:
    story = watched(A, B)
    story.tell(A, ReplicaMigrated(7, 0, A, B, True, 1_000, 54, 31), ConnectionChanged("gone", "refused"), at_s=10)
    assert "leads no more" in story.answers(90)["is the migration stuck"]


def test_migrations_that_were_seen_to_end_stand_in_the_board() -> None:
    story = watched(A, B)
    story.tell(A, ReplicaMigrated(7, 0, A, B, True, 1_000, 2, 1), ReplicaMigrated(8, 1, None, B, False, 1_000, 2, 2))
    board = migration_board(Judge(story.picture), 10 * SECOND_US)
    assert [row.state for row in board.rows] == ["failed", "done"]
    assert [(row.partition, row.destination, row.displaced) for row in board.rows] == [("p8", B, ""), ("p7", B, A)]
    assert "no migration" not in board.heads[0].text and "2 migrations" in board.heads[0].text


def test_a_state_that_health_does_not_show_and_members_that_are_gone() -> None:
    story = watched(A, B)
    story.tell(A, ClusterStateChanged("FROZEN", ""))
    story.tell(B, ConnectionChanged("gone", "nobody listens there"))
    answers = story.answers()
    assert "FROZEN" in answers["which health answers mislead"]
    assert B in answers["is it one cluster"]


def test_nothing_is_known_of_nobody() -> None:
    answers = Story().answers()
    assert answers["is it one cluster"] == "no master is seen"
    assert "no table is known" in answers["have all the same partition table"]


def test_who_owns_a_key_as_each_master_has_it() -> None:
    story = watched(A, B)
    with pytest.raises(ValueError, match="no master reports a table"):
        key_owner(ListAgreement(story.picture), "orders 17")
    story.tell(A, table("abcdef99", None, *(A, B) * 8))
    number = partition_of_key("17", "string", 16)
    assert number != partition_of("orders", "17", 16)
    assert f"owns partition {number} with '17', as {A} has it" in key_owner(ListAgreement(story.picture), "orders 17")
    text, of_number = (key_owner(ListAgreement(story.picture), f"orders 4 {kind}") for kind in ("string", "int"))
    assert "partition" in text and "partition" in of_number
    for wrong in ("orders", "orders '17", "orders x int", "orders 1 float"):
        with pytest.raises(ValueError):
            key_owner(ListAgreement(story.picture), wrong)


def test_a_master_that_removed_most_members_may_be_the_one_that_is_cut_off() -> None:
    """Whom it removed is not seen; only a process that is known to have ended has no master of its own."""
    story = watched(A, B, C)
    for member in (B, C):
        story.tell(member, ConnectionChanged("silent"), at_s=2)
    story.tell(A, listed(2, A, C), listed(3, A), at_s=3)
    assert story.answers()["is it one cluster"].startswith("not known: ")
    assert "are not seen and may have a master of their own" in story.answers()["is it one cluster"]
    for member in (B, C):
        story.tell(member, ConnectionChanged("gone"), at_s=4)
    assert story.answers()["is it one cluster"].startswith("yes, as far as is seen: ")


def test_what_comes_long_after_a_removal_is_not_its_reason() -> None:
    """A member that a split removed, and that was stopped later, was not removed because it stopped."""
    story = Story()
    story.tell(A, MemberWitnessed(("logs",), ("suspicions",)), listed(2, A, B))
    story.tell(A, SuspicionRaised(B, f"uuid of {B}", "no heartbeat"), listed(3, A))
    story.tell(A, listed(4, A, B), at_s=40)
    story.tell(B, MemberStopped("asked to shut down"), at_s=80)
    story.tell(A, SuspicionRaised(B, f"uuid of {B}", "it asked its master to let it leave"), listed(5, A), at_s=80)
    latest, first, *_ = story.answers(now_s=90)["who was removed, and why"].splitlines()
    assert latest == f"{B} by {A}, 10 s ago: it stopped: asked to shut down"
    assert first == f"{B} by {A}, 89 s ago: no heartbeat"


def test_a_member_that_was_removed_and_has_another_list_may_lead_on_its_own() -> None:
    story = Story()
    for member in (A, B, C):
        story.tell(member, listed(3, A, B, C))
    for member in (A, B):
        story.tell(member, listed(4, A, B))
    assert story.answers()["is it one cluster"] == (
        f"not known: {A} leads 2 members, list v4 of lineage uuid of ; {C} was removed from its list and has another one"
    )
