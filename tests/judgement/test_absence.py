"""A cluster that misses a member is not healthy until it is back, replaced or accepted; after ten minutes a note is left."""

from __future__ import annotations

import pytest

from quarterdeck.backend.boards.operator_questions import operator_questions
from quarterdeck.backend.core.events import MembersExpected, ProcessKilled, ProcessPaused
from quarterdeck.backend.core.membership.events import ListInstalled, MemberStopped
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, OwnersTold
from quarterdeck.backend.judgement.absence import ALARM_US
from quarterdeck.backend.judgement.health.cluster_health import ClusterHealth
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.watcher import WATCHES_ALL, Missed, Watcher, recorded_watcher
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FakeCluster, fold
from tests.judgement.health.test_cluster_health import CITIES, SECOND, formed, witnessed

FOUR = tuple(label for label in CITIES if label != "byzantium")


def removed(cluster: FakeCluster, *gone: str, version: int = 7) -> None:
    """Let all others install a list without the members that are `gone`."""
    left = [label for label in CITIES if label not in gone]
    for label in left:
        cluster.install(label, version, left)


def judge_of(cluster: FakeCluster, picture: Picture, after_us: int, watcher: Watcher = WATCHES_ALL) -> Judge:
    return Judge(fold(cluster, picture), watcher, cluster.now_us() + after_us)


def judged(
    cluster: FakeCluster, picture: Picture, after_us: int = 6 * SECOND, watcher: Watcher = WATCHES_ALL
) -> ClusterHealth:
    return judge_of(cluster, picture, after_us, watcher).health


@pytest.fixture
def picture() -> Picture:
    return Picture()


def test_a_killed_member_is_missed_until_it_is_back(picture: Picture) -> None:
    cluster = formed(data=False)
    cluster.happen("dev", ProcessKilled("byzantium"))
    removed(cluster, "byzantium")
    health = judged(cluster, picture)
    assert health.sentence.startswith("degraded · 4 of 5 · byzantium gone 6 s ago (killed)")
    assert (health.condition, health.tone) == ("degraded", "warning")
    cluster.start("byzantium", 2)
    assert (
        "byzantium joining" in judged(cluster, picture).sentence
        and "byzantium gone" not in judged(cluster, picture).sentence
    )
    everyone = (*(cluster.member(label) for label in FOUR), cluster.member("byzantium", 2))
    athens = cluster.address("athens")
    for label in CITIES:
        installed = ListInstalled(8, "L1", athens, everyone, athens, "join", "")
        cluster.happen(label, installed, life=2 if label == "byzantium" else 1)
    assert judged(cluster, picture).sentence == "healthy · 5 members agree · no data yet"


def test_after_ten_minutes_the_colour_goes_and_the_note_stays(picture: Picture) -> None:
    cluster = formed(data=False)
    cluster.happen("dev", ProcessKilled("byzantium"))
    removed(cluster, "byzantium")
    health = judged(cluster, picture, ALARM_US)
    assert health.sentence.startswith("healthy · 4 of 5 · ") and health.tone == "good"
    assert health.sentence.endswith("byzantium gone 10 min ago (killed)") and health.whole is True


def test_a_goodbye_needs_no_acceptance() -> None:
    for farewell_first in (True, False):
        cluster, picture = formed(data=False), Picture()
        if farewell_first:
            cluster.happen("byzantium", MemberStopped("asked to stop", "asked"))
        removed(cluster, "byzantium")
        if not farewell_first:
            cluster.happen("byzantium", MemberStopped("asked to stop", "asked"))
        assert judged(cluster, picture).sentence == "healthy · 4 members agree · no data yet"


def test_a_member_that_joins_later_replaces_the_one_that_left_first(picture: Picture) -> None:
    cluster = formed(data=False)
    cluster.labels = (*CITIES, "foxtrot")
    cluster.happen("dev", ProcessKilled("byzantium"))
    removed(cluster, "byzantium")
    six = [*FOUR, "foxtrot"]
    for label in six:
        cluster.install(label, 8, six)
    health = judged(cluster, picture)
    assert (health.sentence, health.whole) == ("healthy · 5 members agree · no data yet", True)


