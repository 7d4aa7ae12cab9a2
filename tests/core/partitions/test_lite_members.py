"""Promotion of lite members and demotion of data members (the product's PromoteLiteMemberTest and DemoteDataMemberTest)."""

import pytest

from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CommandRefused,
    DemoteMember,
    PromoteMember,
    StopMember,
)
from quarterdeck.backend.core.membership.events import LiteChangeRefused, MemberStarted
from quarterdeck.backend.core.membership.messages import StateLockAnswer
from quarterdeck.backend.core.partitions.events import DrainFinished, DrainStarted
from quarterdeck.backend.core.partitions.messages import LiteChangeRefusal, LiteChangeRequest, MigrationChunk
from tests.core.member_state import state_of
from tests.core.stepped_partitions import SteppedPartitions


def cluster(
    names: str = "ABCD", lite: str = "", partitions: int = 8, backups: int = 1, **changed: int
) -> SteppedPartitions:
    world = SteppedPartitions(partitions, backups, **changed)
    for name in lite:
        world.born(name, lite=True)
    world.arranged(names)
    for name in names:
        world.events[name].clear()
    return world


def lite_of(world: SteppedPartitions, name: str) -> str:
    """The lite members on the list of a member."""
    members = world.inspect(name).members
    assert members is not None
    lite = {member.address for member in members.members if member.lite}
    return "".join(name for name, machine in world.machines.items() if machine.address in lite)


def holders(world: SteppedPartitions, name: str = "A") -> set[str]:
    return {holder for row in world.rows(name) for holder in row}


@pytest.mark.parametrize("lite", "AC")
def test_a_promoted_member_is_on_its_place_of_every_list_and_holds_data(lite: str) -> None:
    world = cluster(lite=lite)
    assert lite not in holders(world)
    world.tell(lite, PromoteMember(lite))
    world.run(6)
    assert {lite_of(world, name) for name in "ABCD"} == {""}
    assert world.list_of("B") == (5, "ABCD") and not world.inspect(lite).lite
    assert lite in holders(world) and not world.complaints()


@pytest.mark.parametrize("demoted", "ABD")
def test_a_demoted_member_holds_nothing_and_stays_at_its_age(demoted: str) -> None:
    world = cluster()
    world.tell(demoted, DemoteMember(demoted))
    world.run(8)
    assert {lite_of(world, name) for name in "ABCD"} == {demoted}
    assert world.list_of("C") == (5, "ABCD") and world.inspect(demoted).lite
    assert demoted not in holders(world) and world.ghosts[demoted].held == {}
    assert not world.complaints() and not world.seen("A", DrainStarted)
    assert world.inspect(demoted).partitions.lite_change is None


def test_all_but_one_are_demoted_and_each_is_promoted_again() -> None:
    world = cluster(backups=2)
    for name in "DAB":
        world.tell(name, DemoteMember(name))
    world.run(12)
    assert lite_of(world, "C") == "ABD" and holders(world) == {"C", "-"} and not world.complaints()
    for name in "ABD":
        world.tell(name, PromoteMember(name))
    world.run(12)
    assert holders(world) == {"A", "B", "C", "D"} and not world.complaints()


def test_without_backups_nothing_is_lost_however_slow_the_migrations_are() -> None:
    world = cluster(backups=0, migration_interval_us=2_000_000)
    world.tell("C", DemoteMember("C"))
    world.run(1.5)
    assert lite_of(world, "A") == ""
    world.run(20)
    assert lite_of(world, "A") == "C" and "C" not in holders(world) and not world.complaints()


def test_the_last_data_member_is_not_demoted_even_when_it_is_the_master() -> None:
    world = cluster("AB", lite="B")
    world.tell("A", DemoteMember("A"))
    assert [event.cause for event in world.seen("A", LiteChangeRefused)] == ["last-data-member"]
    world.run(5)
    assert lite_of(world, "A") == "B" and holders(world) == {"A", "-"} and not world.complaints()


