"""Anything may happen to a partition, in any order: nothing acknowledged is lost, nothing is done twice."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.backend.core.operations import Get, Put
from tests.core.map_network import MapNetwork
from tests.core.stepped_cluster import training_settings
from tests.thoroughness import examples

FOREVER_US = 10**12


class History:
    """Puts of values that are all different. Each answer names the value that was overwritten, so nothing can hide."""

    def __init__(self, network: MapNetwork) -> None:
        self.network = network
        self.keys = "xy"
        self.reads: list[int] = []

    def put(self, caller: str, key: str) -> None:
        number = self.network.calls + 1
        self.network.call(caller, Put("m", key, b"%d" % number))

    def get(self, caller: str, key: str) -> None:
        self.reads.append(self.network.call(caller, Get("m", key)))

    def judge(self) -> None:
        network = self.network
        owner = network.names_in(0)[0]
        for key in self.keys:
            final = network.entries(owner).get(("m", key))
            puts = {
                call: operation.value
                for call, (_, operation) in network.asked.items()
                if isinstance(operation, Put) and operation.key == key
            }
            done = {call for call in puts if call in network.answers and not network.answers[call].problem}
            never = {call for call in puts if call in network.answers and network.answers[call].untouched}
            overwritten = [network.answers[call].value for call in sorted(done)]
            followed = Counter([*overwritten, final])
            assert max(followed.values()) == 1, f"{key}: done twice: {followed.most_common(2)}"
            assert not {puts[call] for call in never} & set(followed), "done, though it was said to be untouched"
            unknown = {puts[call] for call in puts if call not in done and call not in never}
            settled = {None, *(puts[call] for call in done)}
            assert set(followed) <= settled | unknown
            lost = settled - set(followed)
            assert len(lost) <= len(unknown), f"{key}: lost {sorted(map(str, lost))}"
            if not unknown:
                assert not lost
            for call in self.reads:
                answer = network.answers.get(call)
                if answer is not None and not answer.problem and network.asked[call][1].key == key:
                    assert answer.value in set(followed) | unknown | (lost if unknown else set())


def injected_fault(network: MapNetwork, history: History, action: int, draw: int, kills: int) -> int:
    """One step; how many members may still be killed."""
    alive = network.alive
    someone = alive[draw % len(alive)]
    row = network.names_in(0).replace("-", "")
    migrating = any(network.states[name].partitions.active for name in alive)
    if action < 4:
        history.put(someone, history.keys[draw // 7 % 2])
    elif action < 5:
        history.get(someone, history.keys[draw // 7 % 2])
    elif action < 12 and network.sent:
        network.deliver(draw % len(network.sent) if action == 5 else 0)
    elif action == 12 and network.sent:
        network.sent.pop(draw % len(network.sent))
    elif action == 13 and network.sent:
        network.sent.append(network.sent[draw % len(network.sent)])
    elif action < 16:
        network.tick(someone)
    elif action == 16:
        network.now += (1_000, 20_000, 600_000, 2_000_000)[draw % 4]
    elif action == 17:
        network.learn(someone)
    elif action == 18 and kills and row and len(row) > 1 and row[draw % len(row)] in alive:
        victim = row[draw % len(row)]
        network.kill(victim)
        network.set_row(0, row.replace(victim, ""))
        return kills - 1
    elif action == 19 and not migrating and len(row) > 1:
        network.set_row(0, row[1:] + row[0])
    elif action == 20 and not migrating and len(row) > 2:
        network.set_row(0, row[:-1])
    elif action == 21 and not migrating:
        _migrate(network, row, draw)
    return kills


def _migrate(network: MapNetwork, row: str, draw: int) -> None:
    """Somebody without a replica takes a place, the owner's too; the owner and it know the table, as the master checks."""
    others = [name for name in network.alive if name not in row]
    if not others:
        return
    newcomer = others[draw % len(others)]
    latest = network.versions[0]
    for name in (row[0], newcomer):
        table = network.states[name].partitions.table
        if table is None or table.versions[0] != latest:
            return
    place = draw // 5 % min(len(row) + 1, network.width)
    after = row[:place] + newcomer + row[place + 1 :]
    network.migrate(0, after, newcomer)


@settings(max_examples=examples(400))
@given(
    steps=st.lists(st.tuples(st.integers(0, 21), st.integers(0, 1000)), min_size=20, max_size=250),
    timeout_us=st.sampled_from([FOREVER_US, 3_000_000]),
    replicas=st.integers(1, 3),
)
def test_no_acknowledged_write_is_lost_and_none_is_done_twice(
    steps: list[tuple[int, int]], timeout_us: int, replicas: int
) -> None:
    assert_nothing_is_lost(steps, timeout_us, replicas)


def assert_nothing_is_lost(steps: list[tuple[int, int]], timeout_us: int, replicas: int) -> None:
    chosen = training_settings(
        partition_count=1, call_timeout_us=timeout_us, transfer_chunk_bytes=60, backup_sync_interval_us=3_000_000
    )
    network = MapNetwork("ABCDE", ["ABC"[:replicas] + "-" * (3 - replicas)], chosen)
    history = History(network)
    kills = replicas - 1
    for action, draw in steps:
        kills = injected_fault(network, history, action, draw, kills)
    network.list_all()
    network.learn_all()
    network.pass_seconds(8)
    for call, (name, _) in network.asked.items():
        assert call in network.answers or name in network.dead, f"call {call} of {name} has no answer"
    network.pass_seconds(4)  # a comparison, so that dirty backups would be found
    network.assert_equal_replicas()
    assert not any(network.states[name].data.unsafe for name in network.alive)
    history.judge()
