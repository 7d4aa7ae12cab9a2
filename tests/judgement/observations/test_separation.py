"""Clusters apart from each other: how long, why they did not merge, and lone masters of a few seconds."""

from pathlib import Path

import pytest

from quarterdeck.backend.commands.discovery import discovery_hint, discovery_remedies
from quarterdeck.backend.judgement.observations.story import RecordObservers
from tests.hazelcast.logs.written_logs import A, B, D, Logs, member


def merge(logs: Logs, second: float, hosts: str, life: str = "a") -> None:
    """Merge these members into the cluster of the first, by order of their own master, which comes first."""
    logs.said(second, int(hosts[0]), f"[10.0.0.{hosts[0]}]:5701 is merging [tcp/ip] to [10.0.0.1]:5701")
    for host in map(int, hosts):
        order = f"[10.0.0.{host}]:5701 is merging to [10.0.0.1]:5701, because: instructed by master [10.0.0.{hosts[0]}]:5701"
        logs.said(second, host, order)
        before, after = (member(host, incarnation).rpartition(" ")[2] for incarnation in (life, chr(ord(life) + 1)))
        logs.said(second, host, f"Resetting local member UUID. Previous: {before}, new: {after}")


def split_for(logs: Logs, met: list[float], merged: float) -> None:
    """Five members: the last two are apart from second 6 on, meet the others at these seconds, and merge."""
    logs.lists(0, 5, "1a2a3a4a5a")
    logs.lists(6, 7, "1a2a3a", "123")
    logs.lists(6, 6, "4a5a", "45")
    for second in met:
        counts = "data member count is bigger than"
        logs.said(second, 4, f"We should merge to [10.0.0.1]:5701 because their {counts} ours [3 > 2]")
        logs.said(second, 1, f"[10.0.0.4]:5701 should merge to us because our {counts} theirs [3 > 2]")
    merge(logs, merged, "45")
    logs.lists(merged + 3, 9, "1a2a3a4b5b")


def test_a_healing_that_failed_is_no_cut_that_lasted(tmp_path: Path) -> None:
    """The network was whole after 6 s; every 5 s they met, until the join list of the smaller side named the other."""
    logs = Logs(tmp_path)
    split_for(logs, [12 + 5 * place for place in range(11)], 69)
    (apart,) = logs.observed()
    assert (apart.kind, apart.is_open) == ("halves-apart", False)
    assert apart.headline == (
        f"{A} (3 members) and {D} (2 members) were apart: 63 s; they met after 6.0 s, and did not merge for 57 s"
    )
    assert "cut for a time" not in apart.cause and "only its own search begins a merge" in apart.cause
    assert "join list" in apart.remedy and "merge policy" in apart.remedy


