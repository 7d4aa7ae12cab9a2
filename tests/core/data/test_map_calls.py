"""Calls to the distributed map: taken apart, sent, sent again, answered once (Hazelcast: anti-entropy)."""

from itertools import pairwise

import msgspec
import pytest

from quarterdeck.backend.core import member
from quarterdeck.backend.core.cluster_profile import ClusterStanding, ClusterState
from quarterdeck.backend.core.data import handlers, map_calls
from quarterdeck.backend.core.data.events import CallFinished, CallStarted
from quarterdeck.backend.core.data.messages import MapAnswer, MapCall
from quarterdeck.backend.core.data.partition_store import partition_of
from quarterdeck.backend.core.effects import OperationAnswered
from quarterdeck.backend.core.membership.messages import Leave
from quarterdeck.backend.core.messages import MESSAGE_KINDS
from quarterdeck.backend.core.operations import Answer, Get, Keys, Put, PutAll, Remove, Size
from quarterdeck.backend.core.partitions.messages import ArrangeRequest
from tests.core.map_network import MapNetwork
from tests.core.stepped_cluster import training_settings


@pytest.mark.parametrize(
    ("key", "of_271", "of_7"), [("", 123, 1), ("a", 44, 4), ("key-1", 37, 6), ("ключ", 8, 0), ("x" * 1000, 225, 6)]
)
def test_keys_have_their_partitions_for_ever(key: str, of_271: int, of_7: int) -> None:
    assert (partition_of("m", key, 271), partition_of("m", key, 7)) == (of_271, of_7)


def test_the_map_counts_for_the_partition_too() -> None:
    assert len({partition_of(f"map {number}", "key", 271) for number in range(50)}) > 30


def test_keys_are_spread_evenly() -> None:
    counts = [0] * 271
    for number in range(100_000):
        counts[partition_of("m", f"key-{number}", 271)] += 1
    assert 280 < min(counts) and max(counts) < 460


def test_every_message_of_partitions_and_data_has_a_handler() -> None:
    rooms = {f"quarterdeck.backend.core.{room}.messages" for room in ("data", "partitions")}
    kinds = {kind for kind in MESSAGE_KINDS.values() if kind.__module__ in rooms}
    assert {*kinds, Leave} == set(member.MESSAGE_HANDLERS)


@pytest.mark.parametrize("caller", "ABC")
def test_what_was_put_is_found(caller: str) -> None:
    network = MapNetwork("ABC", ["AB", "BA", "AB", "BA"])
    for number in range(20):
        assert network.put(caller, f"k{number}", f"v{number}") == Answer()
    assert network.put(caller, "k3", "other").value == b"v3"
    assert network.get("A", "k3") == b"other"
    assert network.get("A", "nothing") is None
    assert network.ask(caller, Size("m")).size == 20
    assert network.ask(caller, Keys("m")).keys == tuple(sorted(f"k{number}" for number in range(20)))
    assert network.ask(caller, Remove("m", "k3")).value == b"other"
    assert network.ask(caller, Remove("m", "k3")).value is None
    assert network.ask(caller, Size("m")).size == 19
    assert network.ask(caller, Size("another")).size == 0
    network.assert_equal_replicas()


def test_many_at_once() -> None:
    network = MapNetwork("ABC", ["AB", "BC", "CA"] * 10)
    entries = tuple((f"k{number}", b"%d" % number) for number in range(3000))
    assert network.ask("A", PutAll("m", entries)).size == 3000
    assert network.ask("B", Size("m")).size == 3000
    assert network.ask("C", PutAll("m", ())) == Answer()
    network.assert_equal_replicas()


def test_much_for_one_partition_goes_in_several_calls() -> None:
    network = MapNetwork("AB", ["A"])
    entries = tuple((f"k{number}", bytes(1000)) for number in range(1200))
    call = network.call("B", PutAll("m", entries))
    sizes = []
    while call not in network.answers:
        network.tick_all()
        sizes += [
            sum(len(operation.entries) for operation in message.operations) for message in network.messages(MapCall)
        ]
        while network.sent:
            network.deliver()
    assert network.answers[call].size == sum(sizes) == 1200
    assert max(sizes) <= map_calls.MOST_BATCH_BYTES / 1000


