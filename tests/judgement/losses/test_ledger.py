"""Losses of members of ours: whose they are, when they are confirmed, and by what they are healed or refuted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from quarterdeck.backend.boards.overview_rows import TableRows
from quarterdeck.backend.core.data.events import EntriesMerged
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused
from quarterdeck.backend.core.membership.events import ListInstalled, MemberMerging, MemberStarted, SuspicionCleared
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.losses.loss import Loss
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FakeCluster, fold
from tests.judgement.health.test_cluster_health import CITIES, SECOND, formed, judged, measured

KEPT, GONE = CITIES[:3], CITIES[3:]
HELD_BY_BOTH = 3, 8
"""Partitions of which delphi and euphesus have the only replicas."""


def lose(cluster: FakeCluster, *partitions: int, at: str = "athens") -> None:
    for partition in partitions:
        cluster.happen(at, PartitionLost(partition, ALL_LOST), after_us=1_000)


def kill(cluster: FakeCluster, *labels: str) -> None:
    for label in labels:
        cluster.happen("dev", ProcessKilled(label))


def go_on(cluster: FakeCluster, labels: Sequence[str], version: int = 7, lineage: str = "L1") -> None:
    for label in labels:
        cluster.install(label, version, labels, lineage=lineage)


def repair(cluster: FakeCluster) -> None:
    """Let the members that were kept hold all partitions."""
    for label in KEPT:
        cluster.change_table(label, 2, dict.fromkeys(range(271), KEPT[:2]))


def with_entries() -> FakeCluster:
    cluster = formed()
    cluster.happen("delphi", measured(*((partition, 850) for partition in HELD_BY_BOTH)))
    cluster.happen("euphesus", measured((4, 7)))
    return cluster


def seen(cluster: FakeCluster) -> Picture:
    """Return the one picture of a cluster, with all that has happened so far."""
    picture: Picture = vars(cluster).setdefault("picture", Picture())
    return fold(cluster, picture)


def losses(cluster: FakeCluster) -> tuple[Loss, ...]:
    return Judge(seen(cluster), now_us=cluster.now_us()).losses


def only(cluster: FakeCluster) -> Loss:
    """Return the one loss of the partitions that delphi and euphesus held."""
    (loss,) = [loss for loss in losses(cluster) if not loss.lost.isdisjoint(HELD_BY_BOTH)]
    return loss


# Confirmed


def test_lost_entries_are_the_first_thing_said_with_those_that_went() -> None:
    cluster = with_entries()
    cluster.happen("athens", measured((0, 1)), after_us=5 * SECOND)
    kill(cluster, *GONE)
    go_on(cluster, KEPT)
    lose(cluster, *HELD_BY_BOTH, 8)
    repair(cluster)
    health = judged(cluster, seen(cluster), after_us=14 * SECOND)
    assert health.sentence.startswith("DATA LOST · 2 partitions, about 1,700 entries, 14 s ago after euphesus went")
    lost = health.as_fields(cluster.now_us() + 14 * SECOND)["data_lost"]
    assert isinstance(lost, dict)
    assert (lost["entries"], lost["entries_known"], lost["maps"], lost["since_seconds"]) == (
        1_700,
        "last-counted",
        [],
        14.6,
    )
    assert (lost["state"], lost["outlook"]) == ("confirmed", "what they held is gone: no member that held it runs")


def test_a_loss_is_known_as_soon_as_the_last_holder_is_killed_before_any_member_reports_it() -> None:
    cluster = with_entries()
    kill(cluster, "delphi")
    assert losses(cluster) == ()
    cluster = with_entries()
    kill(cluster, *GONE)
    loss = only(cluster)
    assert (loss.state, loss.lost, loss.because_of) == ("confirmed", set(HELD_BY_BOTH), ("euphesus",))
    go_on(cluster, KEPT)
    lose(cluster, *HELD_BY_BOTH)
    assert only(cluster).lost == set(HELD_BY_BOTH), "the master reports the same loss"


def test_two_losses_are_two_each_with_its_own_time_and_entries() -> None:
    cluster = with_entries()
    cluster.happen("byzantium", measured((1, 40)))
    kill(cluster, *GONE)
    go_on(cluster, KEPT)
    lose(cluster, *HELD_BY_BOTH)
    cluster.happen("dev", ProcessKilled("byzantium"), after_us=60 * SECOND)
    kill(cluster, "cyrene")
    newer, older = losses(cluster)
    assert (newer.lost & {1, 3, 8}, older.lost) == ({1}, set(HELD_BY_BOTH))
    assert newer.at_us - older.at_us > 60 * SECOND
    health = judged(cluster, seen(cluster))
    assert health.data_lost is not None and health.data_lost.at_us == newer.at_us


def test_a_confirmed_loss_stays_known_after_a_merge_into_another_side() -> None:
    cluster = with_entries()
    kill(cluster, *GONE)
    go_on(cluster, KEPT)
    lose(cluster, *HELD_BY_BOTH)
    go_on(cluster, KEPT[1:], 8, "L2")
    cluster.install("athens", 8, KEPT[:1])
    cluster.happen("athens", MemberMerging(cluster.address("byzantium"), "athens-life-2", True))
    cluster.happen("athens", MemberStarted(cluster.address("athens"), False, (), "athens-life-1"), life=2)
    assert only(cluster).state == "confirmed"
    assert only(cluster).side == "byzantium"


def test_a_table_with_all_its_copies_is_not_called_safe_while_its_side_lives_with_a_loss() -> None:
    cluster = with_entries()
    kill(cluster, *GONE)
    go_on(cluster, KEPT)
    repair(cluster)
    row = TableRows().row(Judge(seen(cluster), now_us=cluster.now_us()), "athens")
    assert (row.state, row.tone) == ("∅ 2 lost", "bad")


def test_an_old_loss_stands_behind_what_is_so_now() -> None:
    cluster = with_entries()
    kill(cluster, *GONE)
    go_on(cluster, KEPT)
    repair(cluster)
    health = judged(cluster, seen(cluster), after_us=7_200 * SECOND)
    assert health.sentence.startswith("healthy · ") and " · lost 2 partitions" in health.sentence


# Nothing was in them, or it is not known


def test_partitions_that_held_no_entries_are_no_lost_data() -> None:
    cluster = formed()
    cluster.happen("athens", measured((1, 5)))
    cluster.happen(
        "athens", SuspicionCleared(cluster.address("delphi"), "delphi-life-1", "heard"), after_us=11 * SECOND
    )
    kill(cluster, *GONE)
    go_on(cluster, KEPT)
    lose(cluster, 3)
    health = judged(cluster, seen(cluster))
    assert health.data_lost is None and "lost" not in health.sentence


@pytest.mark.parametrize("heard", [True, False])
def test_where_entries_may_have_been_written_since_the_last_count_the_loss_is_feared(heard: bool) -> None:
    cluster = formed(data=False)
    if heard:
        cluster.happen("athens", measured((1, 5)))
    kill(cluster, *GONE)
    go_on(cluster, KEPT)
    lose(cluster, 3)
    loss = only(cluster)
    assert (loss.state, loss.doubt, loss.entries) == ("feared", "entries-unknown", None)
    assert "maybe lost 1 partition" in judged(cluster, seen(cluster)).sentence


# Another side may have it


def split() -> FakeCluster:
    cluster = with_entries()
    go_on(cluster, KEPT)
    lose(cluster, *HELD_BY_BOTH)
    go_on(cluster, GONE, 6, "L2")
    return cluster


def come_back(cluster: FakeCluster, label: str, *, brings: bool) -> None:
    cluster.happen(label, MemberMerging(cluster.address("athens"), f"{label}-life-2", brings))
    cluster.happen(label, MemberStarted(cluster.address(label), False, (), f"{label}-life-1"), life=2)
    listed = tuple(cluster.member(one, 2 if one == label else 1) for one in (*KEPT, label))
    master = cluster.address("athens")
    cluster.happen(label, ListInstalled(9, "L1", master, listed, master, "joined"), life=2)


def test_a_side_does_not_lose_what_another_side_holds() -> None:
    cluster = split()
    loss = only(cluster)
    assert (loss.state, loss.doubt, loss.held_by) == ("feared", "elsewhere", GONE)
    assert loss.condition == "lost if delphi, euphesus do not merge back"
    assert "maybe lost 2 partitions" in judged(cluster, seen(cluster)).sentence


def test_a_loss_is_healed_when_its_owner_has_merged_back_with_the_entries() -> None:
    cluster = split()
    come_back(cluster, "delphi", brings=True)
    assert only(cluster).doubt == "merging"
    cluster.happen("delphi", EntriesMerged("latest-update", 10, 10, ""), life=2)
    loss = only(cluster)
    assert (loss.state, loss.stands) == ("healed", False)
    health = judged(cluster, seen(cluster))
    assert health.data_lost is None and "lost" not in health.sentence


def test_an_owner_that_merges_without_entries_shows_that_there_were_none() -> None:
    cluster = split()
    come_back(cluster, "delphi", brings=False)
    assert only(cluster).state == "refuted"


def test_a_loss_is_confirmed_when_the_entries_do_not_come_and_no_other_member_has_them() -> None:
    cluster = split()
    come_back(cluster, "delphi", brings=True)
    kill(cluster, "euphesus")
    assert only(cluster).doubt == "merging"
    cluster.happen("delphi", EntriesMerged("put-if-absent", 5, 0, "it stopped"), life=2)
    assert only(cluster).state == "confirmed"


def test_a_frozen_member_on_the_list_before_holds_what_it_held() -> None:
    cluster = with_entries()
    cluster.happen("dev", ProcessPaused("delphi"))
    kill(cluster, "euphesus")
    go_on(cluster, KEPT)
    lose(cluster, *HELD_BY_BOTH)
    loss = only(cluster)
    assert (loss.state, loss.held_by) == ("feared", ("delphi",))
    kill(cluster, "delphi")
    assert (only(cluster).state, only(cluster).held_by) == ("confirmed", ())


def test_a_loss_is_healed_when_its_whole_side_has_gone_over_to_the_one_that_has_the_data() -> None:
    cluster = split()
    for label in KEPT:
        cluster.happen(label, MemberMerging(cluster.address("delphi"), f"{label}-life-2", False))
        cluster.happen(label, MemberStarted(cluster.address(label), False, (), f"{label}-life-1"), life=2)
    assert only(cluster).state == "healed"


def test_what_both_sides_lost_is_one_loss() -> None:
    cluster = split()
    assert only(cluster).state == "feared"
    kill(cluster, "delphi")
    cluster.change_table("euphesus", 2, {3: ("delphi",), 8: ("delphi",)})
    cluster.install("euphesus", 7, ["euphesus"], lineage="L3")
    lose(cluster, *HELD_BY_BOTH, at="euphesus")
    assert only(cluster).state == "confirmed"


def test_a_new_cluster_with_an_empty_table_has_nothing_of_the_old_one() -> None:
    cluster = with_entries()
    kill(cluster, *CITIES[1:])
    cluster.happen("byzantium", MemberStarted(cluster.address("byzantium"), False, ()), life=2)
    own = (cluster.member("byzantium", 2),)
    cluster.happen("byzantium", ListInstalled(1, "L9", own[0].address, own, own[0].address, "formed"), life=2)
    rows = dict.fromkeys(range(271), ("byzantium",))
    cluster.change_table("byzantium", 1, rows, "arranged", life=2)
    kill(cluster, "athens")
    assert {3, 8} <= set().union(*(loss.lost for loss in losses(cluster) if loss.stands))


def test_a_copy_of_the_picture_goes_its_own_way() -> None:
    cluster = split()
    assert only(cluster).state == "feared"
    twin = seen(cluster).copy()
    kill(cluster, *GONE)
    assert only(cluster).state == "confirmed"
    assert Judge(twin, now_us=cluster.now_us()).losses[0].state == "feared"