def test_a_merge_as_soon_as_they_meet_is_a_healing_that_went_well(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    split_for(logs, [60], 61)
    (apart,) = logs.observed()
    assert apart.headline == f"{A} (3 members) and {D} (2 members) were apart: 55 s"
    assert "cut for a time" in apart.cause


def test_members_that_merged_are_followed_on_in_a_journal_of_their_logs(tmp_path: Path) -> None:
    logs, observers = Logs(tmp_path), RecordObservers("run")
    split_for(logs, [20], 21)
    logs.lists(40, 10, "1a2a3a", "123")
    logs.lists(40, 10, "4b5b", "45")
    merge(logs, 60, "45", "b")
    logs.lists(63, 12, "1a2a3a4c5c")
    for record in sorted(logs.records(), key=lambda record: record.at):
        observers.add(record)
    (apart,), story = logs.observed(), observers.story()
    assert story is not None and apart.headline == f"{A} (3 members) and {D} (2 members) were apart: twice, 35 s"
    assert [recorded.headline for recorded in story.observations] == [apart.headline]


def test_a_merge_that_has_begun_is_not_called_not_begun(tmp_path: Path) -> None:
    """The smaller side tries for some seconds to freeze its cluster; only then it gives up."""
    logs = Logs(tmp_path)
    logs.lists(0, 5, "1a2a3a4a5a")
    logs.lists(6, 7, "1a2a3a", "123")
    logs.lists(6, 6, "4a5a", "45")
    logs.said(12, 4, "We should merge to [10.0.0.1]:5701 because their data member count is bigger than ours [3 > 2]")
    (apart,) = logs.observed()
    assert "that one does not begin" in apart.cause
    logs.said(12.1, 4, "[10.0.0.4]:5701 is merging [tcp/ip] to [10.0.0.1]:5701")
    logs.said(15, 4, "We should merge to [10.0.0.1]:5701 because their data member count is bigger than ours [3 > 2]")
    (apart,) = logs.observed()
    assert apart.is_open and apart.cause.startswith("A merge has begun") and "wait" in apart.remedy.lower()
    logs.said(22, 4, "Could not change cluster state to FROZEN. Reverting cluster state back to ACTIVE")
    (apart,) = logs.observed()
    assert apart.cause.startswith("A merge was begun and given up")


def test_a_lone_master_of_some_seconds_is_reported_beside_what_froze_it(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a")
    logs.lists(6, 4, "2a3a")
    logs.said(
        31,
        1,
        "Resetting heartbeat timestamps because of huge system clock jump! Clock-Jump: 30000 ms, Heartbeat-Timeout: 5000 ms",
    )
    logs.lists(31.1, 4, "1a3a", "1")
    logs.lists(31.2, 5, "1a", "1")
    order = "[10.0.0.1]:5701 is merging to [10.0.0.2]:5701, because: instructed by master [10.0.0.1]:5701"
    logs.said(36.2, 1, order)
    uuids = (member(1, life).rpartition(" ")[2] for life in "ab")
    logs.said(36.2, 1, "Resetting local member UUID. Previous: {}, new: {}".format(*uuids))
    logs.lists(41, 5, "2a3a1b")
    frozen, alone = logs.observed()
    assert (frozen.kind, alone.kind) == ("clock-jump", "lone-master")
    assert frozen.end_us - frozen.start_us == frozen.end_utc - frozen.start_utc == 30_000_000
    assert alone.headline == f"{A} led itself alone against 2 others: 5.0 s"


def test_a_lone_master_that_met_the_others_before_any_list_changed(tmp_path: Path) -> None:
    """It founded a cluster of its own when all started together, and merged after 10 s."""
    logs = Logs(tmp_path)
    logs.lists(0, 2, "1a2a")
    logs.lists(1, 1, "4a")
    logs.said(8, 4, "We should merge to [10.0.0.1]:5701 because their data member count is bigger than ours [2 > 1]")
    merge(logs, 11, "4")
    logs.lists(13, 3, "1a2a4b")
    (alone,) = logs.observed()
    assert alone.headline == f"{D} led itself alone against 2 others: 10 s"


def test_all_members_stopped_and_were_started_again(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a")
    for place, host in enumerate((1, 3, 2)):
        logs.said(60 + place, host, f"[10.0.0.{host}]:5701 is SHUTTING_DOWN")
        logs.said(61 + place, host, f"[10.0.0.{host}]:5701 is SHUTDOWN")
    logs.lists(61, 4, "2a3a", "23")
    logs.lists(62, 5, "2a", "2")
    (stop,) = logs.observed()
    assert (stop.kind, stop.members) == ("full-stop", (A, "10.0.0.3:5701", B))
    assert stop.headline == "all 3 members stopped within 2.0 s"
    for place, host in enumerate((2, 1, 3)):
        logs.said(90 + place, host, f"Hazelcast Platform 5.3.8 (20240717) starting at [10.0.0.{host}]:5701")
    logs.lists(95, 1, "2b", "2")
    logs.lists(99, 3, "2b1b3b")
    (stop,) = logs.observed()
    assert stop.headline == "all 3 members stopped within 2.0 s, and were started again 27 s later as a new cluster"
    assert "memory" in stop.remedy


def test_all_members_that_ended_at_once_without_a_word(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a")
    assert logs.observed() == []
    for host in (1, 2, 3):
        logs.said(90, host, f"Hazelcast Platform 5.3.8 (20240717) starting at [10.0.0.{host}]:5701")
    logs.lists(95, 1, "1b2b3b")
    (stop,) = logs.observed()
    assert stop.kind == "full-stop"
    assert stop.headline == "all 3 members ended without a goodbye, and were started again as a new cluster"


def test_neither_a_rolling_restart_nor_the_stop_of_one_side_is_a_full_stop(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 4, "1a2a3a4a")
    logs.lists(6, 6, "1a2a", "12")
    logs.lists(6, 5, "3a4a", "34")
    for host in (3, 4):
        logs.said(20, host, f"[10.0.0.{host}]:5701 is SHUTDOWN")
    logs.said(21, 1, "[10.0.0.1]:5701 is SHUTDOWN")
    logs.lists(21, 7, "2a", "2")
    logs.said(30, 1, "Hazelcast Platform 5.3.8 (20240717) starting at [10.0.0.1]:5701")
    logs.lists(35, 8, "2a1b")
    assert "full-stop" not in [observation.kind for observation in logs.observed()]


@pytest.mark.parametrize(
    ("line", "wanted", "not_wanted"),
    [
        ("Kubernetes Discovery activated with mode: DNS_LOOKUP", "publishNotReadyAddresses", "join list"),
        ("Using Multicast discovery", "multicast-time-to-live", "publishNotReadyAddresses"),
        ("Using TCP/IP discovery", "member-list", "podManagementPolicy"),
    ],
)
@pytest.mark.parametrize("merged", [True, False])
def test_the_remedy_fits_how_they_find_each_other(
    line: str, wanted: str, not_wanted: str, merged: bool, tmp_path: Path
) -> None:
    logs = Logs(tmp_path)
    for host in range(1, 6):
        logs.said(0, host, line)
    if merged:
        split_for(logs, [12.0], 69)
    else:
        logs.lists(0, 5, "1a2a3a4a5a")
        logs.lists(6, 7, "1a2a3a", "123")
        logs.lists(6, 6, "4a5a", "45")
    (apart,) = logs.observed()
    assert wanted in apart.remedy and not_wanted not in apart.remedy
    if "TCP" not in line:
        assert "join list" not in apart.cause + apart.remedy and "{" not in apart.cause + apart.remedy


def test_a_joiner_that_is_none_or_not_known_gets_the_advice_for_all() -> None:
    for joiner in ("none", "auto-detection", "tcp-ip"):
        assert discovery_remedies([joiner, "kubernetes"]) == ""
    assert discovery_remedies([]) == ""
    assert discovery_remedies(["aws", "gcp"]) == discovery_remedies(["azure"])
    assert "select the instances" in discovery_hint("aws") and "enable one" in discovery_hint("none")
