"""Members of which a witness tells: what is known of them, and what is not reported."""

from __future__ import annotations

import pickle

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import Holder
from quarterdeck.backend.core.witnessed.events import (
    ASPECTS,
    ConnectionChanged,
    MemberWitnessed,
    OwnersTold,
    ReplicaMigrated,
)
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FakeCluster, fold

TWO = ("n1", "n2")


def watched() -> tuple[FakeCluster, Picture]:
    cluster, picture = FakeCluster(TWO), Picture()
    for label in TWO:
        cluster.start(label)
        cluster.happen(label, MemberWitnessed(("client-protocol",), ("owners", "cluster-state")))
    return cluster, fold(cluster, picture)


def test_members_that_keep_a_journal_tell_everything() -> None:
    cluster, picture = FakeCluster(TWO), Picture()
    cluster.start("n1")
    belief = fold(cluster, picture).members["n1"]
    assert all(belief.shows(aspect) for aspect in ASPECTS)
    assert belief.witnessed_by == ()


def test_a_witness_says_what_it_can_know() -> None:
    _, picture = watched()
    belief = picture.members["n1"]
    assert belief.shows("owners") and belief.shows("cluster-state")
    assert not belief.shows("suspicions") and not belief.shows("backups")
    assert belief.witnessed_by == ("client-protocol",)


def test_a_new_incarnation_is_known_from_the_same_sources() -> None:
    cluster, picture = watched()
    cluster.happen("n1", ConnectionChanged("merging", "not ready yet"))
    cluster.start("n1", life=2)
    belief = fold(cluster, picture).members["n1"]
    assert not belief.shows("suspicions")
    assert belief.connection is not None and belief.connection.state == "merging"


def test_owners_are_a_table_of_one_holder_each() -> None:
    cluster, picture = watched()
    holders = (Holder(Address("n1:1"), "u1"), Holder(Address("n2:1"), "u2"))
    cluster.happen("n1", OwnersTold(holders, (0, 1, 1, -1), "d1", 99))
    belief = fold(cluster, picture).members["n1"]
    assert belief.table is not None and belief.state_stamp == 99
    assert (belief.table.digest, belief.table.partitions, belief.table.owned_by("u2")) == ("d1", 4, 2)
    assert belief.table.row(0) == (holders[0],) and belief.table.row(3) == (None,)
    cluster.happen("n1", OwnersTold(holders[1:], (0, 0, 0, 0), "d2"))
    belief = fold(cluster, picture).members["n1"]
    assert belief.table is not None and belief.table.owned_by("u1") == 0 and belief.table.owned_by("u2") == 4


def test_migrations_of_which_only_the_end_is_told_are_counted() -> None:
    cluster, picture = watched()
    for partition, succeeded in ((1, True), (2, True), (3, False)):
        cluster.happen("n1", ReplicaMigrated(partition, 0, None, Address("n2:1"), succeeded, 5_000, 3, partition))
    history = fold(cluster, picture).history
    assert (history.done_count, history.failed_count) == (2, 1)
    assert [migration.migrated.partition for migration in history.witnessed] == [1, 2, 3]


def test_members_that_are_forgotten_leave_nothing_behind() -> None:
    picture, sizes = Picture(), []
    home = Member(Address("10.0.0.1:5701"), "home", 0)
    for number in range(400):
        pod = Member(Address(f"10.1.{number // 200}.{number % 200}:5701"), f"u{number}", 0)
        for serial, members in ((2 * number, (home, pod)), (2 * number + 1, (home,))):
            for member in members:
                listed = ListInstalled(serial + 1, "home", home.address, members, home.address, "")
                picture.apply(Record("r", member.address, member.uuid, serial + 1, serial, serial, listed))
        picture.copy().forget(pod.address)
        assert pod.address in picture.members
        picture.forget(pod.address)
        sizes.append(len(pickle.dumps(picture.copy().members)))
    assert list(picture.members) == [home.address]
    assert picture.members[home.address].ever_listed == {home.address}
    assert sizes[-1] < 1.2 * sizes[0]
