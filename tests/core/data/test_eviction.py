"""Maps and members have bounds: what is too much is refused, or the entries that were used longest ago make room for it."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.data.events import EntriesEvicted
from quarterdeck.backend.core.data.eviction import LONG_ANSWER_BYTES
from quarterdeck.backend.core.data.messages import MapCall
from quarterdeck.backend.core.data.partition_store import ENTRY_MEMORY
from quarterdeck.backend.core.map_limits import MapLimit, limit_of, map_limits
from quarterdeck.backend.core.operations import Answer, Put, PutAll, Remove
from quarterdeck.backend.core.properties import BadProperty, Settings
from tests.core.map_network import MapNetwork
from tests.core.stepped_cluster import training_settings

LIMITS = "m max-size=3 eviction-policy=LRU; bytes max-bytes=100; many max-size=3"


def bounded(rows: list[str], names: str = "AB", **bounds: int) -> MapNetwork:
    chosen = training_settings(partition_count=len(rows), map_limits=LIMITS, **bounds)
    return MapNetwork(names, rows, chosen)


def held(network: MapNetwork, name: str) -> set[str]:
    stores = network.states[name].data.stores.values()
    return {key for store in stores for entries in store.maps.values() for key in entries}


def refused(answer: Answer) -> str:
    assert answer.untouched
    return answer.problem


def test_a_map_without_eviction_refuses_new_entries_and_takes_all_else() -> None:
    network = bounded(["AB"])
    assert not network.ask("A", PutAll("many", (("1", b""), ("2", b""), ("3", b"")))).problem
    assert "the map many is full: a member may own 3 entries" in refused(network.ask("B", Put("many", "4", b"")))
    assert not network.ask("A", Put("many", "3", b"longer")).problem
    assert network.ask("A", Remove("many", "1")).value == b""
    assert not network.ask("A", Put("many", "4", b"")).problem
    assert "max-size" in refused(network.ask("A", PutAll("many", (("4", b"x"), ("5", b"")))))
    assert held(network, "A") == {"2", "3", "4"}
    network.assert_equal_replicas()


def test_what_another_owner_was_asked_for_before_may_be_done_although_the_new_one_has_no_room() -> None:
    """The first owner may be cut off with what it has done, and bring it along when the clusters merge."""
    network = bounded(["AB"], "ABC")
    for key in "123":
        network.ask("C", Put("many", key, b""))
    call = network.call("C", Put("many", "4", b""))
    assert network.drop(MapCall)
    network.set_row(0, "B")
    network.learn_all()
    network.settle()
    assert not network.answers[call].untouched
    assert network.answers[call].problem.endswith("(max-size); the outcome is not known")


def test_a_map_is_bounded_by_bytes_too() -> None:
    network = bounded(["AB"])
    assert not network.ask("A", Put("bytes", "k", b"x" * 99)).problem
    assert "100 bytes" in refused(network.ask("A", Put("bytes", "k", b"x" * 100)))
    assert not network.ask("A", Put("bytes", "k", b"x")).problem


def test_the_entry_used_longest_ago_makes_room_on_owner_and_backup_alike() -> None:
    network = bounded(["AB"])
    for key in "123":
        network.put("A", key, key)
    assert network.get("B", "1") == b"1"
    network.put("A", "2", "again")
    network.put("A", "4", "4")
    assert network.seen("A", EntriesEvicted) == [EntriesEvicted(0, "m", ("3",))]
    assert held(network, "A") == held(network, "B") == {"1", "2", "4"}
    network.assert_equal_replicas()


def test_a_map_is_bounded_over_all_partitions_of_an_owner() -> None:
    network = bounded(["AB"] * 7)
    for number in range(40):
        assert not network.put("B", f"k{number}", "v").problem
        assert len(held(network, "A")) == min(number + 1, 3)
    assert held(network, "A") == held(network, "B")
    network.assert_equal_replicas()
    assert sum(len(event.keys) for event in network.seen("A", EntriesEvicted)) == 37


def test_more_at_once_than_the_map_may_hold_is_refused() -> None:
    network = bounded(["AB"])
    assert "max-size" in refused(network.ask("A", PutAll("m", tuple((str(number), b"") for number in range(4)))))


def test_a_member_counts_all_that_it_holds() -> None:
    network = bounded(["AB", "BA"], member_most_entries=10)
    answers = [network.ask("A", Put("x", f"k{number}", b"v")) for number in range(30)]
    assert sum(not answer.problem for answer in answers) == 10
    assert {answer.untouched for answer in answers if answer.problem} == {True}
    assert "quarterdeck.member.max.entries" in answers[-1].problem
    assert len(held(network, "A")) == len(held(network, "B")) == 10


def test_a_member_is_bounded_by_memory_however_small_entries_are() -> None:
    network = bounded(["A"], "A", member_most_bytes=100 * ENTRY_MEMORY)
    answers = [network.ask("A", Put("x", f"k{number}", b"")) for number in range(200)]
    assert 90 <= sum(not answer.problem for answer in answers) < 100
    assert "quarterdeck.member.max.bytes" in answers[-1].problem


def test_kept_answers_take_memory_too() -> None:
    long = b"x" * (LONG_ANSWER_BYTES + 1)
    network = bounded(["A"], "A", member_most_bytes=3 * len(long) // 2)
    assert not network.ask("A", Put("x", "k", long)).problem
    assert "this member is full" in refused(network.ask("A", Put("x", "k", long)))


def test_a_full_backup_is_asked_for_nothing_more_until_it_has_room() -> None:
    """C keeps the backups of A and of B, so it is full before them."""
    network = bounded(["AC", "BC"], "ABC", member_most_entries=10)
    answers = [network.ask("A", Put("x", f"k{number}", b"v")) for number in range(40)]
    assert len(held(network, "C")) in (10, 11)
    assert "a backup of the partition is full: 10.0.0.3:5701" in answers[-1].problem
    network.ask("A", Remove("x", "k0"))
    network.ask("A", Remove("x", "k1"))
    network.ask("A", Remove("x", "k2"))
    again = [network.ask("A", Put("x", f"k{number}", b"v")).problem for number in (0, 0, 1, 1, 2, 2)]
    assert "" in again, "the refusal asks the backup whether it has room by now"
    network.assert_equal_replicas()


def test_a_map_that_evicts_goes_on_in_a_full_member() -> None:
    network = bounded(["AB"] * 3, member_most_entries=3)
    for number in range(20):
        assert not network.put("A", f"k{number}", "v").problem
    assert len(held(network, "A")) == 3
    network.assert_equal_replicas()


def test_a_store_knows_what_it_takes() -> None:
    network = bounded(["AB"] * 3)
    for number in range(40):
        network.put("AB"[number % 2], f"ключ{number % 9}", "v" * number)
        network.ask("A", Remove("m", f"ключ{number % 7}"))
    for name in "AB":
        for store in network.states[name].data.stores.values():
            sizes = [
                len(key.encode()) + len(entry.value) + ENTRY_MEMORY
                for entries in store.maps.values()
                for key, entry in entries.items()
            ]
            kept = [answer.value or b"" for _, answers in store.sessions.values() for answer in answers]
            assert store.memory == sum(sizes) + sum(map(len, kept))


def test_limits_are_found_by_the_name_of_a_map() -> None:
    text = "cache* max-size=10 eviction-policy=LRU; * max-bytes=5"
    assert limit_of(text, "cache-1") == MapLimit("cache*", 10, 0, True)
    assert limit_of(text, "orders") == MapLimit("*", 0, 5)
    assert limit_of("cache max-size=1", "orders") is None
    assert map_limits("") == ()


@pytest.mark.parametrize(
    "text",
    ["m", "m size=3", "m max-size=0", "m max-size=x", "m max-size=1 max-size=2", "m max-size=3 eviction-policy=LFU"],
)
def test_limits_that_are_none(text: str) -> None:
    with pytest.raises(BadProperty, match=r"quarterdeck\.map\.limits.*(max-size=ENTRIES|NONE)"):
        Settings.of({"quarterdeck.map.limits": text})
