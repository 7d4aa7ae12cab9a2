"""Every question is answered by a conclusion, and each conclusion has the statements on which it rests."""

from __future__ import annotations

from typing import cast, get_args

import pytest

from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.membership.events import ClusterStateChanged, ListInstalled
from quarterdeck.backend.core.partitions.events import ALL_LOST, MigrationsPlanned, PartitionLost, PlannedMigration
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, MemberMeasured, OwnersTold, ReplicaMigrated
from quarterdeck.backend.judgement.conclusion import Conclusion, Question
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.stuck_migrations import STUCK_US
from quarterdeck.backend.judgement.watcher import WATCHES_ALL, Missed, Watcher, recorded_watcher
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FakeCluster, fold
from tests.judgement.health.test_cluster_health import CITIES, SECOND, formed, witnessed
from tests.judgement.test_absence import FOUR, removed


def concluded(
    cluster: FakeCluster, after_us: int = 6 * SECOND, watcher: Watcher = WATCHES_ALL, picture: Picture | None = None
) -> dict[str, Conclusion]:
    picture = fold(cluster, picture)
    found = Judge(picture, watcher, cluster.now_us() + after_us).conclusions(("athens",))
    return {f"{it.question} {it.subject}".rstrip(): it for it in found}


def test_each_question_is_answered_and_each_sure_answer_has_evidence() -> None:
    cluster = formed()
    cluster.happen("dev", ProcessKilled("byzantium"))
    removed(cluster, "byzantium")
    found = concluded(cluster)
    assert {it.question for it in found.values()} == set(get_args(Question))
    assert found["absent byzantium"].value == "gone"
    assert {said.source for said in found["absent byzantium"].evidence} == {"athens", "byzantium"}
    assert {said.source for said in found["lists-agree"].evidence} == set(FOUR)
    quiet = ("apart", "data-lost")
    assert all(
        it.evidence
        for it in found.values()
        if it.answer != "unknown" and it.question not in quiet and it.answer == "yes"
    )


def test_a_conclusion_is_as_old_as_the_oldest_statement_that_it_needs() -> None:
    cluster = formed()
    picture = fold(cluster)
    found = concluded(cluster, picture=picture)
    assert found["one-cluster"].oldest_us == min(belief.list_since_us for belief in picture.members.values())
    (evidence,) = cast("list[dict[str, object]]", found["lists-agree"].as_fields(cluster.now_us())["evidence"])
    assert evidence["of"] == list(CITIES), "members that say the same share a statement"


def test_a_half_that_is_not_heard_is_evidence_with_its_age() -> None:
    cluster, picture = formed(data=False), Picture()
    cluster.split(CITIES[:3], CITIES[3:])
    fold(cluster, picture)
    lost_us = cluster.now_us()
    watcher = Watcher({label: Missed(lost_us) for label in CITIES[3:]})
    found = concluded(cluster, 9 * SECOND, watcher, picture)
    assert found["one-cluster"].answer == "no" and found["master"].value == ["athens", "delphi"]
    assert ("", lost_us) in {(said.source, said.at_us) for said in found["one-cluster"].evidence}


def test_what_keeps_clusters_apart_has_the_words_of_their_masters() -> None:
    cluster = formed(data=False)
    cluster.split(CITIES[:3], CITIES[3:])
    found = concluded(cluster)
    apart = found["apart delphi"]
    assert apart.value is not None and {said.source for said in apart.evidence} == {"athens", "delphi"}
    assert found["one-cluster"].answer == "no"


@pytest.mark.parametrize(("loses", "answer"), [(False, "no"), (True, "unknown")])
def test_a_loss_is_a_conclusion_with_who_reported_it(loses: bool, answer: str) -> None:
    cluster = formed()
    if loses:
        cluster.happen("athens", PartitionLost(3, ALL_LOST))
    found = concluded(cluster)
    lost = found["data-lost athens" if loses else "data-lost"]
    assert lost.answer == answer
    assert {said.source for said in lost.evidence} == ({"athens"} if loses else set())


def test_refused_calls_have_the_member_that_says_so() -> None:
    cluster = formed()
    assert concluded(cluster)["refused"].answer == "no"
    cluster.happen("athens", ClusterStateChanged("PASSIVE", "asked"))
    refused = concluded(cluster, picture=fold(cluster, fold(formed())))["refused"]
    assert refused.answer == "yes" and [said.source for said in refused.evidence] == ["athens"]


@pytest.mark.parametrize(("after_us", "answer"), [(STUCK_US - SECOND, "no"), (STUCK_US, "yes")])
def test_migrations_of_which_none_begins_or_ends_hang(after_us: int, answer: str) -> None:
    cluster = formed()
    planned = PlannedMigration(3, "COPY", None, cluster.address("delphi"), 1)
    cluster.happen("athens", MigrationsPlanned((planned,), 1, 1, "a member left"))
    cluster.begin("athens", "m1", 4, "", "delphi")
    hangs = concluded(cluster, after_us)["migration-hangs athens"]
    assert (hangs.answer, hangs.value) == (answer, "1 migrating, 1 planned")


def test_a_round_with_an_empty_queue_is_over_whatever_was_counted() -> None:
    cluster = witnessed(*CITIES)
    migrated = ReplicaMigrated(7, 0, cluster.address("athens"), cluster.address("delphi"), True, 1_000, 204, 203)
    cluster.happen("athens", migrated)
    picture = fold(cluster)
    assert concluded(cluster, STUCK_US, picture=picture)["migration-hangs athens"].answer == "yes"
    cluster.happen("athens", MemberMeasured(queued_migrations=0))
    assert concluded(cluster, STUCK_US, picture=picture)["migration-hangs athens"].answer == "no"


def test_members_that_report_their_present_state_alone_are_known_since_the_watch_began() -> None:
    cluster = witnessed(*CITIES)
    cluster.happen("delphi", ConnectionChanged("silent", "it says nothing"))
    assert recorded_watcher(fold(cluster)).since_us == 0
    assert recorded_watcher(fold(formed())).since_us is None


def test_owners_of_an_older_list_do_not_show_who_owns_their_partitions_now() -> None:
    """Nothing is promoted while FROZEN: whoever was started again owns nothing, and new owners are reported seconds later."""
    cluster = witnessed(*CITIES)
    holders = tuple(cluster.holder(label) for label in CITIES)
    picture = fold(cluster)
    athens = cluster.address("athens")
    again = tuple(cluster.member(label, 2 if label == "byzantium" else 1) for label in CITIES)
    for label in FOUR:
        cluster.happen(label, ListInstalled(7, "L1", athens, again, athens, "join", ""))
    cluster.happen("byzantium", ListInstalled(7, "L1", athens, again, athens, "join", ""), life=2)
    cluster.happen("byzantium", ConnectionChanged("connected"), life=2)
    judge = Judge(fold(cluster, picture), recorded_watcher(picture), cluster.now_us() + 3 * SECOND)
    assert judge.health.condition == "unknown"
    assert "owners of 54 partitions unknown" in judge.health.sentence
    assert {it.answer for it in judge.conclusions() if it.question == "refused"} == {"unknown"}
    owners = tuple(-1 if place % 5 == 1 else place % 5 for place in range(271))
    for label in CITIES:
        life = 2 if label == "byzantium" else 1
        cluster.happen(label, OwnersTold(holders, owners, "abd", 2), life=life)
    known = Judge(fold(cluster, picture), recorded_watcher(picture), cluster.now_us() + 3 * SECOND)
    assert "54 partitions without an owner" in known.health.sentence
