"""What is observed, and what is not, where the recordings have no example."""

from pathlib import Path

import pytest

from quarterdeck.backend.judgement.observations.observation import MAX_EVIDENCE
from quarterdeck.backend.judgement.observations.wording import lasted
from tests.hazelcast.logs.written_logs import A, B, C, Logs, member

JUMP = (
    "Resetting heartbeat timestamps because of huge system clock jump! Clock-Jump: {} ms, Heartbeat-Timeout: 60000 ms"
)


def kinds(logs: Logs) -> list[str]:
    return [observation.kind for observation in logs.observed()]


def test_one_return_is_a_recovery_and_two_are_flapping(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a", "1")
    logs.lists(10, 4, "1a2a", "1")
    logs.lists(20, 5, "1a2a3b", "1")
    assert kinds(logs) == []
    logs.lists(30, 6, "1a2a", "1")
    logs.lists(40, 7, "1a2a3c", "1")
    (flapping,) = logs.observed()
    assert (flapping.kind, flapping.members) == ("flapping", (C,))
    assert flapping.headline == f"{C} removed and readmitted twice in 30 s"
    assert "from version 4 to 7" in flapping.detail


def test_whoever_installs_a_list_first_it_counts_once(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    for second, version, members in (
        (0, 3, "1a2a3a"),
        (10, 4, "1a2a"),
        (20, 5, "1a2a3b"),
        (30, 6, "1a2a"),
        (40, 7, "1a2a3c"),
    ):
        for place, host in enumerate("21"):
            logs.lists(second + place / 10, version, members, host)
    assert [observation.headline for observation in logs.observed()] == [f"{C} removed and readmitted twice in 30 s"]


def test_two_that_flap_at_one_time_are_an_oscillation(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    steps = ("1a2a3a", "1a2a", "1a2a3b", "1a3b", "1a3b2b", "1a2b", "1a2b3c", "1a3c", "1a3c2c")
    for place, members in enumerate(steps):
        logs.lists(10 * place, 3 + place, members, "1")
    (oscillation,) = logs.observed()
    assert (oscillation.kind, sorted(oscillation.members)) == ("oscillation", [B, C])
    assert "removed and readmitted 4 times in 70 s" in oscillation.headline


def test_a_member_that_is_started_again_each_time_does_not_flap(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a", "13")
    for place, life in enumerate("bc"):
        logs.lists(10 + 20 * place, 4 + 2 * place, "1a2a", "1")
        logs.said(15 + 20 * place, 3, "Hazelcast Platform 5.3.8 (20240717) starting at [10.0.0.3]:5701")
        logs.lists(20 + 20 * place, 5 + 2 * place, f"1a2a3{life}", "13")
    (restart,) = logs.observed()
    assert restart.headline == f"started again: {C} twice (2 without a goodbye)"


def test_spells_of_the_same_member_are_one_observation(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    for spell in range(3):
        for place, members in enumerate(("1a2a3a", "1a2a", "1a2a3b", "1a2a", "1a2a3a")):
            logs.lists(1000 * spell + 10 * place, 3 + 4 * spell + place, members, "1")
    (flapping,) = logs.observed()
    assert flapping.headline == f"{C} removed and readmitted twice in 30 s, and twice more in the same way"
    assert (flapping.start_us, flapping.end_us, flapping.evidence_lines) == (10_000_000, 2_040_000_000, 12)


def test_restarts_long_after_it_flapped_do_not_hide_it(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    for place, members in enumerate(("1a2a3a", "1a2a", "1a2a3b", "1a2a", "1a2a3c")):
        logs.lists(10 * place, 3 + place, members, "1")
    logs.lists(40, 7, "1a2a3c", "3")
    for place in range(3):
        logs.said(1000 + 200 * place, 3, "Hazelcast Platform 5.3.8 (20240717) starting at [10.0.0.3]:5701")
    assert kinds(logs) == ["flapping", "restart"]


def test_a_removal_by_mutual_suspicion_names_who_disagreed(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a")
    second, third = (f"Member [10.0.0.{host}]:5701 - aaaaaaaa-0000-4000-8000-00000000000{host}" for host in (2, 3))
    logs.said(9, 1, f"Received suspected members: [{third}] from {second}")
    logs.said(12, 1, f"Removing {third} because it has disconnected from some of the members!")
    logs.said(12, 1, f"Removing {third}")
    logs.lists(12, 4, "1a2a", "12")
    (found,) = logs.observed()
    assert (found.kind, found.members) == ("mutual-suspicion", (C, B))
    assert found.headline == f"{C} removed once by mutual suspicion with {B}"
    assert found.evidence_lines == 2


def test_lost_partitions_name_who_had_left(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 2, "1a2a")
    logs.said(10, 1, "Removing Member [10.0.0.2]:5701 - aaaaaaaa-0000-4000-8000-000000000002")
    logs.lists(10, 3, "1a", "1")
    for partition in range(40):
        logs.said(11, 1, f"partitionId={partition} is completely lost!")
    (lost,) = (observation for observation in logs.observed() if observation.kind == "partition-lost")
    assert lost.headline == f"40 partitions lost with all replicas after {B} had been removed"
    assert (lost.evidence_lines, len(lost.evidence)) == (40, MAX_EVIDENCE)


def test_a_claim_that_never_ends_is_told(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a")
    logs.said(10, 2, "Starting mastership claim process...")
    logs.said(20, 2, "[10.0.0.2]:5701 is STARTED")
    assert logs.observed() == []  # it goes on
    logs.said(70, 2, "[10.0.0.2]:5701 is STARTED")
    (claim,) = logs.observed()
    assert claim.is_open and claim.headline == f"the mastership claim of {B} was not finished once for 60 s"


@pytest.mark.parametrize(
    ("logged_s", "said"),
    [
        (190, "had its clock set forward for 90 s"),
        (101, "stood still for 90 s"),
        (None, "stood still, or its clock was set forward, for 90 s"),
    ],
)
def test_a_later_list_shows_whether_a_member_stood_still(tmp_path: Path, logged_s: int | None, said: str) -> None:
    """The logs of both have the list of version 3; a clock that is ahead dates it later."""
    logs = Logs(tmp_path)
    logs.lists(0, 2, "1a2a")
    logs.said(95, 2, JUMP.format("90128"))
    logs.lists(100, 3, "1a2a3a", "1")
    if logged_s is not None:
        logs.lists(logged_s, 3, "1a2a3a", "2")
    (jump,) = (seen for seen in logs.observed() if seen.kind == "clock-jump")
    assert jump.headline == f"{B} {said}"
    assert jump.start_us == (95_000_000 if said.startswith("had") else 4_872_000)


def test_a_clock_that_is_set_back_is_no_pause(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 1, "1a")
    logs.said(60, 1, JUMP.format("-35000"))
    assert [observation.headline for observation in logs.observed()] == [f"{A} had its clock set back for 35 s"]
    logs.said(600, 1, JUMP.format("40000"))
    assert "twice" in logs.observed()[0].headline


def test_a_clock_that_is_set_forward_and_back_is_no_pause_though_others_suspect_the_member(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 2, "1a2a")
    jump = "Resetting heartbeat timestamps because of huge system clock jump! Clock-Jump: {} ms, Heartbeat-Timeout: 60000 ms"
    logs.said(
        60,
        1,
        "Member [10.0.0.2]:5701 - aaaaaaaa-0000-4000-8000-000000000002 is suspected to be dead for reason: no heartbeat",
    )
    logs.said(61, 2, jump.format("91156"))
    logs.said(81, 2, jump.format("-89556"))
    (jumped,) = (seen for seen in logs.observed() if seen.kind == "clock-jump")
    assert jumped.headline.startswith(f"{B} had its clock set forward and back, at most for 91 s")
    assert "stood still" not in jumped.headline and jumped.start_us == 61_000_000, "it ran meanwhile"


def test_clusters_that_never_met_are_not_halves(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 2, "1a2a")
    logs.lists(0, 2, "3a4a")
    logs.said(90, 1, "[10.0.0.1]:5701 is STARTED")
    assert kinds(logs) == []
    logs.said(91, 1, "[10.0.0.3]:5701 should merge to us, both have the same data member count: 2")
    logs.lists(92, 3, "1a2a")
    assert kinds(logs) == ["halves-apart"]


def test_a_member_that_crashed_is_no_half(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a")
    logs.lists(10, 4, "2a3a")  # the second claimed, for the first had died
    logs.said(25, 2, "processors=2")
    (lost,) = logs.observed()
    assert lost.headline == f"the master {A} was removed and did not come back; {B} led from then on"
    logs.lists(30, 5, "2a3a1b", "23")
    assert kinds(logs) == []


def test_a_member_that_said_that_it_ends_is_not_lost(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a")
    for host, second in ((3, 5), (2, 15)):
        logs.said(second, host, f"[10.0.0.{host}]:5701 is SHUTTING_DOWN")
        logs.said(second + 1, host, f"[10.0.0.{host}]:5701 is SHUTDOWN")
        logs.lists(second + 1, 4 + (host == 2), "1a2a" if host == 3 else "1a", "1")
    assert kinds(logs) == []


def test_the_same_halves_again_and_again_are_one_observation(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    for start, life in ((0, "a"), (100, "b")):
        logs.lists(start, 4 + start, f"1a2a3{life}4{life}")
        logs.lists(start + 10, 6 + start, "1a2a", "12")
        logs.lists(start + 10, 5 + start, f"3{life}4{life}", "34")
        for host in (3, 4):
            order = f"[10.0.0.{host}]:5701 is merging to [10.0.0.1]:5701, because: instructed by master [10.0.0.3]:5701"
            logs.said(start + 30, host, order)
            ids = [f"{incarnation * 8}-0000-4000-8000-00000000000{host}" for incarnation in (life, chr(ord(life) + 1))]
            logs.said(start + 30, host, f"Resetting local member UUID. Previous: {ids[0]}, new: {ids[1]}")
    logs.lists(140, 120, "1a2a3c4c")
    (apart,) = logs.observed()
    assert apart.headline == f"{A} (2 members) and {C} (2 members) were apart: twice, 40 s"
    assert not apart.is_open and "merge policy" in apart.remedy


def test_who_has_ended_suspects_and_splits_no_longer(tmp_path: Path) -> None:
    """Nobody knows what became of members whose logs end, while those of others go on for half an hour."""
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a")
    dead = "is suspected to be dead for reason: No connection"
    logs.said(10, 3, f"Member [10.0.0.2]:5701 - aaaaaaaa-0000-4000-8000-000000000002 {dead}")
    logs.said(40, 3, "processors=2")
    logs.said(1700, 1, "processors=2")
    (suspicion,) = logs.observed()
    assert suspicion.headline.startswith(f"{C} suspected {B} for 30 s, until")
    logs.lists(50, 4, "1a2a", "12")
    logs.lists(51, 4, "3a", "3")
    logs.said(60, 3, "processors=2")
    logs.said(1750, 1, "processors=2")
    assert [observation.headline for observation in logs.observed() if observation.kind == "lone-master"] == [
        f"{C} led itself alone against 2 others: 9.0 s, until the logs end"
    ]


def test_few_migrations_or_rounds_far_apart_are_no_storm(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 1, "1a")
    for place in range(3):
        logs.said(10 + place, 1, "Repartitioning cluster data. Migration tasks count: 12")
        logs.said(500 + 100 * place, 1, "Repartitioning cluster data. Migration tasks count: 271")
    assert kinds(logs) == []


def test_spans_as_people_say_them() -> None:
    spans = (130_000, 9_940_000, 84_000_000, 143_000_000, 1_000_000_000, 19_800_000_000)
    assert [lasted(us) for us in spans] == ["0.1 s", "9.9 s", "84 s", "2 min 23 s", "16 min", "5 h 30 min"]


def test_a_suspicion_that_was_withdrawn_has_ended(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a")
    logs.said(10, 2, f"{member(3)} is suspected to be dead for reason: No connection")
    logs.said(40, 2, f"Removed suspicion from {member(3)}. Reason: received heartbeat")
    (lasting,) = logs.observed()
    assert lasting.headline == f"{B} suspected {C} for 30 s, and it stayed on the list"
    assert lasting.remedy.startswith("It has ended; ") and "These members did not reach" in lasting.cause
