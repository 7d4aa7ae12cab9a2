"""Join lists as a board and as something to edit: who looks where, what is typed, and what that would change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.boards.join_list_board import JoinListBoard, clusters_text, join_list_facts
from quarterdeck.backend.core.address import Address, parse_join_list
from quarterdeck.backend.core.commands import SetJoinList
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionChanged
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.judgement.merging.join_list_edit import (
    compare_lists,
    draft_lines,
    edit_in_force,
    plan_edit,
    read_draft,
    spread_of,
    sub_cluster,
)
from quarterdeck.backend.judgement.merging.why_not_merging import unusable_text
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FIVE, FakeCluster, fold, formed

STRANGER = Address("10.9.9.9:5701")


def addresses(cluster: FakeCluster, *labels: str) -> tuple[Address, ...]:
    return tuple(cluster.address(label) for label in labels)


# The board


def test_a_row_of_a_plain_member() -> None:
    board = JoinListBoard(fold(formed()))
    row = board.row("n2")
    assert (row.cluster, row.source, row.differs) == ("n1", "as configured", False)
    assert row.entries == "5: n1,n2,n3,n4,n5" and not row.remembered and not row.silent and not row.missing
    assert board.sentence("n2") == "n2 looks at n1, n2, n3, n4, n5 (as configured)"
    assert JoinListBoard(Picture()).row("n2").source == "not up"
    assert JoinListBoard(Picture()).sentence("n2") == "n2 is not up: nothing was ever heard of it"


def test_an_address_of_no_use_is_told_with_what_was_found_there_until_somebody_there_is_a_member() -> None:
    cluster = FakeCluster(FIVE)
    cluster.happen("n1", events.MemberStarted(cluster.address("n1"), False, addresses(cluster, "n1", "n2")))
    refusal = "it refuses this member, which does not know the secret of the cluster"
    cluster.happen("n1", events.AddressUnusable(cluster.address("n2"), refusal, "rejected"))
    picture = fold(cluster)
    belief = picture.members["n1"]
    assert unusable_text(belief) == f"{cluster.address('n2')}: {refusal}"
    assert f"no answer from {cluster.address('n2')} ({refusal})" in JoinListBoard(picture).sentence("n1")
    told = [fact.text for fact in join_list_facts(picture, belief, 0)]
    assert f"✕ of no use is {cluster.address('n2')}: {refusal}" in told
    cluster.form()
    assert unusable_text(fold(cluster, picture).members["n1"]) == ""


def test_who_is_silent_missing_remembered_and_whose_list_differs() -> None:
    cluster = formed()
    n1 = cluster.address("n1")
    cluster.happen("n3", events.JoinListChanged((*addresses(cluster, "n1", "n4", "n5"), STRANGER), 2, n1))
    cluster.split(["n1", "n2", "n3"], ["n4", "n5"])
    cluster.happen("n3", events.AddressesRemembered(addresses(cluster, "n4", "n5")))
    cluster.happen("dev", ProcessKilled("n4"))
    cluster.happen("dev", ProcessPaused("n5"))
    board = JoinListBoard(fold(cluster))
    row = board.row("n3")
    assert row.source == "≠ edition 2, given to n1" and row.differs
    assert row.entries == f"4: n1,n4,n5,{STRANGER}"
    assert row.remembered == "n4,n5" and row.silent == f"✕ n4,n5,{STRANGER}" and row.missing == "n2"
    assert board.sentence("n3") == (
        f"n3 looks at n1, n4, n5, {STRANGER} (edition 2, given to n1, another list than its master has); remembers n4, n5; "
        f"no answer from n4 (killed), n5 (paused), {STRANGER} (never seen); does not list n2 of its own cluster"
    )


def test_what_is_remembered_is_told_with_its_age_and_forgotten() -> None:
    cluster = formed()
    cluster.split(["n1", "n2", "n3"], ["n4", "n5"])
    cluster.happen("n4", events.AddressesRemembered((*addresses(cluster, "n1", "n2", "n3"), STRANGER)))
    cluster.happen("n4", events.SearchPlanned(5 * SECOND_US, 3 * SECOND_US))
    picture = fold(cluster)
    n4 = picture.members["n4"]
    facts = {fact.heading: fact.text for fact in join_list_facts(picture, n4, picture.at + 2 * SECOND_US)}
    assert facts["remembers"].startswith("n1 (10.0.0.1:5701) since 2 s, ")
    assert facts["looks"] == f"for other clusters in 3 s, at n1, n2, n3, {STRANGER}"
    later = join_list_facts(picture, n4, picture.at + 12 * SECOND_US)
    assert {fact.heading: fact.text for fact in later}["looks"].startswith("for other clusters in 2 s")
    cluster.happen("n4", events.AddressesRemembered((), (STRANGER,)))
    cluster.install("n4", 8, ["n4", "n5", "n1"], lineage="L2")
    picture = fold(cluster, picture)
    assert [
        address for address in picture.members["n4"].remembered if address not in picture.members["n4"].listed
    ] == list(addresses(cluster, "n2", "n3"))


def test_memory_outlives_a_merge_and_not_a_restart() -> None:
    cluster = formed()
    cluster.happen("n4", events.AddressesRemembered((STRANGER,)))
    cluster.happen("n4", events.MemberMerging(cluster.address("n1"), "n4-life-2"))
    merged = events.MemberStarted(cluster.address("n4"), False, (), "n4-life-1")
    cluster.happen("n4", merged, life=2)
    picture = fold(cluster)
    assert list(picture.members["n4"].remembered) == [STRANGER]
    cluster.start("n4", life=3)
    assert not fold(cluster, picture).members["n4"].remembered


def test_clusters_in_words() -> None:
    cluster = formed()
    assert clusters_text(ListAgreement(Picture())) == "no master is in sight"
    assert clusters_text(ListAgreement(fold(cluster))) == "1 cluster: n1 with 5 members"
    cluster.split(["n1", "n2", "n3"], ["n4", "n5"])
    assert (
        clusters_text(ListAgreement(fold(cluster, fold(formed()))))
        == "2 clusters: n1 with 3 members, n4 with 2 members"
    )


# The draft


def test_what_is_typed_is_read_as_the_core_reads_it() -> None:
    picture = fold(formed())
    draft = read_draft(["n1, 10.0.0.2:5701", "", "# a comment", "10.0.0.3:5701  # n3"], picture)
    assert draft.addresses == ("10.0.0.1:5701", "10.0.0.2:5701", "10.0.0.3:5701")
    assert draft.remarks == () and draft.problem is None


def test_mistakes_are_named_with_their_line() -> None:
    picture = fold(formed())
    draft = read_draft(["10.0.0.1:5701", "10.0.0.2:99999", "n11", "10.0.0.*:5701"], picture)
    assert draft.addresses == ("10.0.0.1:5701",)
    assert [(remark.line, remark.tone) for remark in draft.remarks] == [(2, "bad"), (3, "bad"), (4, "bad")]
    assert draft.problem is not None
    assert draft.problem.text == "'10.0.0.2:99999' has the port '99999'; a port is a number from 1 to 65535"
    assert draft.remarks[1].text == "there is no member 'n11'; did you mean n1? A host needs its port"
    empty = read_draft(["", "  # nothing"], picture).problem
    assert empty is not None and empty.text.startswith("an empty join list leads to no member")


def test_oddities_are_only_remarked_on() -> None:
    picture = fold(formed())
    draft = read_draft(["n1", "10.0.0.1:5701", STRANGER, "10.0.0.2:6000", "10.0.0.3"], picture)
    assert draft.problem is None
    assert [(remark.line, remark.text) for remark in draft.remarks] == [
        (2, "n1 stands on line 1 already"),
        (3, "10.9.9.9: no member was ever seen on this host"),
        (4, "10.0.0.2:6000: no member was ever seen there"),
        (5, "without a port it stands for 10.0.0.3:5701, 10.0.0.3:5702, 10.0.0.3:5703"),
    ]
    assert draft.addresses[-3:] == ("10.0.0.3:5701", "10.0.0.3:5702", "10.0.0.3:5703")


@given(st.lists(st.text(max_size=30), max_size=8))
def test_whatever_is_typed_is_read_or_remarked_on(lines: list[str]) -> None:
    draft = read_draft(lines, Picture())
    assert all(remark.text.isprintable() and 1 <= remark.line <= max(1, len(lines)) for remark in draft.remarks)
    assert draft.addresses or draft.problem is not None
    assert parse_join_list(draft.addresses) == draft.addresses, "what is handed to the cluster is what was shown"
    assert len(set(draft.addresses)) == len(draft.addresses)


def test_lines_of_the_editor_are_read_back() -> None:
    picture = fold(formed())
    known = (*picture.members["n1"].join_list, STRANGER)
    lines = draft_lines(picture, known)
    assert lines[0] == "10.0.0.1:5701  # n1" and lines[-1] == STRANGER
    assert read_draft(lines, picture).addresses == known


# What it would change


ADDRESSES = st.lists(st.sampled_from([Address(f"h{number}:1") for number in range(8)]), unique=True, max_size=8)


@given(ADDRESSES, ADDRESSES)
def test_a_comparison_tells_both_lists(before: list[Address], after: list[Address]) -> None:
    names = {Address(f"h{number}:1"): f"h{number}" for number in range(8)}
    changes = compare_lists(before, after, names)
    assert [change.address for change in changes if change.sign != "−"] == after
    assert {change.address for change in changes if change.sign != "+"} == set(before)
    assert len(changes) == len(set(before) | set(after))


def test_an_edit_goes_to_the_master_and_names_who_lists_something_else() -> None:
    cluster = formed()
    cluster.split(["n1", "n2", "n3"], ["n4", "n5"])
    cluster.happen("n5", events.JoinListChanged(addresses(cluster, "n4"), 1, cluster.address("n5")))
    picture = fold(cluster)
    master = sub_cluster(picture, "n5")
    assert master is not None and master.label == "n4"
    plan = plan_edit(picture, master, (*addresses(cluster, "n4", "n5"), STRANGER))
    assert plan.command == SetJoinList("n4", (*addresses(cluster, "n4", "n5"), STRANGER))
    assert plan.members == ("n4", "n5") and plan.differing == ("n5",) and not plan.nothing_new
    assert plan.counts() == "n4's cluster of 2 members: +1 −3; 1 member with another list than the master"
    assert [change.text for change in plan.changes] == [
        "= n4 (10.0.0.4:5701)",
        "= n5 (10.0.0.5:5701)",
        f"+ {STRANGER}",
        "− n1 (10.0.0.1:5701)",
        "− n2 (10.0.0.2:5701)",
        "− n3 (10.0.0.3:5701)",
    ]
    assert plan.diff() == (
        f"n4's cluster of 2 members: + {STRANGER}, − n1 (10.0.0.1:5701), − n2 (10.0.0.2:5701), − n3 (10.0.0.3:5701); = 2 stay; "
        "1 member with another list than the master"
    )
    same = plan_edit(picture, picture.members["n1"], picture.members["n1"].join_list)
    assert same.nothing_new and same.counts() == "n1's cluster of 3 members: nothing new"
    turned = plan_edit(picture, picture.members["n1"], tuple(reversed(picture.members["n1"].join_list)))
    assert not turned.nothing_new and turned.counts() == "n1's cluster of 3 members: another order"


def test_whoever_cannot_be_asked_is_edited_by_nobody() -> None:
    cluster = formed()
    cluster.happen("dev", ProcessKilled("n1"))
    picture = fold(cluster)
    assert sub_cluster(picture, "n1") is None and sub_cluster(picture, "n9") is None
    alone = sub_cluster(picture, "n2")
    assert alone is not None and alone.label == "n2", "while its master is gone it is asked itself"


def test_how_far_an_edit_has_come() -> None:
    cluster = formed()
    wanted = addresses(cluster, "n1", "n2")
    cluster.happen("n1", events.JoinListChanged(wanted, 1, cluster.address("n1")))
    picture = fold(cluster)
    spread = spread_of(picture, "n1", wanted)
    assert spread is not None and spread.text == "… n1: 1 of 5 members have it"
    for label in FIVE[1:]:
        cluster.happen(label, events.JoinListChanged(wanted, 1, cluster.address("n1")))
    spread = spread_of(fold(cluster, picture), "n1", wanted)
    assert spread is not None and spread.text == "✓ n1: 5 of 5 members have it"
    cluster.happen("dev", ProcessKilled("n1"))
    assert spread_of(fold(cluster, picture), "n1", wanted) is None


def test_the_latest_edit_that_stands_can_be_taken_back_one_after_the_other() -> None:
    cluster = FakeCluster(FIVE)
    first, second, third = (addresses(cluster, *labels) for labels in (FIVE, ("n1", "n2"), ("n1",)))
    records: list[Record] = []

    def undone() -> SetJoinList | None:
        records.extend(cluster.drain())
        edit = edit_in_force(records, {cluster.address(label): label for label in FIVE}.__getitem__)
        return None if edit is None else edit.undo

    def edited(label: str, edition: int, author: str, wanted: tuple[Address, ...]) -> None:
        cluster.happen(label, events.JoinListChanged(wanted, edition, cluster.address(author)))

    for label in ("n1", "n2"):
        edited(label, 0, label, first)
    assert undone() is None
    for label in ("n1", "n2"):
        edited(label, 1, "n1", second)
    assert undone() == SetJoinList("n1", first)
    edited("n1", 2, "n1", third)
    assert undone() == SetJoinList("n1", second)
    edited("n1", 3, "n1", second)
    assert undone() == SetJoinList("n1", first), "the second edit is taken back"
    edited("n1", 4, "n1", first)
    assert undone() is None
    edited("n2", 5, "n2", third)
    edited("n1", 5, "n2", third)
    assert undone() == SetJoinList("n2", second), "n2 was given that list by n1"


def test_a_member_that_is_not_reached_is_not_called_a_member() -> None:
    cluster = formed()
    cluster.happen("n4", ConnectionChanged("gone", "the connection broke"))
    assert "no answer from n4 (not reached)" in JoinListBoard(fold(cluster)).sentence("n1")
