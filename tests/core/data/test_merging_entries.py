"""After a merge of clusters: what the loser's members bring along reaches the winner's partitions."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.data import handlers, merging_entries
from quarterdeck.backend.core.data.events import EntriesMerged
from quarterdeck.backend.core.data.messages import MapAnswer, MapCall
from quarterdeck.backend.core.data.partition_store import partition_of
from quarterdeck.backend.core.data.state import MergeEntries
from quarterdeck.backend.core.operations import Keys, PutAll
from quarterdeck.backend.core.partitions.messages import ArrangeRequest
from tests.core.map_network import MapNetwork
from tests.core.stepped_cluster import training_settings

PARTITIONS = 8


def cluster(names: str, rows: list[str], policy: str = "put-if-absent", *, later_us: int = 0) -> MapNetwork:
    return MapNetwork(
        names, rows, training_settings(partition_count=PARTITIONS, merge_policy=policy), utc_origin_us=later_us
    )


def loser(keys: str, value: bytes, later_us: int = 0) -> MapNetwork:
    network = cluster("CD", ["CD", "DC"] * 4, later_us=later_us)
    network.ask("C", PutAll("m", tuple((key, value) for key in keys)))
    return network


def arrives(winner: MapNetwork, name: str, merge_entries: MergeEntries | None) -> None:
    """The member has become one of the winner's cluster, under a new life."""
    merging_entries.adopt(winner.born(name), winner.now, merge_entries)
    winner.list_all()
    winner.learn(name)


def merged_entries(policy: str, winners: str = "abc", losers: str = "bcd", later_us: int = 0) -> dict[str, bytes]:
    old = loser(losers, b"loser", later_us)
    winner = cluster("AB", ["AB", "BA"] * 4, policy)
    winner.ask("A", PutAll("m", tuple((key, b"winner") for key in winners)))
    for name in "CD":
        arrives(winner, name, merging_entries.collect(old.states[name]))
    winner.pass_seconds(1)
    winner.assert_equal_replicas()
    offered = sum(event.offered for name in "CD" for event in winner.seen(name, EntriesMerged))
    taken = sum(event.taken for name in "CD" for event in winner.seen(name, EntriesMerged))
    assert offered == (0 if policy == "discard" else len(losers))
    found = {key: winner.get("A", key) or b"" for key in winner.ask("A", Keys("m")).keys}
    assert taken == sum(value == b"loser" for value in found.values())
    return found


@pytest.mark.parametrize(
    ("policy", "later_us", "loser_has"),
    [
        ("put-if-absent", 10, "d"),
        ("pass-through", 0, "bcd"),
        ("latest-update", 10, "bcd"),
        ("latest-update", -10, "d"),
        ("latest-access", 10, "bcd"),
        ("higher-hits", 10, "d"),
        ("discard", 10, ""),
    ],
)
def test_policies(policy: str, later_us: int, loser_has: str) -> None:
    found = merged_entries(policy, later_us=later_us)
    expected = {**dict.fromkeys("abc", b"winner"), **dict.fromkeys(loser_has, b"loser")}
    assert found == expected


def test_every_member_brings_what_it_owned() -> None:
    old = loser("abcdefghij", b"v")
    for name in "CD":
        merge_entries = merging_entries.collect(old.states[name])
        assert merge_entries is not None
        keys = {key for _, entries in merge_entries.brought for key in entries}
        assert keys == {key for key in "abcdefghij" if "CD"[partition_of("m", key, PARTITIONS) % 2] == name}


def test_a_backup_brings_what_an_owner_that_is_gone_cannot() -> None:
    old = loser("abcdefghij", b"v")
    old.kill("D")
    old.list_all()
    merge_entries = merging_entries.collect(old.states["C"])
    assert merge_entries is not None
    assert sum(len(entries) for _, entries in merge_entries.brought) == 10