def test_a_silent_host_that_was_replaced_is_not_unknown(picture: Picture) -> None:
    cluster = witnessed(*CITIES)
    cluster.happen("byzantium", ConnectionChanged("silent"))
    removed(cluster, "byzantium")
    missed = "degraded · 4 of 5 · byzantium out of reach 6 s ago · owners of 54 partitions unknown"
    assert judged(cluster, picture).sentence == missed
    assert judged(cluster, picture).whole is None, "it may lead on its own"
    cluster.labels = (*CITIES, "foxtrot")
    six = [*FOUR, "foxtrot"]
    cluster.happen("foxtrot", ConnectionChanged("connected"))
    for label in six:
        cluster.install(label, 8, six)
    cluster.happen("athens", OwnersTold((cluster.holder("athens"),), (0,) * 271, "abd", 2))
    assert judged(cluster, picture).sentence == "healthy · 5 members agree · backups unknown"


def test_the_operator_accepts_a_size(picture: Picture) -> None:
    cluster = formed(data=False)
    cluster.happen("dev", ProcessKilled("byzantium"))
    removed(cluster, "byzantium")
    accepted = Watcher(expected_members=4)
    assert judged(cluster, picture, watcher=accepted).sentence == "healthy · 4 members agree · no data yet"
    cluster.happen("dev", ProcessKilled("delphi"), after_us=4 * SECOND)
    removed(cluster, "byzantium", "delphi", version=8)
    health = judged(cluster, picture, watcher=accepted)
    assert health.sentence.startswith("degraded · 3 of 4 · delphi gone 6 s ago (killed)")


def test_a_frozen_member_is_missed_also_when_it_is_off_the_list(picture: Picture) -> None:
    cluster = formed(data=False)
    cluster.happen("dev", ProcessPaused("byzantium"))
    assert judged(cluster, picture).sentence == "degraded · byzantium frozen"
    removed(cluster, "byzantium")
    health = judged(cluster, picture)
    assert health.sentence.startswith("degraded · 4 of 5 · byzantium frozen 6 s ago")
    assert health.whole is None, "it may still lead, in its own belief"


def test_each_half_of_a_split_misses_the_other_and_none_is_missed_after_the_merge(picture: Picture) -> None:
    cluster = formed(data=False)
    cluster.split(CITIES[:3], CITIES[3:])
    assert judged(cluster, picture).sentence.startswith("SPLIT since 6 s · 3 + 2, masters athens, delphi")
    athens = cluster.address("athens")
    merged = (*(cluster.member(label) for label in CITIES[:3]), *(cluster.member(label, 2) for label in CITIES[3:]))
    for label in CITIES:
        life = 2 if label in CITIES[3:] else 1
        if life == 2:
            cluster.start(label, 2)
        cluster.happen(label, ListInstalled(20, "L1", athens, merged, athens, "join", ""), life=life)
    assert judged(cluster, picture).sentence == "healthy · 5 members agree · no data yet"


@pytest.mark.parametrize("out_of_sight", [CITIES[:3], CITIES[3:]])
def test_a_half_that_is_out_of_sight_is_still_a_half(picture: Picture, out_of_sight: tuple[str, ...]) -> None:
    """A watcher that was cut from one half said that there was one cluster, and that the data of the other was lost."""
    cluster = witnessed(*CITIES)
    cluster.split(CITIES[:3], CITIES[3:])
    for label in out_of_sight:
        cluster.happen(label, ConnectionChanged("silent"))
    health = judged(cluster, picture, 21 * SECOND)
    assert health.condition == "split" and health.whole is False
    assert f"{out_of_sight[0]}, not heard for 21 s" in health.sentence, health.sentence
    judge = judge_of(cluster, picture, SECOND)
    assert {side.master for side in judge.agreement.sides} == {"athens", "delphi"}
    for label in out_of_sight:
        cluster.happen(label, ConnectionChanged("gone", "connection refused"))
    assert judged(cluster, picture).condition == "degraded", "a half whose processes have ended is none"


