"""A crash at every point of a rebalance: the first k messages are delivered, somebody dies, and everything else goes on.

No partition may lose its data as long as no more members die than there are backups; in the end all tables are equal, every
row is whole again, each member has the data of its replicas and no other, and nobody waits for anything (Avoid Data Loss on
Migration).
"""

from collections.abc import Callable
from itertools import combinations

import pytest

from tests.core.stepped_partitions import SteppedPartitions
from tests.thoroughness import long_after

AT_REST_S = 4
MOST_S = 60

Scenario = Callable[[], SteppedPartitions]


def a_newcomer(backups: int, members: str, **changed: int) -> SteppedPartitions:
    """The last one joins; the others hand replicas over."""
    world = SteppedPartitions(5, backups, **changed).arranged(members[:-1])
    world.join(members[-1], members[:-1])
    return world


def a_leaver(backups: int, members: str, leaver: str) -> SteppedPartitions:
    """One is asked to stop and waits to be relieved."""
    world = SteppedPartitions(5, backups).arranged(members)
    world.stop(leaver)
    return world


def a_crash(backups: int, members: str, victim: str) -> SteppedPartitions:
    """One has died; the others make up for its replicas, which takes copies and shifts of all kinds."""
    world = SteppedPartitions(5, backups).arranged(members)
    world.kill(victim)
    world.run(3.9)  # nobody has noticed yet
    return world


def length_of(scenario: Scenario) -> int:
    """How many messages there are until all is quiet."""
    world = scenario()
    world.delivered = 0
    world.run(12)
    assert not world.complaints()
    return world.delivered


def settle(world: SteppedPartitions) -> list[str]:
    """Let everybody live until nothing is wrong any more; what still is."""
    for _ in range(0, MOST_S, AT_REST_S):
        world.run(AT_REST_S)
        if not (found := world.complaints()):
            break
    return found


def crash(scenario: Scenario, after: int, victims: str, *, silent: bool) -> list[str]:
    """Kill `victims` after so many messages; `silent` if what they have sent is lost with them."""
    world = scenario()
    world.run_until_messages(after)
    for victim in victims:
        if victim in world.living:
            world.kill(victim)
        if silent:
            world.sent = [delivery for delivery in world.sent if delivery[0] != victim]
    return [f"{victims} died after {after} messages: {problem}" for problem in settle(world)]


@pytest.mark.parametrize("silent", long_after(1, [True, False]))
@pytest.mark.parametrize("victim", long_after(2, "ABCD"))
def test_while_a_newcomer_is_given_its_share(victim: str, silent: bool) -> None:
    def scenario() -> SteppedPartitions:
        return a_newcomer(1, "ABCD")

    length = length_of(scenario)
    assert length > 80
    assert [problem for k in range(length) for problem in crash(scenario, k, victim, silent=silent)] == []


@pytest.mark.parametrize("victim", long_after(2, "ABCD"))
def test_while_partitions_migrate_one_by_one(victim: str) -> None:
    def scenario() -> SteppedPartitions:
        return a_newcomer(1, "ABCD", parallel_migrations=1)

    every = range("ABCD".index(victim) % 2, length_of(scenario), 2)
    assert [problem for k in every for problem in crash(scenario, k, victim, silent=False)] == []


@pytest.mark.parametrize("leaver", long_after(1, "AC"))
def test_while_a_member_leaves(leaver: str) -> None:
    def scenario() -> SteppedPartitions:
        return a_leaver(1, "ABCD", leaver)

    length = length_of(scenario)
    found = []
    for begin, victim in enumerate("ABCD"):
        for k in range(begin % 3, length, 3):
            found += crash(scenario, k, victim, silent=False)
    assert found == []


PAIRS = ["".join(pair) for pair in combinations("ABCDE", 2)]


@pytest.mark.parametrize("pair", long_after(2, PAIRS))
def test_two_of_them_at_once_with_two_backups(pair: str) -> None:
    def scenario() -> SteppedPartitions:
        return a_newcomer(2, "ABCDE")

    length = length_of(scenario)
    assert length > 100
    every = range(PAIRS.index(pair) % 4, length, 4)  # together the pairs meet every message
    assert [problem for k in every for problem in crash(scenario, k, pair, silent=True)] == []


@pytest.mark.parametrize("first", long_after(1, "ABCD"))
def test_a_second_one_while_the_first_crash_is_made_up_for(first: str) -> None:
    def scenario() -> SteppedPartitions:
        return a_crash(2, "ABCDE", first)

    length = length_of(scenario)
    found = []
    for begin, second in enumerate("ABCDE".replace(first, "")):
        for k in range(2 * begin, length, 8):
            found += crash(scenario, k, second, silent=False)
    assert found == []


@pytest.mark.parametrize("later", long_after(1, [4, 1, 12]))
def test_the_master_and_then_its_successor(later: int) -> None:
    def scenario() -> SteppedPartitions:
        return a_newcomer(2, "ABCDE")

    found = []
    for k in range(0, length_of(scenario), 5):
        world = scenario()
        world.run_until_messages(k)
        world.kill("A")
        world.run(4)
        world.run_until_messages(later)
        if "B" in world.living:
            world.kill("B")
        found += [f"A died after {k}, B {later} later: {problem}" for problem in settle(world)]
    assert found == []
