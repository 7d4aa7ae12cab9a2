"""Remembered addresses (Split-brain Recovery Improvements, Proposed Solution 1; Hazelcast: remembered addresses)."""

from quarterdeck.backend.core.membership.messages import (
    JoinRequest,
    MasterIs,
    MergeClusters,
    SplitBrainProbe,
    WhoIsMaster,
)
from quarterdeck.backend.core.membership.split_brain.remembered_addresses import possible_addresses, remember_contact
from quarterdeck.backend.core.properties import SECOND_US, Settings
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SteppedCluster, address_of, names_of, training_settings

RETENTION = training_settings(address_retention_us=20 * SECOND_US)


def looked_at(world: SteppedCluster, name: str) -> str:
    return "".join(sorted(names_of(possible_addresses(state_of(world.machines[name]), world.now))))


def cluster(names: str = "ABC", settings: Settings = RETENTION) -> SteppedCluster:
    return SteppedCluster(settings).settled(names)


def test_the_default_retention_is_four_hours() -> None:
    assert Settings().address_retention_us == 4 * 3600 * SECOND_US


def test_members_are_remembered_for_as_long_as_they_are_members() -> None:
    world = cluster()
    world.now = 1_000 * SECOND_US
    assert looked_at(world, "C") == "AB"


def test_who_has_left_is_remembered_for_the_retention_and_no_longer() -> None:
    world = cluster()
    world.now = 100 * SECOND_US
    world.suspect("A", "C")
    world.now = 120 * SECOND_US
    assert looked_at(world, "A") == "BC"
    world.now += 1
    assert looked_at(world, "A") == "B"
    assert address_of("C") not in world.inspect("A").remembered


def test_every_member_remembers_not_only_the_master() -> None:
    world = cluster()
    world.suspect("A", "C")
    world.deliver_all(dead="C")
    assert looked_at(world, "B") == "AC"


def test_the_retention_counts_from_the_leaving_not_from_later_lists() -> None:
    world = cluster("ABCD")
    world.suspect("A", "D")
    world.now = 15 * SECOND_US
    world.suspect("A", "C")
    world.now = 21 * SECOND_US
    assert looked_at(world, "A") == "BC"


def test_a_contact_is_remembered_and_renewed() -> None:
    world = cluster()
    state = state_of(world.machines["A"])
    remember_contact(state, 0, address_of("X"))
    remember_contact(state, 15 * SECOND_US, address_of("X"))
    world.now = 30 * SECOND_US
    assert "X" in looked_at(world, "A")
    world.now = 36 * SECOND_US
    assert "X" not in looked_at(world, "A")


def test_a_contact_with_a_member_does_not_let_it_expire() -> None:
    world = cluster()
    remember_contact(state_of(world.machines["A"]), 0, address_of("B"))
    world.now = 1_000 * SECOND_US
    assert looked_at(world, "A") == "BC"


def test_its_own_address_is_never_remembered_nor_looked_at() -> None:
    world = SteppedCluster(RETENTION)
    world.born("A", "ABA")
    world.settled("AB")
    state = state_of(world.machines["A"])
    remember_contact(state, 0, address_of("A"))
    assert address_of("A") not in state.remembered
    assert looked_at(world, "A") == "B"


def test_a_master_that_names_itself_through_another_member_is_not_asked() -> None:
    """Somebody still takes this master for its own: nothing is sent to one's own address."""
    world = cluster()
    world.receive("A", "X", MasterIs(address_of("A")))
    assert not world.sent
    assert address_of("A") not in world.inspect("A").remembered


def test_a_master_named_to_a_slave_is_remembered_there_too() -> None:
    world = cluster()
    world.receive("B", "X", MasterIs(address_of("Y")))
    assert "Y" in looked_at(world, "B")
    assert not world.sent


def test_retention_zero_remembers_nobody() -> None:
    world = cluster(settings=training_settings(address_retention_us=0))
    world.suspect("A", "C")
    remember_contact(state_of(world.machines["A"]), 0, address_of("X"))
    assert looked_at(world, "A") == ""


def test_the_search_goes_to_remembered_addresses() -> None:
    """Issue 8653: no join list names the others."""
    world = cluster()
    world.suspect("A", "C")
    world.sent.clear()
    world.search("A")
    assert [receiver for _, receiver, message in world.sent if isinstance(message, SplitBrainProbe)] == ["C"]


def test_halves_that_once_were_one_heal_without_any_join_list() -> None:
    world = cluster("ABCDE", settings=training_settings())
    world.live(1)
    world.cut_links("ABC", "DE")
    world.live(8)
    assert world.list_of("D")[1] == "DE"
    world.cut.clear()
    world.live(8)
    assert {world.list_of(name) for name in "ABCDE"} == {world.list_of("A")}
    assert set(world.list_of("A")[1]) == set("ABCDE")


def test_halves_that_have_forgotten_one_another_do_not_heal() -> None:
    world = cluster("ABCDE", settings=training_settings(address_retention_us=5 * SECOND_US))
    world.live(1)
    world.cut_links("ABC", "DE")
    world.live(20)
    world.cut.clear()
    world.live(15)
    assert world.list_of("A")[1] == "ABC" and world.list_of("D")[1] == "DE"


def test_a_join_after_a_merge_may_use_what_the_old_life_knew() -> None:
    world = cluster("ABC")
    world.receive("C", "A", MergeClusters(world.token_of("A"), world.machines["C"].uuid, address_of("X")))
    assert world.messages(JoinRequest, to="X")
    assert looked_at(world, "C") == "AB"
    world.now = 21 * SECOND_US
    assert looked_at(world, "C") == ""


def test_a_joiner_asks_what_it_remembers_too() -> None:
    world = SteppedCluster()
    world.born("A", "B")
    remember_contact(state_of(world.machines["A"]), 0, address_of("X"))
    world.start("A")
    assert sorted(receiver for _, receiver, message in world.sent if isinstance(message, WhoIsMaster)) == ["B", "X"]