def test_a_half_of_which_the_master_alone_is_out_of_sight_is_still_a_half(picture: Picture) -> None:
    """The watcher came back to both halves, and heard the master of one a second later than its followers."""
    cluster = witnessed(*CITIES)
    cluster.split(CITIES[:3], CITIES[3:])
    cluster.happen("delphi", ConnectionChanged("silent"))
    judge = judge_of(cluster, picture, 4 * SECOND)
    assert judge.health.sentence.startswith("SPLIT · 3 + 2, masters athens, delphi · delphi, not heard for 4 s")
    apart = dict.fromkeys(fact.text for fact in operator_questions(judge, ()) if fact.tone == "warning")
    assert "not known of delphi, of which nothing is heard" in apart


def test_of_a_half_that_is_out_of_sight_no_table_is_known(picture: Picture) -> None:
    cluster = witnessed(*CITIES)
    cluster.split(CITIES[:3], CITIES[3:])
    for label in CITIES[3:]:
        cluster.happen(label, ConnectionChanged("silent"))
    judge = judge_of(cluster, picture, 21 * SECOND)
    assert judge.agreement.tables_agree is None
    told = [fact.text for fact in operator_questions(judge, ())]
    assert any(text.endswith("with table abc; delphi led others and is not heard") for text in told), told
    assert "there are no two masters in sight" not in told


def test_a_half_that_the_watcher_alone_does_not_reach_is_still_a_half(picture: Picture) -> None:
    cluster = formed(data=False)
    cluster.split(CITIES[:3], CITIES[3:])
    now_us = cluster.now_us() + 9 * SECOND
    watcher = Watcher({label: Missed(cluster.now_us()) for label in CITIES[3:]})
    health = Judge(fold(cluster, picture), watcher, now_us).health
    assert health.sentence.startswith("SPLIT · 3 + 2, masters athens, delphi · delphi, not heard for 9 s")


def test_an_old_master_that_fell_silent_before_another_one_led_is_no_half(picture: Picture) -> None:
    """Whether it leads on its own is not known."""
    cluster = witnessed(*CITIES)
    cluster.happen("athens", ConnectionChanged("silent"))
    left = CITIES[1:]
    for label in left:
        cluster.install(label, 7, left, lineage="L2")
    health = judged(cluster, picture)
    assert health.sentence.startswith("degraded · 4 of 5 · athens out of reach 6 s ago") and health.whole is None


def test_a_member_that_is_on_another_list_alone_counts_among_all(picture: Picture) -> None:
    cluster = formed(data=False)
    cluster.happen("dev", ProcessKilled("byzantium"))
    cluster.happen("dev", ProcessKilled("delphi"))
    left = [label for label in CITIES if label not in ("byzantium", "delphi")]
    cluster.install(left[0], 7, [*left, "delphi"])
    for label in left[1:]:
        cluster.install(label, 8, left)
    assert "3 of 5" in judged(cluster, picture).sentence


def test_a_size_that_an_operator_accepts_is_a_record_and_replayed(picture: Picture) -> None:
    cluster = formed(data=False)
    cluster.happen("dev", ProcessKilled("byzantium"))
    removed(cluster, "byzantium")
    picture = fold(cluster, picture)
    before = picture.copy()
    cluster.happen("dev", MembersExpected(4))
    accepted = Judge(fold(cluster, picture), recorded_watcher(picture), cluster.now_us() + SECOND).health
    assert accepted.sentence == "healthy · 4 members agree · no data yet"
    assert Judge(before, recorded_watcher(before), cluster.now_us()).health.condition == "degraded"
