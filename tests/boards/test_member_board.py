"""The members, one a row; and who is close to being suspected."""

from __future__ import annotations

from quarterdeck.backend.boards.member_board import (
    ListOrder,
    MemberBoardEntry,
    board_facts,
    heartbeat_observers,
    member_row,
    member_sentence,
)
from quarterdeck.backend.boards.member_detail import member_detail
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.events import HeartbeatLate
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionChanged
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FIVE, FakeCluster, fold, formed


def late(cluster: FakeCluster, observer: str, silence_s: int, *, over: bool = False, of: str = "n4") -> None:
    event = HeartbeatLate(cluster.address(of), f"{of}-life-1", silence_s * SECOND_US, 60 * SECOND_US, over)
    cluster.happen(observer, event, after_us=0)


def row(picture: Picture, label: str, later_us: int = 0) -> MemberBoardEntry:
    return member_row(picture, label, heartbeat_observers(picture), ListOrder(), picture.at + later_us)


def test_roles_order_and_what_each_holds() -> None:
    cluster = formed()
    for label in ("n1", "n2"):
        cluster.change_table(label, 4, {0: ["n2", "n1"], 1: ["n2", "n3"]})
    picture = fold(cluster)
    rows = [row(picture, label, 130 * SECOND_US) for label in FIVE]
    assert [row.role for row in rows] == ["▲ master", "△ next", "● member", "● member", "● member"]
    assert [row.order for row in rows] == [1, 2, 3, 4, 5]
    assert [(row.owned, row.backups) for row in rows] == [(0, 1), (2, 0), (0, 1), (0, 0), (0, 0)]
    assert [row.table_version for row in rows] == ["v4", "v4", "≠ none", "≠ none", "≠ none"]
    cluster.happen("n1", ConnectionChanged("gone", "the connection broke"))
    assert row(fold(cluster, picture), "n1").role == "▲ master", "out of reach, its row shows what it believed last"
    second = rows[1]
    assert (second.label, second.address, second.uuid) == ("n2", "10.0.0.2:5701", "n2-life-")
    assert (second.list_version, second.state, second.kind, second.zone, second.age) == ("v5", "", "data", "", "2 min")
    assert {row.heartbeat.text for row in rows} == {"✓ in time"}


def test_in_a_split_a_member_is_heard_on_its_own_side_alone() -> None:
    cluster = formed()
    cluster.split(FIVE[:3], FIVE[3:])
    picture = fold(cluster)
    assert row(picture, "n2").heartbeat.text == "⊘ not on the side of n4"
    assert row(picture, "n5").heartbeat.text == "⊘ not on the side of n1"


def test_lite_members_and_zones_stand_on_the_list() -> None:
    cluster = FakeCluster(("n1", "n2"))
    cluster.start("n1")
    members = (cluster.member("n1"), Member(cluster.address("n2"), "n2-life-1", 2, lite=True, zone="rack\x1b2"))
    cluster.start("n2")
    cluster.happen("n2", events.ListInstalled(2, "L", members[0].address, members, members[0].address, "joined"))
    found = row(fold(cluster), "n2")
    assert (found.kind, found.zone) == ("lite", "rack\N{REPLACEMENT CHARACTER}2")


def test_states_are_a_glyph_and_a_word() -> None:
    cluster = formed()
    cluster.happen("dev", ProcessKilled("n5"))
    cluster.happen("dev", ProcessPaused("n4"))
    cluster.happen("n3", events.ClaimStarted(5, (), ()))
    cluster.start("n2", life=2)
    picture = fold(cluster)
    assert [row(picture, label).state for label in FIVE] == ["", "○ joining", "△ claiming", "‖ paused", "✕ killed"]
    assert row(picture, "n5").heartbeat.text == row(picture, "n2").heartbeat.text == ""
    assert row(picture, "n9").state == "not up"
    assert [fact.text for fact in board_facts(picture, picture.at)] == [
        *("5 members", "● 1 running", "○ 1 joining", "△ 1 claiming", "‖ 1 paused", "✕ 1 killed"),
    ]
    assert member_sentence(picture, "n9", row(picture, "n9")) == "nothing was ever heard of n9"


