"""Losses of members of Hazelcast: entries counted at a fence, ends that are proven or not, and entries that fall unreported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.data.events import DataMeasured, MapMeasured
from quarterdeck.backend.core.membership.events import ClusterStateChanged, ListInstalled, MemberStarted
from quarterdeck.backend.core.partitions.events import ALL_LOST, Holder, PartitionLost
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, MemberWitnessed, OwnersTold
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.losses.loss import Loss
from quarterdeck.backend.judgement.watcher import WATCHES_ALL, Watcher
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FakeCluster, fold
from tests.judgement.health.test_cluster_health import CITIES, SECOND, judged, witnessed

KEPT, GONE = CITIES[:3], CITIES[3:]
NO_BACKUP, ONE_BACKUP = 0, 1
ENDED, SILENT = ConnectionChanged("gone", "connection refused"), ConnectionChanged("silent", "no heartbeat")


def of_maps(writes: int = 0, backups: Mapping[str, int] | None = None, **entries: int) -> DataMeasured:
    """What metrics say that a member of Hazelcast owns, by map; each has a backup unless `backups` says otherwise."""
    maps = tuple(
        MapMeasured(name, count, 0, 0, writes, backups=(backups or {}).get(name, 1), backup_entries=0)
        for name, count in entries.items()
    )
    return DataMeasured(5 * SECOND, sum(entries.values()), 0, 0, 0, 0, maps, (), ())


class Members:
    """Five members of Hazelcast, each of which has reported 3,000 entries of orders and 10 of users."""

    def __init__(self, backups: Mapping[str, int] | None = None, **entries: int) -> None:
        self.cluster, self.picture = witnessed(*CITIES), Picture()
        self._backups, self._stamp, self.lives = backups, 1, dict.fromkeys(CITIES, 1)
        self.count(CITIES, **(entries or {"orders": 3_000, "users": 10}))

    def count(self, labels: Sequence[str], writes: int = 0, after_us: int = 5 * SECOND, **entries: int) -> None:
        for label in labels:
            self.cluster.happen(
                label, of_maps(writes, self._backups, **entries), life=self.lives[label], after_us=after_us
            )
            after_us = SECOND // 10

    def own(self, *labels: str) -> None:
        """Let these members own all partitions."""
        holders = tuple(Holder(self.cluster.address(label), f"{label}-life-{self.lives[label]}") for label in labels)
        self._stamp += 1
        for label in labels:
            owners = OwnersTold(holders, tuple(place % len(labels) for place in range(271)), f"d{self._stamp}", 1)
            self.cluster.happen(label, owners, life=self.lives[label])

    def install(self, labels: Sequence[str], version: int, listed: Sequence[str] = ()) -> None:
        members = tuple(self.cluster.member(label, self.lives[label]) for label in listed or labels)
        for label in labels:
            installed = ListInstalled(
                version, members[0].uuid, members[0].address, members, members[0].address, "unknown"
            )
            self.cluster.happen(label, installed, life=self.lives[label])

    def lose(self, partitions: int, lost_backups: int, maps: tuple[str, ...] = (), at: str = "athens") -> None:
        for partition in range(partitions):
            self.cluster.happen(at, PartitionLost(partition, lost_backups, True, maps), after_us=1_000)

    def go(self, how: ConnectionChanged = ENDED, partitions: int = 19, lost_backups: int = ONE_BACKUP) -> None:
        """Let the last two go; the first three go on without them."""
        for label in GONE:
            self.cluster.happen(label, how)
        self.install(KEPT, 6)
        self.lose(partitions, lost_backups, ("ord*",))
        self.own(*KEPT)

    def losses(self, watcher: Watcher = WATCHES_ALL) -> tuple[Loss, ...]:
        fold(self.cluster, self.picture)
        return Judge(self.picture, watcher, self.cluster.now_us()).losses

    def loss(self, watcher: Watcher = WATCHES_ALL) -> Loss:
        (loss,) = self.losses(watcher)
        return loss

    def sentence(self) -> str:
        return judged(self.cluster, self.picture, 0).sentence


# Counted at a fence


def test_entries_are_counted_when_every_member_has_reported_anew() -> None:
    members = Members(backups={"users": 2})
    members.go()
    loss = members.loss()
    assert (loss.state, loss.maps, loss.entries_known) == ("confirmed", ("orders",), "unknown")
    members.count(KEPT[:2], after_us=6 * SECOND, orders=4_405, users=17)
    assert members.loss().entries is None, "one has not reported since"
    members.count(KEPT[2:], orders=4_405, users=16)
    loss = members.loss()
    assert (loss.entries, loss.entries_known, loss.because_of) == (1_785, "exact", GONE)
    assert members.sentence().startswith("DATA LOST · 19 partitions of orders, 1,785 entries, 11 s ago")
    members.count(KEPT[:1], after_us=30 * SECOND, writes=4_000, orders=9_000)
    assert members.loss().entries == 1_785, "what is written afterwards makes nothing good"


def test_what_is_written_between_two_counts_makes_the_number_a_bound() -> None:
    members = Members()
    members.go()
    members.count(KEPT, writes=50, after_us=6 * SECOND, orders=4_405, users=17)
    loss = members.loss()
    assert (loss.entries_known, loss.maps) == ("at-most", ("orders", "users"))
    assert loss.entries == 15_050 - 3 * (4_405 + 17) + 2 * 3 * 50
    assert "at most 2,084 entries" in loss.text(members.cluster.now_us())


def test_a_later_loss_has_its_own_time_maps_and_entries() -> None:
    members = Members(backups={"nobackup": 0}, orders=1_000, nobackup=500)
    members.cluster.happen("euphesus", ENDED)
    members.install(CITIES[:4], 6)
    members.lose(55, NO_BACKUP, ("nobackup",))
    members.own(*CITIES[:4])
    members.count(CITIES[:4], after_us=6 * SECOND, orders=1_250, nobackup=500)
    assert members.loss().entries == 500
    members.cluster.happen("delphi", ENDED, after_us=20 * SECOND)
    members.install(KEPT, 7)
    members.lose(15, ONE_BACKUP, ("nobackup", "orders"))
    members.own(*KEPT)
    members.count(KEPT, after_us=6 * SECOND, orders=1_600, nobackup=500)
    newer, older = members.losses()
    assert (newer.entries, newer.maps, newer.partitions) == (500 + 200, ("nobackup", "orders"), 15)
    assert (older.entries, older.maps, older.partitions) == (500, ("nobackup",), 55)
    assert newer.because_of[-1] == "delphi" and older.because_of == ("euphesus",)


def test_maps_that_never_had_entries_lose_none() -> None:
    members = Members(orders=0)
    members.go(lost_backups=ALL_LOST)
    assert (members.loss().state, members.loss().entries) == ("refuted", 0)
    assert "lost" not in members.sentence()


def test_maps_with_more_backups_than_were_lost_are_not_named() -> None:
    members = Members(backups={"users": 3}, orders=3_000, users=3_000)
    members.go()
    assert members.loss().maps == ("orders",)


@pytest.mark.parametrize(("maps", "said"), [((), " for maps with at most 1 backup"), (("ord*",), " of ord*")])
def test_where_entries_were_never_counted_the_loss_is_feared(maps: tuple[str, ...], said: str) -> None:
    cluster = witnessed("athens", "byzantium")
    cluster.happen("athens", PartitionLost(3, 1, True, maps))
    health = judged(cluster)
    assert health.condition == "degraded" and "maybe lost 1 partition" in health.sentence
    assert health.losses[0].what == f"1 partition{said}"


# Who may hold it still


def test_members_that_the_watcher_does_not_reach_may_come_back() -> None:
    members = Members()
    members.go(SILENT)
    loss = members.loss()
    assert (loss.state, loss.doubt) == ("feared", "not-reached")
    assert loss.condition == "lost if delphi, euphesus do not come back"
    assert "maybe lost 19 partitions" in members.sentence()
    assert members.loss(Watcher(expected_members=3)).state == "confirmed", "the operator accepts the new size"
    for label in GONE:
        members.cluster.happen(label, ENDED)
    assert members.loss().state == "confirmed"


def test_an_incarnation_that_has_ended_does_not_live_again_when_another_process_answers() -> None:
    members = Members()
    members.go()
    members.cluster.happen("delphi", ConnectionChanged("merging", "it starts, or merges"))
    assert members.loss().state == "confirmed"


def test_a_side_that_went_over_to_another_one_has_lost_nothing() -> None:
    members = Members()
    members.install(KEPT, 6)
    members.lose(19, ONE_BACKUP, ("ord*",))
    members.install(GONE, 6)
    loss = members.loss()
    assert (loss.doubt, loss.held_by) == ("elsewhere", GONE)
    for label in KEPT:
        members.cluster.happen(label, ConnectionChanged("merging", "it merges"))
        members.lives[label] = 2
        members.cluster.happen(label, MemberWitnessed(("client-protocol",), ("owners", "losses")), life=2)
        started = MemberStarted(members.cluster.address(label), False, (), f"{label}-life-1")
        members.cluster.happen(label, started, life=2)
        members.cluster.happen(label, ConnectionChanged("connected"), life=2)
    members.install(CITIES, 9, (*GONE, *KEPT))
    assert (members.loss().state, "lost" in members.sentence()) == ("healed", False)


def merged_back() -> Members:
    members = Members()
    members.go(SILENT)
    members.count(KEPT, after_us=6 * SECOND, orders=4_405, users=10)
    for label in GONE:
        members.lives[label] = 2
        members.cluster.happen(label, MemberWitnessed(("client-protocol",), ("owners", "losses")), life=2)
        started = MemberStarted(members.cluster.address(label), False, (), f"{label}-life-1")
        members.cluster.happen(label, started, life=2)
        members.cluster.happen(label, ConnectionChanged("connected"), life=2)
    members.install(CITIES, 9)
    members.own(*CITIES)
    return members


def test_members_that_merged_back_may_have_brought_their_entries() -> None:
    members = merged_back()
    loss = members.loss()
    assert (loss.state, loss.doubt) == ("feared", "returned")
    assert "delphi, euphesus merged back, with or without the entries" in loss.outlook


def test_a_count_after_the_merge_shows_that_the_entries_came() -> None:
    members = merged_back()
    members.count(CITIES, after_us=6 * SECOND, orders=3_000, users=10)
    assert members.loss().state == "healed"


@pytest.mark.parametrize("is_open_first", [True, False])
def test_a_loss_that_is_reported_when_the_cluster_opens_is_as_old_as_the_removal(is_open_first: bool) -> None:
    members = Members()
    for label in CITIES:
        members.cluster.happen(label, ClusterStateChanged("PASSIVE", "an operator"))
    members.cluster.happen("euphesus", ENDED)
    members.install(CITIES[:4], 6)
    removed_us = members.cluster.now_us()
    members.count(CITIES[:4], after_us=25 * SECOND, orders=3_000, users=10)
    if is_open_first:
        members.cluster.happen("athens", ClusterStateChanged("ACTIVE", "an operator"))
    members.lose(19, ONE_BACKUP, ("ord*",))
    loss = members.loss()
    assert removed_us - loss.at_us < SECOND and loss.because_of == ("euphesus",)
    assert "25 s ago" in loss.text(members.cluster.now_us())


def test_a_loss_of_an_open_cluster_is_as_old_as_its_report() -> None:
    members = Members()
    members.cluster.happen("euphesus", ENDED)
    members.install(CITIES[:4], 6)
    members.count(CITIES[:4], after_us=25 * SECOND, orders=3_000, users=10)
    members.lose(19, ONE_BACKUP, ("ord*",))
    assert "0 s ago" in members.loss().text(members.cluster.now_us())


# Without a word


@pytest.mark.parametrize(("state", "doubt"), [("FROZEN", "started-empty"), ("ACTIVE", "unexplained")])
def test_entries_that_fall_when_a_member_was_started_again_are_feared_to_be_lost(
    state: ClusterState, doubt: str
) -> None:
    members = Members()
    if state != "ACTIVE":
        for label in CITIES:
            members.cluster.happen(label, ClusterStateChanged(state, "an operator"))
    members.cluster.happen("euphesus", ENDED)
    members.install(CITIES[:4], 6)
    members.lives["euphesus"] = 2
    members.cluster.happen("euphesus", MemberWitnessed(("client-protocol",), ("owners",)), life=2)
    members.cluster.happen("euphesus", MemberStarted(members.cluster.address("euphesus"), False, ()), life=2)
    members.cluster.happen("euphesus", ConnectionChanged("connected"), life=2)
    members.install(CITIES, 7)
    members.own(*CITIES)
    if state == "FROZEN":
        early = members.loss()
        assert (early.doubt, early.maps, early.partitions) == (doubt, ("orders", "users"), 54), "before any count"
        assert early.entries is None and not members.sentence().startswith("healthy")
    else:
        assert members.losses() == ()
    members.count(CITIES[:4], after_us=6 * SECOND, orders=3_000, users=10)
    members.count(CITIES[4:], orders=0, users=0)
    loss = members.loss()
    assert (loss.state, loss.doubt, loss.entries, loss.entries_known) == ("feared", doubt, 3_010, "exact")
    assert (loss.because_of, loss.partitions) == (("euphesus",), 54)
    assert "maybe lost 54 partitions" in members.sentence()


def test_a_member_that_comes_back_empty_to_a_cluster_without_entries_loses_none() -> None:
    members = Members(orders=0)
    for label in CITIES:
        members.cluster.happen(label, ClusterStateChanged("FROZEN", "an operator"))
    members.cluster.happen("euphesus", ENDED)
    members.install(CITIES[:4], 6)
    members.lives["euphesus"] = 2
    members.install(CITIES, 7)
    assert members.losses() == ()


def test_entries_that_are_removed_while_nobody_leaves_are_no_loss() -> None:
    members = Members()
    members.count(CITIES, after_us=60 * SECOND, orders=1, users=10)
    assert members.losses() == ()


def test_a_loss_is_never_left_out_for_want_of_room() -> None:
    names = [f"orders-hazelcast-{place}.production" for place in range(4)]
    cluster: FakeCluster = witnessed(*names)
    cluster.install(names[0], 5, names[:1])
    cluster.happen(names[0], PartitionLost(3, 1, True, ("orders-of-all-customers-of-the-last-five-years",)))
    assert "maybe lost 1 partition" in judged(cluster, after_us=700 * SECOND).sentence