def test_two_that_are_left_are_not_both_demoted() -> None:
    world = cluster("AB")
    for name in "AB":
        world.tell(name, DemoteMember(name))
    world.run(6)
    assert lite_of(world, "A") == "A" and [event.cause for event in world.seen("B", LiteChangeRefused)] == [
        "last-data-member"
    ]


def test_what_is_so_already_is_refused_at_once_and_so_is_one_that_has_not_joined() -> None:
    world = cluster("AB", lite="B")
    with pytest.raises(CommandRefused, match="A holds data already"):
        world.tell("A", PromoteMember("A"))
    with pytest.raises(CommandRefused, match="B is a lite member already"):
        world.tell("B", DemoteMember("B"))
    world.born("C", "AB", lite=True)
    world.start("C")
    with pytest.raises(CommandRefused, match="C has not joined a cluster"):
        world.tell("C", PromoteMember("C"))


def test_a_master_does_nothing_for_one_that_is_so_already_or_that_it_does_not_list() -> None:
    world = cluster("ABC", lite="B")
    for uuid, lite in ((world.machines["B"].uuid, True), ("an incarnation before", False)):
        world.receive("A", "B", LiteChangeRequest(uuid, lite))
    assert world.list_of("A") == (3, "ABC") and not world.messages(LiteChangeRefusal)
    world.receive("C", "B", LiteChangeRequest(world.machines["B"].uuid, False))
    assert world.list_of("C") == (3, "ABC") and lite_of(world, "C") == "B"


@pytest.mark.parametrize("state", ["NO_MIGRATION", "FROZEN", "PASSIVE"])
def test_no_data_is_moved_in_a_state_without_migrations(state: ClusterState) -> None:
    world = cluster("ABC", lite="C")
    world.change_state("A", state)
    world.run(2)
    world.tell("C", PromoteMember("C"))
    world.tell("B", DemoteMember("B"))
    world.run(2)
    for name in "BC":
        assert [event.cause for event in world.seen(name, LiteChangeRefused)] == ["cluster-state"]
    assert lite_of(world, "A") == "C" and not world.master_role("A").leaving


def test_without_a_table_a_member_is_demoted_at_once_and_gets_none_of_it_later() -> None:
    world = SteppedPartitions(8, 1).settled("ABC")
    world.with_fake_service("ABC")
    world.tell("B", DemoteMember("B"))
    world.run(2)
    assert lite_of(world, "A") == "B"
    world.tell("A", ArrangePartitions("A"))
    world.run(3)
    assert "B" not in holders(world) and not world.complaints(losses=False)


def test_lost_requests_and_lists_are_sent_again() -> None:
    world = cluster(lite="C")
    lost: list[str] = []

    def first_two(sender: str, receiver: str, message: object) -> bool:
        of_this = type(message).__name__ in ("LiteChangeRequest", "MembersUpdate")
        if of_this and lost.count(type(message).__name__) < 2:
            lost.append(type(message).__name__)
            return True
        return False

    world.loses = first_two
    world.tell("C", PromoteMember("C"))
    world.run(10)
    assert len(lost) == 4 and "C" in holders(world) and not world.complaints()


def test_a_member_that_claims_the_mastership_changes_nothing_and_the_next_master_does() -> None:
    world = cluster(lite="C")
    world.loses = lambda sender, receiver, message: isinstance(message, LiteChangeRequest) and receiver == "A"
    world.tell("C", PromoteMember("C"))
    world.run(2)
    world.kill("A")
    world.run(15)
    assert world.master_of("C") == "B" and "C" in holders(world, "B") and not world.complaints()


def test_asked_for_the_opposite_it_stays_what_it_is() -> None:
    world = cluster(parallel_migrations=1, migration_interval_us=3_000_000)
    world.tell("C", DemoteMember("C"))
    world.run(1)
    assert world.machines["C"].uuid in world.master_role("A").leaving
    world.tell("C", PromoteMember("C"))
    world.run(1)
    assert not world.master_role("A").leaving and not world.master_role("A").demoting, (
        "at once, not when it is forgotten"
    )
    world.run(14)
    assert [event.cause for event in world.seen("C", LiteChangeRefused)] == ["withdrawn"]
    assert lite_of(world, "A") == "" and not world.complaints()