def test_whoever_holds_nothing_brings_nothing() -> None:
    assert merging_entries.collect(cluster("AB", ["AB"] * PARTITIONS).states["A"]) is None


def test_it_asks_for_a_table_if_the_winner_has_none() -> None:
    old = loser("abcdefghij", b"v")
    winner = cluster("AB", [])
    merging_entries.adopt(winner.born("C"), 0, merging_entries.collect(old.states["C"]))
    winner.list_all()
    assert any(isinstance(message, ArrangeRequest) for _, _, message in winner.sent)


def many(count: int) -> tuple[MapNetwork, MergeEntries]:
    old = cluster("C", ["C"] * PARTITIONS)
    old.ask("C", PutAll("m", tuple((f"k{number}", bytes(100)) for number in range(count))))
    merge_entries = merging_entries.collect(old.states["C"])
    assert merge_entries is not None
    return cluster("AB", ["AB", "BA"] * 4), merge_entries


def test_only_a_few_batches_are_on_their_way() -> None:
    winner, merge_entries = many(20_000)
    arrives(winner, "C", merge_entries)
    most = 0
    while not winner.seen("C", EntriesMerged):
        winner.tick_all()
        most = max(most, len(winner.messages(MapCall)))
        assert len(merge_entries.in_flight) <= merging_entries.MOST_IN_FLIGHT
        if winner.sent:
            winner.deliver()
    assert most <= merging_entries.MOST_IN_FLIGHT
    assert winner.seen("C", EntriesMerged) == [EntriesMerged("put-if-absent", 20_000, 20_000, "")]


@pytest.mark.parametrize("lost", [MapCall, MapAnswer])
def test_none_is_merged_twice_and_none_is_lost(lost: type) -> None:
    winner, merge_entries = many(3_000)
    winner.settings = training_settings(partition_count=PARTITIONS, merge_policy="pass-through")
    arrives(winner, "C", merge_entries)
    winner.tick_all()
    if lost is MapAnswer:
        while not winner.messages(MapAnswer):
            winner.deliver()
    assert winner.drop(lost)
    winner.pass_seconds(3)
    assert winner.seen("C", EntriesMerged) == [EntriesMerged("pass-through", 3_000, 3_000, "")]
    versions = {
        entry.version for store in winner.states["A"].data.stores.values() for entry in store.maps.get("m", {}).values()
    }
    assert versions == {1}


def test_what_is_not_placed_is_brought_along_to_the_next_cluster() -> None:
    winner, merge_entries = many(5_000)
    arrives(winner, "C", merge_entries)
    winner.tick_all()
    assert merge_entries.in_flight
    again = merging_entries.collect(winner.states["C"])
    next_cluster = cluster("AB", ["AB", "BA"] * 4)
    arrives(next_cluster, "C", again)
    next_cluster.pass_seconds(1)
    assert next_cluster.seen("C", EntriesMerged) == [EntriesMerged("put-if-absent", 5_000, 5_000, "")]


def test_a_member_that_stops_says_what_it_could_not_offer() -> None:
    winner, merge_entries = many(5_000)
    arrives(winner, "C", merge_entries)
    winner.tick_all()
    handlers.on_incarnation_end(winner.states["C"], 0, "the member stops", for_good=True)
    winner.take("C")
    assert winner.seen("C", EntriesMerged) == [EntriesMerged("put-if-absent", 0, 0, "the member stops")]


def test_much_that_stays_on_the_member_itself_does_not_pile_up() -> None:
    _, merge_entries = many(20_000)
    alone = cluster("", [])
    alone.width, alone.versions = 1, [1] * PARTITIONS
    merging_entries.adopt(alone.born("C"), 0, merge_entries)
    alone.rows = [alone.row_of("C")] * PARTITIONS
    alone.list_all()
    alone.learn("C")
    alone.settle()
    assert alone.seen("C", EntriesMerged) == [EntriesMerged("put-if-absent", 20_000, 20_000, "")]
