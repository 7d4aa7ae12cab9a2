"""Synchronous backups: what is acknowledged is in every backup, and outlives those who held it (Hazelcast: anti-entropy)."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.cluster_profile import ClusterStanding
from quarterdeck.backend.core.data.events import BackupInStep, BackupOutOfStep
from quarterdeck.backend.core.data.messages import (
    BackupAck,
    BackupCheck,
    BackupWrite,
    MapAnswer,
    SyncChunk,
    SyncRequest,
)
from quarterdeck.backend.core.operations import Answer, Get, Put
from tests.core.map_network import MapNetwork

FOREVER_US = 10**12


def test_a_write_is_answered_when_every_backup_has_it() -> None:
    network = MapNetwork("ABCD", ["ABC"])
    call = network.call("D", Put("m", "k", b"v"))
    network.deliver()
    assert len(network.messages(BackupWrite)) == 2 and not network.messages(MapAnswer)
    network.deliver()
    network.deliver()
    network.deliver()
    assert not network.messages(MapAnswer)  # one of two has confirmed
    network.deliver()
    assert len(network.messages(MapAnswer)) == 1
    network.settle()
    assert network.answers[call] == Answer()


def test_a_read_waits_for_the_writes_that_it_saw() -> None:
    network = MapNetwork("ABC", ["AB"])
    network.call("A", Put("m", "k", b"v"))
    read = network.call("C", Get("m", "k"))
    assert network.drop(BackupWrite) == 1
    network.settle()
    assert read not in network.answers
    network.pass_seconds(0.5)
    assert network.answers[read].value == b"v"


def test_in_a_frozen_cluster_a_backup_that_has_left_is_not_waited_for() -> None:
    network = MapNetwork("ABC", ["AB"])
    for name in "ABC":
        network.states[name].standing = ClusterStanding("FROZEN")
    begun_before = network.call("C", Put("m", "k", b"v"))
    network.kill("B")
    network.pass_seconds(1)
    assert begun_before not in network.answers  # nobody knows yet that it is gone
    network.list_all()
    network.pass_seconds(4)
    assert network.answers[begun_before] == Answer()
    assert network.put("C", "k", "w").value == b"v" and network.get("A", "k") == b"w"
    assert not network.states["A"].data.owner_states[0].log and network.names_in(0) == "AB"


def test_in_an_active_cluster_a_backup_counts_that_is_not_on_the_list_yet() -> None:
    network = MapNetwork("ABC", ["AB"])
    network.kill("B")
    network.list_all()
    call = network.call("C", Put("m", "k", b"v"))
    network.pass_seconds(5)
    assert call not in network.answers
    network.set_row(0, "A-")
    network.learn_all()
    network.pass_seconds(1)
    assert network.answers[call] == Answer()


@pytest.mark.parametrize("lost", [BackupWrite, BackupAck])
def test_what_is_lost_between_owner_and_backup_is_sent_again(lost: type) -> None:
    network = MapNetwork("ABC", ["ABC"])
    call = network.call("A", Put("m", "k", b"v"))
    if lost is BackupAck:
        network.deliver()
        network.deliver()
    assert network.drop(lost) == 2
    network.pass_seconds(0.45)
    assert call not in network.answers
    network.pass_seconds(0.1)
    assert network.answers[call] == Answer()
    network.assert_equal_replicas()


def test_a_gap_is_closed_from_the_log() -> None:
    network = MapNetwork("ABC", ["AB"])
    network.call("A", Put("m", "1", b"v"))
    network.drop(BackupWrite)
    network.call("C", Put("m", "2", b"v"))
    network.settle()
    assert not network.answers
    assert not network.seen("B", BackupOutOfStep)
    network.pass_seconds(0.6)
    assert len(network.answers) == 2
    assert not network.seen("B", BackupOutOfStep)
    network.assert_equal_replicas()


def test_early_writes_of_a_former_owner_wait_no_more_when_the_next_one_writes() -> None:
    network = MapNetwork("ABC", ["ABC"])
    network.put("A", "k", "1")
    network.call("A", Put("m", "k", b"2"))
    network.drop(BackupWrite)
    network.call("B", Put("m", "k", b"3"))
    network.deliver()
    network.deliver(next(place for place, one in enumerate(network.sent) if one[1] == "C"))
    assert network.states["C"].data.early  # it has overtaken the write that was lost
    network.sent.clear()
    network.kill("A")
    network.set_row(0, "BC-")
    network.learn_all()
    network.put("B", "k", "4")
    assert not network.states["C"].data.early
    network.assert_equal_replicas()


def test_a_backup_that_left_the_row_is_not_waited_for() -> None:
    network = MapNetwork("ABC", ["ABC"])
    call = network.call("A", Put("m", "k", b"v"))
    network.kill("C")
    network.settle()
    assert call not in network.answers
    network.set_row(0, "AB-")
    network.learn_all()
    network.settle()
    assert network.answers[call] == Answer()


def test_a_new_owner_asks_its_backups_before_it_answers() -> None:
    network = MapNetwork("ABCD", ["ABC"])
    network.put("D", "k", "1")
    network.call("D", Put("m", "k", b"2"))
    network.deliver()
    network.kill("A")
    only_b = next(place for place, (_, to, _) in enumerate(network.sent) if to == "B")
    network.deliver(only_b)
    network.sent.clear()  # B has the write, C does not, and A is gone
    network.set_row(0, "BC-")
    for name in "BCD":
        network.learn(name)
    read = network.call("C", Get("m", "k"))
    network.deliver()
    assert read not in network.answers
    network.settle()
    assert network.answers[read].value == b"2"
    assert [event.reason for event in network.seen("C", BackupOutOfStep)] == [
        "it lacks writes that the owner does not keep"
    ]
    assert [event.entries for event in network.seen("C", BackupInStep)] == [1]
    network.pass_seconds(1)
    assert network.answers[2].value == b"1"  # D's call was done once, by A, and B knows that
    network.assert_equal_replicas()


def test_one_message_asks_a_backup_about_many_partitions() -> None:
    network = MapNetwork("ABC", ["ABC"] * 40)
    for number in range(400):
        network.call("A", Put("m", f"k{number}", b"v"))
    network.settle()
    network.kill("A")
    for partition in range(40):
        network.set_row(partition, "BC-")
    network.learn_all()
    network.tick_all()
    assert [len(message.checks) for message in network.messages(BackupCheck)] == [40]
    network.settle()
    assert not network.states["B"].data.unsafe
    assert not network.seen("C", BackupOutOfStep)


def test_an_empty_partition_is_asked_about_by_nobody() -> None:
    network = MapNetwork("AB", ["AB"] * 40)
    network.tick_all()
    assert not network.sent


def test_a_backup_that_does_not_know_its_owner_yet_is_asked_again_soon() -> None:
    network = MapNetwork("ABC", ["ABC"])
    network.put("A", "k", "v")
    network.kill("A")
    network.set_row(0, "BC-")
    network.learn("B")
    network.settle()
    assert network.states["B"].data.unsafe
    network.learn("C")
    network.pass_seconds(0.05)
    assert not network.states["B"].data.unsafe


def test_a_former_owner_gets_nothing_confirmed() -> None:
    network = MapNetwork("ABC", ["ABC"])
    network.put("A", "k", "1")
    network.set_row(0, "BC-")
    network.learn("B")
    network.learn("C")
    call = network.call("A", Put("m", "k", b"2"))  # A has not heard of it
    network.pass_seconds(2)
    assert call not in network.answers
    network.learn("A")
    network.pass_seconds(1)
    assert network.answers[call].value == b"1"
    assert network.get("C", "k") == b"2"
    network.assert_equal_replicas()


def test_writes_of_another_life_at_the_address_of_the_owner_are_not_taken() -> None:
    network = MapNetwork("AB", ["AB"])
    network.call("A", Put("m", "k", b"v"))
    write = network.messages(BackupWrite)[0]
    assert isinstance(write, BackupWrite)
    network.born("A")  # a new life, of which B's table knows nothing; and A is not heard under the old one any more
    stamp = type(write.stamp)(network.states["A"].uuid + "x", 1)
    network.receive("B", "A", BackupWrite(0, write.previous, stamp, write.entries, (), "", 1, ()))
    assert network.messages(BackupAck)[-1].not_yet == (0,)
    assert network.entries("B") == {}


def test_a_confirmation_of_another_life_does_not_count() -> None:
    network = MapNetwork("AB", ["AB"])
    call = network.call("A", Put("m", "k", b"v"))
    position = network.states["A"].data.stores[0].stamp
    network.receive("A", "B", BackupAck("another life", ((0, position),)))
    assert call not in network.answers
    network.receive("A", "B", BackupAck(network.states["B"].uuid, ((0, position),)))
    assert network.answers[call] == Answer()


def test_no_stamp_is_given_out_twice() -> None:
    """An owner whose last write did not reach its successor must not give the same stamp to another write later."""
    network = MapNetwork("ABC", ["AB"])
    network.put("A", "k", "1")
    network.call("C", Put("m", "k", b"lost"))
    network.deliver()
    network.sent.clear()
    network.kill("C")  # so the call is not made again
    first = network.states["A"].data.stores[0].stamp
    network.set_row(0, "BA")
    network.learn_all()
    network.pass_seconds(1)
    network.set_row(0, "AB")
    network.learn_all()
    network.put("B", "k", "2")
    stamp = network.states["A"].data.stores[0].stamp
    assert stamp.writer == first.writer and stamp.number > first.number
    network.assert_equal_replicas()


def test_a_backup_that_comes_back_into_the_row_is_asked_anew() -> None:
    network = MapNetwork("ABC", ["AB"])
    network.put("C", "k", "1")
    network.set_row(0, "A-")
    network.learn_all()
    network.put("C", "k", "2")
    network.set_row(0, "AB")
    network.learn("A")
    owner_state = network.states["A"].data.owner_states[0]
    assert network.states["B"].uuid not in owner_state.confirmed
    network.learn_all()
    network.pass_seconds(5)
    assert network.entries("B") == network.entries("A") and not network.states["A"].data.unsafe
    network.assert_equal_replicas()


def test_the_confirmation_of_a_member_before_it_is_a_backup_does_not_count() -> None:
    network = MapNetwork("ABC", ["AB"])
    network.put("A", "k", "1")
    position = network.states["A"].data.stores[0].stamp
    network.receive("A", "C", BackupAck(network.states["C"].uuid, ((0, position),)))
    network.set_row(0, "AC")
    network.learn("A")
    assert not network.states["A"].data.owner_states[0].confirmed
    assert 0 in network.states["A"].data.unsafe, "C is to be asked"
    network.learn_all()
    network.pass_seconds(5)
    network.assert_equal_replicas()


def test_a_backup_that_asks_for_a_whole_copy_has_confirmed_nothing() -> None:
    network = MapNetwork("ABC", ["AB"])
    network.put("C", "k", "v")
    owner_state, backup = network.states["A"].data.owner_states[0], network.states["B"].uuid
    assert backup in owner_state.confirmed and 0 not in network.states["A"].data.unsafe
    network.receive("A", "B", SyncRequest(backup, 0, "t"))
    assert backup not in owner_state.confirmed and 0 in network.states["A"].data.unsafe
    read = network.call("C", Get("m", "k"))
    network.drop(SyncChunk)
    network.deliver()
    assert read not in network.answers and not network.messages(MapAnswer)


def test_what_a_stranger_says_about_the_room_of_a_backup_counts_nothing() -> None:
    network = MapNetwork("ABC", ["AB"])
    network.receive("A", "C", BackupAck(network.states["B"].uuid, (), (), True))
    assert not network.states["A"].data.full_backups