def test_what_comes_while_a_call_is_under_way_goes_together() -> None:
    network = MapNetwork("AB", ["A"])
    calls = [network.call("B", Put("m", f"k{number}", b"v")) for number in range(10)]
    assert [len(message.operations) for message in network.messages(MapCall)] == [1]
    network.deliver()
    network.deliver()
    network.tick("B")
    assert [len(message.operations) for message in network.messages(MapCall)] == [9]
    network.settle()
    assert all(network.answers[call] == Answer() for call in calls)


def test_a_batch_that_finds_too_much_is_answered_in_parts() -> None:
    network = MapNetwork("AB", ["A"])
    for number in range(8):
        network.ask("A", Put("m", f"k{number}", bytes(30_000)))
    calls = [network.call("B", Get("m", f"k{number % 8}")) for number in range(20)]
    longest = 0
    while network.sent or network.states["B"].timers.earliest <= network.now + 1:
        network.tick_all()
        longest = max([longest, *(sum(len(answer.value) for answer in m.answers) for m in network.messages(MapAnswer))])
        network.deliver()
    assert [len(network.answers[call].value or b"") for call in calls] == [30_000] * 20
    assert 30_000 < longest <= 90_000


def test_a_call_that_is_lost_is_sent_again_and_done_once() -> None:
    network = MapNetwork("AB", ["A"])
    call = network.call("B", Put("m", "k", b"1"))
    assert network.drop(MapCall) == 1
    network.pass_seconds(1)
    assert network.answers[call] == Answer()
    call = network.call("B", Put("m", "k", b"2"))
    network.deliver()
    assert network.drop(MapAnswer) == 1
    network.pass_seconds(1)
    assert network.answers[call].value == b"1"  # not "2": it was not done again


def test_an_echo_of_an_earlier_call_does_nothing() -> None:
    network = MapNetwork("AB", ["A"])
    network.call("B", Remove("m", "k"))
    _, _, echo = network.sent[0]
    network.settle()
    network.get("B", "k")
    network.put("B", "k", "v")
    network.receive("A", "B", echo)
    network.settle()
    assert network.get("B", "k") == b"v"


def test_before_there_is_a_table_calls_wait_and_ask_for_one() -> None:
    network = MapNetwork("AB", [], training_settings(partition_count=2))
    call = network.call("B", Put("m", "k", b"v"))
    assert [to for _, to, message in network.sent if isinstance(message, ArrangeRequest)] == ["A"]
    network.sent.clear()
    network.width = 2
    network.rows, network.versions = [network.row_of("AB"), network.row_of("BA")], [1, 1]
    network.learn_all()
    network.settle()
    assert network.answers[call] == Answer()


def test_without_an_answer_in_time_the_outcome_is_not_known() -> None:
    network = MapNetwork("AB", ["A"], training_settings(partition_count=1, call_timeout_us=3_000_000))
    call = network.call("B", Put("m", "k", b"v"))
    other = network.call("B", Put("m", "other", b"v"))
    network.kill("A")
    network.pass_seconds(3)
    assert network.answers[call] == Answer(problem="no answer in time; the outcome is not known")
    assert network.answers[other] == Answer(problem="no answer in time", untouched=True)


def test_what_was_said_to_be_untouched_is_never_done() -> None:
    network = MapNetwork("AB", ["-", "A"], training_settings(partition_count=2, call_timeout_us=3_000_000))
    key = next(key for key in "abcdefgh" if partition_of("m", key, 2) == 0)
    call = network.call("B", Put("m", key, b"v"))
    network.pass_seconds(2)
    later = network.call("B", Get("m", key))
    network.pass_seconds(1.5)
    assert network.answers[call].untouched
    network.set_row(0, "A")
    network.learn_all()
    network.settle()
    assert network.answers[later] == Answer()


def test_calls_follow_a_partition_that_moves() -> None:
    network = MapNetwork("ABC", ["AB"])
    network.put("C", "k", "1")
    call = network.call("C", Put("m", "k", b"2"))
    network.set_row(0, "BA")
    network.learn("A")
    network.learn("B")
    network.deliver()  # the call reaches the former owner
    assert "not owned" in network.messages(MapAnswer)[0].retry
    network.settle()
    assert call not in network.answers
    network.learn("C")
    network.settle()
    assert network.answers[call].value == b"1"


