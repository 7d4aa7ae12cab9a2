"""May the next member be stopped: yes only when all that speaks against it is known not to be so."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import BackupOutOfStep, DataMeasured, MapMeasured
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.membership.events import ClusterStateChanged
from quarterdeck.backend.core.witnessed.events import (
    ConnectionChanged,
    MemberMeasured,
    MemberWitnessed,
    ReplicaMigrated,
)
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.stop_verdict import QUIET_US, StopVerdict
from tests.app.fakes.fake_cluster import FakeCluster, fold
from tests.judgement.health.test_cluster_health import CITIES, LATER, SECOND, formed, measured, witnessed

QUIET = QUIET_US + LATER


def judged(cluster: FakeCluster, label: str = "byzantium", minimum: int = 1, after_us: int = LATER) -> StopVerdict:
    picture = fold(cluster)
    now_us = cluster.now_us() + after_us
    return Judge(picture, now_us=now_us).may_stop(label, minimum)


def kinds(verdict: StopVerdict) -> set[str]:
    return {reason.kind for reason in verdict.reasons}


def counted(cluster: FakeCluster, backups: int = 100, waiting: int | None = 0, syncs: int = 0) -> FakeCluster:
    """Let each member report its entries and its metrics, as members of Hazelcast do."""
    for label in cluster.labels:
        cluster.happen(label, MemberWitnessed(("client-protocol",), ("owners", "losses", "cluster-state")))
        cluster.happen(label, DataMeasured(SECOND, 100, 1_000, backups, 1_000, 0, (), (), ()))
        cluster.happen(label, MemberMeasured(queued_migrations=waiting, replica_syncs=syncs))
    return cluster


# Members of ours


@pytest.mark.parametrize("label", ["athens", "byzantium"])
def test_a_whole_quiet_cluster_lets_any_member_go(label: str) -> None:
    verdict = judged(formed(), label)
    assert (verdict.answer, verdict.reasons) == ("yes", ())
    assert verdict.sentence(label) == f"{label} may be stopped"


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (ClusterStateChanged("FROZEN", "an operator asked"), "state"),
        (BackupOutOfStep(7, Address("10.0.0.3:5701"), "it missed a write"), "backups"),
    ],
)
def test_what_speaks_against_it(event: object, kind: str) -> None:
    cluster = formed()
    for label in CITIES if kind == "state" else ("athens",):
        cluster.happen(label, event)  # type: ignore[arg-type]
    verdict = judged(cluster)
    assert verdict.answer == "no"
    assert kind in kinds(verdict)
    assert verdict.sentence("athens").startswith("athens may not be stopped now: ")


@pytest.mark.parametrize(("entries", "answer"), [(5, "no"), (0, "unknown")])
def test_data_that_was_lost_lately_speaks_against_it(entries: int, answer: str) -> None:
    cluster = formed()
    cluster.happen("delphi", measured((3, entries)))
    for label in CITIES[3:]:
        cluster.happen("dev", ProcessKilled(label))
    for label in CITIES[:3]:
        cluster.install(label, 7, CITIES[:3])
        cluster.change_table(label, 2, dict.fromkeys(range(271), (label, CITIES[0])))
    verdict = judged(cluster)
    assert "data-lost" in kinds(verdict)
    assert next(reason.answer for reason in verdict.reasons if reason.kind == "data-lost") == answer


def test_what_a_frozen_cluster_would_lose_is_said() -> None:
    """When its members are restarted in turn, the last holder of a partition is as good as killed."""
    cluster = formed()
    for label in cluster.labels:
        cluster.happen(label, ClusterStateChanged("FROZEN", "to be restarted", "decided"))
    cluster.happen(cluster.labels[0], ProcessKilled(cluster.labels[0]))
    (reason,) = (reason for reason in judged(cluster, cluster.labels[1]).reasons if reason.kind == "state")
    assert reason.text.endswith("its data would not migrate to others; 55 partitions would be lost")


def test_a_member_that_is_missing() -> None:
    cluster = formed()
    cluster.happen("cyrene", ProcessKilled("cyrene"))
    verdict = judged(cluster)
    assert (verdict.answer, kinds(verdict) >= {"whole", "backups"}) == ("no", True)


def test_the_size_that_is_left() -> None:
    assert judged(formed(), minimum=4).answer == "yes"
    verdict = judged(formed(), minimum=5)
    assert (verdict.answer, [reason.text for reason in verdict.reasons]) == (
        "no",
        ["4 members would be left; 5 are wanted at least"],
    )
    assert "only member" in judged(formed(("athens",)), "athens").reasons[0].text


def test_a_member_that_was_never_met() -> None:
    assert judged(formed(), "nowhere").answer == "unknown"


# Members of Hazelcast


def test_members_that_report_enough_for_long_enough() -> None:
    assert judged(counted(witnessed(*CITIES)), after_us=QUIET).answer == "yes"


@pytest.mark.parametrize(("owned", "answer"), [((0, 0, 0), "yes"), ((0, 0, None), "unknown"), ((0, 0, 7), "unknown")])
def test_members_that_hold_no_data_yet(owned: tuple[int | None, ...], answer: str) -> None:
    cluster = FakeCluster(CITIES[:3], source="hazelcast")
    for label, partitions in zip(CITIES[:3], owned, strict=True):
        cluster.happen(label, MemberWitnessed(("client-protocol",), ("losses", "cluster-state")))
        cluster.happen(label, ConnectionChanged("connected"))
        cluster.install(label, 3, CITIES[:3])
        cluster.happen(label, MemberMeasured(queued_migrations=0, owned_partitions=partitions))
    assert judged(cluster).answer == answer


def test_a_missing_member_of_the_cp_subsystem() -> None:
    cluster = counted(witnessed(*CITIES))
    cluster.happen(CITIES[2], MemberMeasured(queued_migrations=0, cp_groups=2, cp_missing=1))
    verdict = judged(cluster, after_us=QUIET)
    assert (verdict.answer, [reason.text for reason in verdict.reasons]) == (
        "no", ["1 CP member missing: one less may be too few"],
    )  # fmt: skip


def test_owners_must_have_been_still() -> None:
    verdict = judged(counted(witnessed(*CITIES)))
    assert (verdict.answer, kinds(verdict)) == ("unknown", {"tables"})


@pytest.mark.parametrize(
    ("how", "answer", "kind"),
    [
        ({"backups": 0}, "no", "backups"),
        ({"backups": 90}, "unknown", "backups"),
        ({"waiting": 12}, "no", "migrations"),
        ({"waiting": None}, "unknown", "migrations"),
        ({"syncs": 3}, "no", "backups"),
    ],
)
def test_what_members_report_speaks_against_it(how: dict[str, int], answer: str, kind: str) -> None:
    verdict = judged(counted(witnessed(*CITIES), **how), after_us=QUIET)
    assert (verdict.answer, kinds(verdict)) == (answer, {kind})


@pytest.mark.parametrize(
    ("held", "answer", "text"),
    [
        ({"orders": (100, 1, 100), "stock": (50, 2, 100)}, "yes", ""),
        ({"orders": (100, 1, 50), "stock": (50, 3, 150)}, "unknown", "map orders: 250 backups of 500 entries"),
        ({"orders": (100, 1, 100), "cache": (50, 0, 0)}, "no", "cache: 250 entries of maps that have no backup"),
        ({"orders": (100, 0, 100)}, "yes", "that none has is contradicted by those that there are"),
        ({"cache": (0, 0, 0), "orders": (100, 1, 100)}, "yes", ""),
    ],
)
def test_maps_with_different_numbers_of_backups_are_judged_each(
    held: dict[str, tuple[int, int, int]], answer: str, text: str
) -> None:
    cluster = witnessed(*CITIES)
    for label in counted(cluster).labels:
        maps = tuple(MapMeasured(name, entries, 0, 0, 0, *copies) for name, (entries, *copies) in held.items())
        entries, backups = (sum(counts[place] for counts in held.values()) for place in (0, 2))
        cluster.happen(label, DataMeasured(SECOND, entries, 0, backups, 0, 0, maps, (), ()))
    verdict = judged(cluster, after_us=QUIET)
    assert verdict.answer == answer
    assert all(text in reason.text for reason in verdict.reasons)


def test_what_is_not_told_is_not_known() -> None:
    verdict = judged(witnessed(*CITIES), after_us=QUIET)
    assert verdict.answer == "unknown"
    assert kinds(verdict) == {"state", "migrations", "backups"}


def test_a_silent_member_is_not_known() -> None:
    cluster = counted(witnessed(*CITIES))
    cluster.happen("delphi", ConnectionChanged("silent"))
    assert judged(cluster, after_us=QUIET).answer in ("unknown", "no")
    assert judged(cluster, "delphi", after_us=QUIET).answer == "unknown"


# How long it takes


def test_the_time_of_a_stop_follows_from_the_latest_round() -> None:
    cluster = counted(witnessed(*CITIES))
    for number in range(11):
        migrated = ReplicaMigrated(number, 0, None, cluster.address("delphi"), True, 20, 11, number + 1)
        cluster.happen("athens", migrated, after_us=SECOND)
    assert judged(cluster, after_us=QUIET).expected_stop_us == 54 * SECOND, "one of its partitions a second"
    assert judged(counted(witnessed(*CITIES))).expected_stop_us is None


def test_the_contract() -> None:
    fields = judged(formed(), minimum=5).as_fields(0)
    assert fields == {
        "verdict": "no",
        "reasons": [{"kind": "size", "text": "4 members would be left; 5 are wanted at least", "since_seconds": None}],
        "expected_stop_seconds": None,
    }
