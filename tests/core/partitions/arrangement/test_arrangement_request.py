"""The first arrangement of partitions (Hazelcast: first arrangement; Decisions: First arrangement)."""

from quarterdeck.backend.core.commands import ArrangePartitions
from quarterdeck.backend.core.partitions.events import TableChanged
from quarterdeck.backend.core.partitions.messages import ArrangeRequest, TableUpdate
from tests.core.stepped_partitions import SteppedPartitions


def ask(world: SteppedPartitions, name: str) -> None:
    world.tell(name, ArrangePartitions(name))


def cluster(names: str, backups: int = 1, partitions: int = 6, **changed: object) -> SteppedPartitions:
    world = SteppedPartitions(partitions, backups, **changed).settled(names)
    world.with_fake_service(names)
    return world


def arranged(world: SteppedPartitions) -> list[bool]:
    return [world.inspect(name).partitions.table is not None for name in world.living]


def test_it_is_not_made_before_somebody_needs_it() -> None:
    world = cluster("ABC")
    world.run(10)
    assert arranged(world) == [False] * 3


def test_it_is_made_at_once_where_it_is_configured_so() -> None:
    world = cluster("ABC", arranges_at_once=True)
    world.run(2)
    assert arranged(world) == [True] * 3


def test_the_master_makes_it_and_publishes_it() -> None:
    world = cluster("ABC")
    ask(world, "A")
    assert arranged(world) == [True, False, False]
    world.deliver(TableUpdate)
    (change,) = world.seen("A", TableChanged)
    assert change.cause == "arranged" and change.table_version == 6
    assert world.rows("A") == world.rows("B") == world.rows("C") and world.table("B").versions == [1] * 6


def test_a_slave_asks_its_master_until_there_is_one() -> None:
    world = cluster("ABC")
    ask(world, "C")
    assert world.drop(ArrangeRequest, to="A") == 1
    world.run(0.9)
    assert arranged(world) == [False] * 3
    world.run(1)
    assert arranged(world) == [True] * 3
    world.run(3)
    assert not world.messages(ArrangeRequest)


def test_a_member_asks_once_it_has_joined() -> None:
    world = SteppedPartitions(6, 1)
    world.born("A", "A")
    world.with_fake_service("A")
    ask(world, "A")
    world.start("A")
    world.run(10)
    assert arranged(world) == [True]


def test_another_master_can_be_asked_meanwhile() -> None:
    world = cluster("ABC")
    world.loses = lambda sender, receiver, message: isinstance(message, ArrangeRequest) and receiver == "A"
    ask(world, "C")
    world.run(2)
    world.kill("A")
    world.run(10)
    assert arranged(world) == [True, True]


def test_every_row_has_different_members_and_shares_are_fair() -> None:
    world = cluster("ABC", backups=2, partitions=12)
    ask(world, "A")
    world.run(1)
    for index in range(3):
        column = [row[index] for row in world.rows("B")]
        assert [column.count(name) for name in "ABC"] == [4, 4, 4]
    assert all(len(set(row)) == 3 for row in world.rows("B"))


def test_with_fewer_members_than_replicas_there_are_holes_at_the_end() -> None:
    world = cluster("AB", backups=3)
    ask(world, "A")
    world.run(1)
    assert {row[2:] for row in world.rows("B")} == {"--"}


def test_lite_members_hold_nothing() -> None:
    world = SteppedPartitions(6, 1)
    for name in "ABC":
        world.born(name, lite=name == "A")
    world.settled("ABC")
    world.with_fake_service("ABC")
    ask(world, "A")
    world.run(1)
    assert "A" not in "".join(world.rows("A")) and not world.ghosts["A"].held
    assert world.rows("A") == world.rows("C")


def test_with_lite_members_only_it_waits_for_somebody_who_can_hold_data() -> None:
    world = SteppedPartitions(6, 1)
    for name in "AB":
        world.born(name, lite=True)
    world.settled("AB")
    world.with_fake_service("AB")
    ask(world, "B")
    world.run(5)
    assert arranged(world) == [False, False]
    world.join("C", "AB")
    world.run(5)
    assert arranged(world) == [True] * 3 and set(world.rows("A")) == {"C-"}


def test_it_waits_for_a_state_that_allows_migrations() -> None:
    for state in ("NO_MIGRATION", "FROZEN", "PASSIVE"):
        world = cluster("ABC")
        world.change_state("A", state)  # type: ignore[arg-type]
        world.run(2)
        ask(world, "B")
        world.run(5)
        assert arranged(world) == [False] * 3
        world.change_state("A", "ACTIVE")
        world.run(3)
        assert arranged(world) == [True] * 3


def test_members_that_want_to_leave_are_left_out() -> None:
    world = cluster("ABC")
    master_role = world.master_role("A")
    master_role.leaving[world.machines["C"].uuid] = world.machines["C"].address
    ask(world, "A")
    assert "C" not in "".join(world.rows("A"))


def test_partitions_begin_empty_at_everybody_who_holds_them() -> None:
    world = cluster("ABC")
    ask(world, "A")
    world.run(1)
    for name in "ABC":
        assert set(world.ghosts[name].held) == {p for p, row in enumerate(world.rows("A")) if name in row}
        assert set(world.ghosts[name].held.values()) == {()}


def test_asking_again_changes_nothing() -> None:
    world = cluster("ABC")
    for name in "ABC":
        ask(world, name)
    world.run(3)
    version = world.table("A").version
    ask(world, "A")
    ask(world, "B")
    world.run(3)
    assert world.table("B").version == version == 6 and not world.complaints(losses=False)