def test_the_wait_before_asking_again_grows() -> None:
    network = MapNetwork("AB", ["A"])
    network.states["A"].operating = False
    network.call("B", Get("m", "k"))
    sent_at = []
    for _ in range(500):
        network.tick("B")
        sent_at += [network.now // 1000] * len(network.messages(MapCall))
        while network.sent:
            network.deliver()
        network.now += 5_000
    waits = [later - earlier for earlier, later in pairwise(sent_at)]
    assert waits == [20, 40, 80, 160, 320, 500, 500, 500]


def test_refused_before_it_begins() -> None:
    network = MapNetwork("AB", ["AB"])
    state = network.states["A"]
    state.standing = ClusterStanding("PASSIVE")
    for change in (Put("m", "k", b""), PutAll("m", (("k", b""),)), Remove("m", "k")):
        assert network.ask("A", change) == Answer(problem="the cluster is PASSIVE and serves no writes", untouched=True)
    state.standing = ClusterStanding()
    table, state.partitions.table = state.partitions.table, None
    everybody, state.members = state.members, None
    assert everybody is not None
    lite = tuple(msgspec.structs.replace(member, lite=True) for member in everybody.members)
    state.members = msgspec.structs.replace(everybody, members=lite)
    assert "no member of the cluster holds data" in network.ask("A", Get("m", "k")).problem
    state.members, state.partitions.table = everybody, table
    state.operating = False
    assert "not enough members" in network.ask("A", Get("m", "k")).problem
    state.operating = True
    too_long = network.ask("A", Put("m", "k", bytes(map_calls.MOST_ENTRY_BYTES)))
    assert "too large" in too_long.problem and too_long.untouched
    assert "valid text" in network.ask("A", Get("m", "\udc80")).problem


def test_a_passive_cluster_serves_reads() -> None:
    network = MapNetwork("ABC", ["AB"])
    network.put("C", "k", "v")
    for state in network.states.values():
        state.standing = ClusterStanding("PASSIVE")
    assert network.get("C", "k") == b"v"
    assert network.ask("B", Size("m")).size == 1 and network.ask("A", Keys("m")).keys == ("k",)


@pytest.mark.parametrize("standing", ["NO_MIGRATION", "FROZEN", "PASSIVE"])
@pytest.mark.parametrize("asked", "AC")
def test_where_no_partitions_can_be_arranged_a_call_fails_soon(asked: str, standing: ClusterState) -> None:
    """The master knows it at once, others as soon as a table that there is would have come."""
    network = MapNetwork("ABC", [])
    for state in network.states.values():
        state.standing = ClusterStanding(standing)
    call = network.call(asked, Get("m", "k"))
    network.pass_seconds(0 if asked == "A" else 1.1)
    answer = network.answers[call]
    assert f"the cluster is {standing} and its partitions are not arranged" in answer.problem and answer.untouched


def test_a_call_before_the_table_of_a_frozen_cluster_has_come_is_done() -> None:
    network = MapNetwork("ABC", ["A"])
    for state in network.states.values():
        state.standing = ClusterStanding("FROZEN")
    network.states["C"].partitions.table = None
    call = network.call("C", Get("m", "k"))
    network.pass_seconds(0.5)
    network.learn("C")
    network.pass_seconds(1)
    assert network.answers[call] == Answer()


def test_names_that_are_no_text_are_refused_and_leave_no_trace_in_the_journal() -> None:
    network = MapNetwork("A", ["A"])
    state = network.states["A"]
    for number, bad in enumerate((Put("m", "\udcff", b""), Get("\udcff", "k"), PutAll("m", (("\udcff", b""),)))):
        map_calls.call(state, 0, number, bad, watched=True)
        answer = state.context.effects.pop()
        assert (
            isinstance(answer, OperationAnswered) and answer.answer.untouched and "valid text" in answer.answer.problem
        )
        assert not state.context.effects and not state.data.pending


def test_an_owner_that_sees_too_few_members_does_nothing() -> None:
    network = MapNetwork("AB", ["A"])
    network.states["A"].operating = False
    call = network.call("B", Put("m", "k", b"v"))
    network.deliver()
    assert "not enough members" in network.messages(MapAnswer)[0].retry
    network.states["A"].operating = True
    network.pass_seconds(1)
    assert network.answers[call] == Answer()


def test_calls_of_another_life_are_not_served() -> None:
    network = MapNetwork("AB", ["A"])
    network.receive("A", "B", MapCall("another life", 0, 1, (Get("m", "k"),)))
    assert "not on the member list" in network.messages(MapAnswer)[0].retry


def test_calls_for_an_earlier_incarnation_of_the_owner_are_not_done() -> None:
    """One that was sent twice may arrive after its owner was started anew, which does not remember that it is done."""
    network = MapNetwork("AB", ["A"])
    late = MapCall(network.states["B"].uuid, 0, 1, (Put("m", "k", b"old"),), "an earlier incarnation")
    network.receive("A", "B", late)
    answer = network.messages(MapAnswer)[0]
    assert (answer.retry, answer.answers) == ("the call is for an earlier incarnation of this member", ())


def test_answers_to_another_life_are_not_heeded() -> None:
    network = MapNetwork("AB", ["A"])
    call = network.call("B", Get("m", "k"))
    network.receive("B", "A", MapAnswer("another life", 0, 1, (Answer(value=b"no"),), ""))
    assert call not in network.answers


def test_the_answer_of_a_member_that_is_on_the_list_no_more_is_not_believed() -> None:
    """An owner that was cut off counts a write as done once its backups are off its own list; here nobody has it."""
    network = MapNetwork("ABC", ["AC"])
    write = network.call("B", Put("m", "k", b"v"))
    peers, owner = network.states["B"].peers, network.states["A"].address
    former = peers.pop(owner)
    network.receive("B", "A", MapAnswer(network.states["B"].uuid, 0, 1, (Answer(),), ""))
    assert write not in network.answers
    peers[owner] = former
    network.receive("B", "A", MapAnswer(network.states["B"].uuid, 0, 1, (Answer(),), ""))
    assert network.answers[write] == Answer()


def test_the_answer_to_an_earlier_call_does_not_end_this_one() -> None:
    network = MapNetwork("AB", ["A"])
    network.put("B", "k", "v")
    read = network.call("B", Get("m", "k"))
    network.receive("B", "A", MapAnswer(network.states["B"].uuid, 0, 1, (Answer(),), ""))
    assert read not in network.answers
    network.settle()
    assert network.answers[read].value == b"v"


def test_the_end_of_a_life_ends_its_calls() -> None:
    network = MapNetwork("AB", ["A"])
    call = network.call("B", Put("m", "k", b"v"))
    waiting = network.call("B", Put("m", "k", b"v"))
    handlers.on_incarnation_end(network.states["B"], network.now, "the member stops", for_good=True)
    network.take("B")
    assert network.answers[call].problem == "the member stops; the outcome is not known"
    assert network.answers[waiting] == Answer(problem="the member stops", untouched=True)


def test_calls_that_are_watched_leave_their_trace() -> None:
    network = MapNetwork("AB", ["A"])
    network.now = 1_000_000
    first = network.call("B", Put("m", "k", b"v"), watched=True)
    network.now += 500
    network.settle()
    second = network.call("B", Get("m", "k"), watched=True)
    network.settle()
    network.call("B", Size("m"), watched=True)
    assert network.seen("B", CallStarted) == [
        CallStarted(first, "put", "m", "k", "v"),
        CallStarted(second, "get", "m", "k", ""),
    ]
    assert network.seen("B", CallFinished) == [
        CallFinished(first, "put", "m", "k", 0, "", False, 500, "", False),
        CallFinished(second, "get", "m", "k", 0, "v", True, 0, "", False),
    ]


def test_entries_know_their_use() -> None:
    network = MapNetwork("A", ["A"], utc_origin_us=5_000)
    network.put("A", "k", "1")
    network.now = 10
    network.get("A", "k")
    network.now = 20
    network.put("A", "k", "2")
    entry = network.states["A"].data.stores[0].find("m", "k")
    assert entry is not None
    assert (entry.version, entry.created_us, entry.updated_us, entry.accessed_us, entry.hits) == (
        2,
        5000,
        5020,
        5020,
        1,
    )


def test_many_calls_to_oneself_do_not_pile_up() -> None:
    network = MapNetwork("A", ["A"])
    calls = [network.call("A", Put("m", f"k{number % 7}", b"v")) for number in range(5000)]
    network.settle()
    assert len(network.answers) == len(calls)
