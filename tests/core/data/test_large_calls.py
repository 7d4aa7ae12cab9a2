"""Large calls to the distributed map: carried out in slices, and acknowledged only by a member in its place."""

import pytest

from quarterdeck.backend.core.data import map_calls
from quarterdeck.backend.core.data.messages import BackupWrite
from quarterdeck.backend.core.data.state import entries_held as state_entries
from quarterdeck.backend.core.operations import Answer, Keys, Put, PutAll, Size
from tests.core.map_network import MapNetwork
from tests.core.stepped_cluster import training_settings


def test_a_write_to_backups_is_bounded() -> None:
    network = MapNetwork("ABC", ["AB"])
    for number in range(400):
        network.call("C", Put("m", f"k{number}", bytes(10_000)))
    longest = 0
    while network.sent or network.states["C"].timers.earliest <= network.now + 1:
        network.tick_all()
        writes = network.messages(BackupWrite)
        longest = max([longest, *(sum(len(entry.value) for _, _, entry in write.entries) for write in writes)])
        network.deliver()
    assert 200_000 < longest <= map_calls.MOST_BATCH_BYTES
    assert len(network.answers) == 400


def entries(count: int) -> tuple[tuple[str, bytes], ...]:
    return tuple((f"key-{number}", b"v") for number in range(count))


def stored_by(network: MapNetwork) -> int:
    return sum(state_entries(state) for state in network.states.values())


@pytest.mark.parametrize("rows", [["A"] * 7, ["AB", "BA", "AB", "BA"], ["B"] * 7])
def test_a_large_call_is_carried_out_in_slices_and_stores_every_entry(rows: list[str]) -> None:
    network = MapNetwork("AB", rows)
    state, steps = network.states["A"], 0
    call = network.call("A", PutAll("m", entries(20_000)))
    assert call not in network.answers and stored_by(network) == 0
    while call not in network.answers:
        before = stored_by(network)
        if network.sent:
            network.deliver()
        else:
            network.tick_all()
        assert (
            stored_by(network) - before <= 2 * map_calls.MOST_OPERATIONS
        )  # one batch, and what a partition begins with
        steps += 1
    assert network.answers[call] == Answer(size=20_000) and steps > 20_000 // map_calls.DIVIDED_AT_ONCE
    assert network.ask("B", Size("m")).size == 20_000
    assert network.ask("B", Keys("m")).keys == tuple(sorted(key for key, _ in entries(20_000)))
    assert not state.data.ready and not state.data.dividing and not state.data.pending


def test_a_large_call_with_one_bad_entry_stores_nothing() -> None:
    network = MapNetwork("AB", ["AB", "BA"])
    for bad in (("\udcff", b""), ("k", bytes(map_calls.MOST_ENTRY_BYTES))):
        answer = network.ask("A", PutAll("m", (*entries(5_000), bad)))
        assert answer.untouched and answer.problem and stored_by(network) == 0


def test_what_is_stored_after_a_member_has_lost_its_place_is_not_acknowledged() -> None:
    """Of three members one is cut off in the middle of a large call: it removes the others, and leads alone."""
    network = MapNetwork("ABC", ["AB", "AC"] * 5)
    call = network.call("A", PutAll("m", entries(20_000)))
    while sum(pending.stored for pending in network.states["A"].data.pending.values()) < 1_000:
        network.tick_all()
        if network.sent:
            network.deliver()
    network.kill("B")
    network.kill("C")
    network.list_all()
    for partition in range(10):
        network.set_row(partition, "A")
    network.learn_all()
    network.pass_seconds(1)
    answer = network.answers[call]
    assert 1_000 <= answer.size < 20_000 and not answer.untouched
    told = f"2 of 3 members left this one's cluster meanwhile; {answer.size} of 20000 entries are stored, and of the"
    assert answer.problem.startswith(told)


@pytest.mark.parametrize(("left", "acknowledged"), [("C", True), ("BC", True), ("ABC", False), ("BCD", False)])
def test_a_member_keeps_its_place_beside_most_others_or_half_with_the_oldest(left: str, acknowledged: bool) -> None:
    network = MapNetwork("ABCD", ["C", "D"])
    caller = "D" if "A" in left else "A"
    call = network.call(caller, PutAll("m", entries(20)))
    for name in left:
        network.kill(name)
    network.list_all()
    for partition in range(2):
        network.set_row(partition, caller)
    network.learn_all()
    network.pass_seconds(5)
    assert (network.answers[call].problem == "") is acknowledged


def test_a_call_that_is_refused_in_part_says_how_many_entries_are_stored() -> None:
    settings = training_settings(partition_count=4, member_most_entries=300)
    network = MapNetwork("A", ["A"] * 4, settings)
    answer = network.ask("A", PutAll("m", entries(4_000)))
    told = (
        f"this member is full: it may hold 300 entries (quarterdeck.member.max.entries); {answer.size} of 4000 entries"
    )
    assert answer.problem == f"{told} are stored, and the others are not" and not answer.untouched
    assert answer.size == stored_by(network) <= 300