def test_a_demotion_that_is_not_done_in_time_is_given_up_for_good() -> None:
    world = cluster(migration_interval_us=4_000_000, lite_change_us=2_000_000)
    world.tell("C", DemoteMember("C"))
    world.run(4)
    assert [event.cause for event in world.seen("C", LiteChangeRefused)] == ["not-in-time"]
    world.run(60)
    assert lite_of(world, "A") == "" and "C" in holders(world) and not world.complaints()


def test_a_demotion_that_is_not_asked_for_any_more_is_forgotten() -> None:
    world = cluster(migration_interval_us=1_000_000)
    world.tell("C", DemoteMember("C"))
    world.run(1)
    uuid = world.machines["C"].uuid
    world.receive("C", "A", LiteChangeRefusal(uuid, True, "that was before", "cluster-state"))
    world.run(3)
    assert uuid in world.master_role("A").leaving
    world.run(30)
    assert not world.master_role("A").leaving and not world.master_role("A").demoting
    assert lite_of(world, "A") == "" and "C" in holders(world) and not world.complaints()


def test_one_that_is_to_be_demoted_may_stop_all_the_same() -> None:
    world = cluster(migration_interval_us=1_000_000)
    world.tell("C", DemoteMember("C"))
    world.run(1)
    world.tell("C", StopMember("C"))
    while "C" in world.living:
        assert world.step() or world.skip(world.now + 30_000_000)
    assert [event.cause for event in world.seen("A", DrainFinished)] == ["nothing-left"]
    world.run(4)
    assert not world.complaints() and not world.master_role("A").demoting


def test_a_member_that_merges_stays_what_it_has_become_and_goes_on_asking() -> None:
    world = cluster("AB", lite="B")
    world.tell("B", PromoteMember("B"))
    world.run(3)
    state = state_of(world.machines["B"])
    world.loses = lambda sender, receiver, message: isinstance(message, LiteChangeRequest)
    world.tell("B", DemoteMember("B"))
    state.context.departing_for = world.machines["A"].address
    world.conclude("B")
    assert [event.lite for event in world.seen("B", MemberStarted)] == [False]
    assert state.partitions.lite_change is not None and state.partitions.lite_change.lite
    world.loses = lambda sender, receiver, message: False
    world.run(15)
    assert lite_of(world, "A") == "B" and world.inspect("B").lite


def test_a_member_that_holds_nothing_is_not_demoted_while_what_was_planned_without_it_is_under_way() -> None:
    world = SteppedPartitions(2, 0).with_table("ABC", "A", "A")
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk)
    world.tell("C", DemoteMember("C"))
    world.run(3)
    assert world.master_role("A").running and lite_of(world, "A") == ""
    world.loses = lambda sender, receiver, message: False
    world.run(8)
    assert lite_of(world, "A") == "C"


def test_no_member_is_promoted_while_the_state_of_the_cluster_changes() -> None:
    world = cluster(lite="D")
    world.loses = lambda sender, receiver, message: isinstance(message, StateLockAnswer)
    world.change_state("A", "NO_MIGRATION")
    world.tell("D", PromoteMember("D"))
    world.run(1.5)
    assert world.inspect("A").state_change is not None and lite_of(world, "A") == "D"


@pytest.mark.parametrize("lite", "AB")
def test_the_last_data_member_that_stops_waits_for_a_promotion_that_runs(lite: str) -> None:
    world = SteppedPartitions(4, 0)
    world.born(lite, lite=True)
    world.arranged("AB")
    stops = "B" if lite == "A" else "A"
    world.tell(lite, PromoteMember(lite))
    world.tell(stops, StopMember(stops))
    world.run(8)
    assert world.list_of(lite)[1] == lite and not world.complaints(losses=True)