def test_who_is_close_to_being_suspected() -> None:
    cluster = formed()
    late(cluster, "n1", 31)
    late(cluster, "n2", 35)
    picture = fold(cluster)
    beat = row(picture, "n4", 5 * SECOND_US).heartbeat
    assert (beat.text, beat.left_us) == ("◔ silent 40 s, suspected in 20 s", 20 * SECOND_US)
    assert beat.sentence == "silent 40 s to n2, n1, suspected in 20 s"
    assert row(picture, "n4", 60 * SECOND_US).heartbeat.text == "◔ silent 95 s, to be suspected now"
    facts = [fact.text for fact in board_facts(picture, picture.at)]
    assert facts[-1] == "◔ 1 late, the next suspicion in 25 s"
    late(cluster, "n2", 36, over=True)
    late(cluster, "n2", 36, over=True)
    assert row(fold(cluster, picture), "n4").heartbeat.text == "◔ silent 31 s, suspected in 29 s"
    late(cluster, "n1", 33, over=True)
    assert row(fold(cluster, picture), "n4").heartbeat.text == "✓ in time"


def test_a_suspicion_takes_the_place_of_lateness_and_a_new_list_ends_both() -> None:
    cluster = formed()
    late(cluster, "n2", 31)
    cluster.suspect("n2", "n4")
    picture = fold(cluster)
    assert not picture.members["n2"].silences
    beat = row(picture, "n4").heartbeat
    assert (beat.text, beat.left_us, beat.sentence) == ("? suspected", 0, "suspected by n2")
    late(cluster, "n2", 40)
    assert not fold(cluster, picture).members["n2"].silences
    late(cluster, "n3", 31)
    cluster.install("n3", 6, ("n1", "n2", "n3", "n5"))
    assert not fold(cluster, picture).members["n3"].silences
    for label in ("n1", "n3", "n5"):
        cluster.suspect(label, "n4")
    assert row(fold(cluster, picture), "n4").heartbeat.sentence == "suspected by n1, n2, n3 and others"


def test_whoever_was_removed_while_it_stood_still_is_not_listened_to() -> None:
    cluster = formed()
    cluster.happen("dev", ProcessPaused("n4"))
    for label in ("n1", "n2", "n3", "n5"):
        cluster.install(label, 6, ("n1", "n2", "n3", "n5"))
    beat = row(fold(cluster), "n4").heartbeat
    assert (beat.text, beat.sentence) == ("⊘ off the list", "n1 has it on its list no more")


def test_what_the_frozen_and_the_ended_waited_for_says_nothing() -> None:
    cluster = formed()
    late(cluster, "n2", 31)
    cluster.happen("dev", ProcessPaused("n2"))
    assert row(fold(cluster), "n4").heartbeat.text == "✓ in time"


def test_pictures_that_were_copied_do_not_see_each_others_lateness() -> None:
    cluster = formed()
    before = fold(cluster)
    after = before.copy()
    late(cluster, "n2", 31)
    fold(cluster, after)
    assert after.members["n2"].silences and not before.members["n2"].silences


def test_links_lateness_and_recent_events_in_the_detail() -> None:
    cluster = formed()
    late(cluster, "n2", 31)
    cluster.happen("dev", LinkChanged("n4", "n2", blocked="blackhole"))
    cluster.happen("dev", LinkChanged("n1", "n4", delay=2_000))
    cluster.happen("dev", ProcessPaused("n3"))
    picture = Picture()
    records = cluster.drain()
    for record in records:
        picture.apply(record)
    facts = [(fact.heading, fact.text) for fact in member_detail(picture, "n4", picture.at, recent=records)]
    assert ("heartbeat", "◔ silent 31 s to n2, suspected in 28 s") in facts
    place = facts.index(("links", "✂ → n2 is cut (blackhole)"))
    assert facts[place + 1] == ("", "~ ← n1 is slower by 2 ms")
    assert facts[place + 2][0] == "lately" and "installs list v5" in facts[place + 2][1]
    facts = [(fact.heading, fact.text) for fact in member_detail(picture, "n2", picture.at, recent=records)]
    assert ("waits for", "◔ n4, silent for 31 s; suspects it in 28 s") in facts
    facts = [(fact.heading, fact.text) for fact in member_detail(picture, "n3", picture.at, recent=records)]
    assert ("lately", "1.300 s: n3 is paused") in facts
    assert ("links", "✓ up, to 4 running members: none is cut, slowed down or lossy") in facts
    assert ("lately", "nothing that is still remembered") in [
        (fact.heading, fact.text) for fact in member_detail(picture, "n3", picture.at, recent=())
    ]
