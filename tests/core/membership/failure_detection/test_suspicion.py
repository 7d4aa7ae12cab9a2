"""Heartbeats, suspicion, explicit suspicion and removal."""

import pytest

from quarterdeck.backend.core.commands import StopMember
from quarterdeck.backend.core.inputs import TICK
from quarterdeck.backend.core.membership.events import ExplicitSuspicionReceived, MemberRemoved, ObserverPaused
from quarterdeck.backend.core.membership.messages import (
    ExplicitSuspicion,
    Heartbeat,
    HeartbeatComplaint,
    MembersUpdate,
    TriggerExplicitSuspicion,
)
from quarterdeck.backend.core.membership.views.identity import ListMetadata
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SteppedCluster, address_of


def five() -> SteppedCluster:
    return SteppedCluster().with_lists(**dict.fromkeys("ABCDE", (5, "ABCDE")))


def live_for(world: SteppedCluster, seconds: int, dead: str = "") -> None:
    for _ in range(seconds * 2):
        world.pass_seconds(0.5, *(name for name in world.machines if name not in dead))
        world.deliver_all(dead=dead)


def beat(world: SteppedCluster, sender: str, receiver: str, **changes: object) -> Heartbeat:
    state = state_of(world.machines[sender])
    return Heartbeat(
        str(changes.get("uuid", state.uuid)),
        str(changes.get("to_uuid", world.machines[receiver].uuid)),
        state.master or address_of("A"),
        int(str(changes.get("version", state.members.version if state.members else 0))),
    )


def test_a_silent_slave_is_removed_by_the_master_and_only_suspected_by_slaves() -> None:
    world = five()
    live_for(world, 1)
    live_for(world, 8, dead="E")
    assert {world.list_of(name) for name in "ABCD"} == {(6, "ABCD")}
    assert world.seen("A", MemberRemoved)
    assert not any(world.seen(name, MemberRemoved) for name in "BCD")
    assert all(world.suspects_of(name) == "" for name in "BCD")


def test_a_newcomer_of_which_nothing_was_ever_heard_is_given_the_time_of_its_admission_on_top() -> None:
    world = five()
    live_for(world, 10, dead="E")  # 2 s for the acknowledgements, one timeout for the news, one interval, one timeout
    assert {world.list_of(name) for name in "ABCD"} == {(5, "ABCDE")}
    live_for(world, 2, dead="E")
    assert {world.list_of(name) for name in "ABCD"} == {(6, "ABCD")}


def test_a_quiet_network_changes_nothing() -> None:
    world = five()
    live_for(world, 30)
    assert {world.list_of(name) for name in "ABCDE"} == {(5, "ABCDE")}


def test_suspects_get_no_heartbeat_and_only_the_master_hears_of_them() -> None:
    world = five()
    world.suspect("C", "DE")
    world.pass_seconds(1, "C")
    beats = {receiver: message for sender, receiver, message in world.sent if isinstance(message, Heartbeat)}
    assert set(beats) == {"A", "B"}
    assert beats["A"].suspects == (address_of("D"), address_of("E"))
    assert beats["B"].suspects == ()


def test_a_valid_heartbeat_clears_a_suspicion() -> None:
    world = five()
    world.suspect("C", "DA")
    world.receive("C", "D", beat(world, "D", "C"))
    assert world.suspects_of("C") == "A"
    world.receive("C", "A", beat(world, "A", "C"))
    assert world.suspects_of("C") == ""


def test_a_member_older_than_the_accepted_master_stays_suspected() -> None:
    world = five()
    world.suspect("E", "A")
    world.suspect("B", "A")
    world.deliver_all(dead="ACD")
    assert world.master_of("E") == "B"
    world.receive("E", "A", beat(world, "A", "E"))
    assert world.suspects_of("E") == "A"


def test_a_lagging_member_gets_the_list_again() -> None:
    world = five()
    world.receive("A", "D", beat(world, "D", "A", version=3))
    (update,) = world.messages(MembersUpdate, to="D")
    assert update.members.version == 5


def test_a_heartbeat_of_another_life_is_no_sign_of_life() -> None:
    world = five()
    heard = state_of(world.machines["A"]).peers[address_of("D")].detector.last_heard_us
    world.now = 1_000
    world.receive("A", "D", beat(world, "D", "A", uuid="another life"))
    assert state_of(world.machines["A"]).peers[address_of("D")].detector.last_heard_us == heard
    assert world.messages(ExplicitSuspicion, to="D")


def test_an_observer_that_stood_still_accuses_nobody() -> None:
    world = five()
    live_for(world, 2)
    world.now += 60_000_000
    world.tell("A", TICK)
    assert world.seen("A", ObserverPaused)
    assert world.list_of("A") == (5, "ABCDE")


def test_a_slave_complains_of_a_stranger_and_the_master_sends_the_stranger_away() -> None:
    world = five()
    world.with_lists(A=(6, "ABCD"), B=(6, "ABCD"), C=(6, "ABCD"), D=(6, "ABCD"), E=(5, "ABCDE"))
    world.receive("B", "E", beat(world, "E", "B"))
    assert world.messages(HeartbeatComplaint, to="A")
    world.deliver_all()
    assert world.suspects_of("E") == "AB"


def test_the_verdict_on_a_complainer_that_follows_somebody_else() -> None:
    world = five()
    judge = world.machines["A"]
    stray = ListMetadata(address_of("C"), world.machines["C"].uuid, address_of("B"), 9)
    good = ListMetadata(address_of("D"), world.machines["D"].uuid, address_of("A"), 5)
    world.receive("A", "C", HeartbeatComplaint(stray, good))
    assert world.messages(ExplicitSuspicion, to="C") == [ExplicitSuspicion(stray)]
    assert world.messages(TriggerExplicitSuspicion, to="D") == [TriggerExplicitSuspicion(5, stray)]
    assert judge.inspect().members is not None


def test_a_complaint_between_two_good_members_only_repeats_the_list() -> None:
    world = five()
    parties = [ListMetadata(address_of(n), world.machines[n].uuid, address_of("A"), 5) for n in "CD"]
    world.receive("A", "C", HeartbeatComplaint(*parties))
    assert [receiver for _, receiver, _ in world.sent] == ["C", "D"]
    assert not world.messages(ExplicitSuspicion)


def test_an_explicit_suspicion_counts_only_while_every_field_still_matches() -> None:
    world = five()
    now = world.inspect("C").metadata()
    for changed in (
        ListMetadata(address_of("D"), now.uuid, now.master, now.version),
        ListMetadata(now.address, "another life", now.master, now.version),
        ListMetadata(now.address, now.uuid, address_of("B"), now.version),
        ListMetadata(now.address, now.uuid, now.master, now.version - 1),
    ):
        world.receive("C", "E", ExplicitSuspicion(changed))
        assert world.suspects_of("C") == ""
    world.receive("C", "E", ExplicitSuspicion(now))
    assert world.suspects_of("C") == "E"
    assert [event.heeded for event in world.seen("C", ExplicitSuspicionReceived)] == [False] * 4 + [True]


def test_a_list_from_a_member_that_is_not_the_master_is_rejected_and_answered() -> None:
    world = five()
    usurped = state_of(world.machines["B"])
    assert usurped.members is not None
    world.receive("C", "B", MembersUpdate(usurped.members.without({address_of("A")}), False))
    assert world.list_of("C") == (5, "ABCDE")
    assert world.messages(ExplicitSuspicion, to="B")


def test_a_list_without_the_receiver_is_never_installed() -> None:
    world = five()
    members = world.inspect("A").members
    assert members is not None
    world.receive("C", "A", MembersUpdate(members.without({address_of("C")}), False))
    assert world.list_of("C") == (5, "ABCDE")


def test_an_older_or_equal_list_is_never_installed() -> None:
    """Cluster Service Consistency Improvements, Background: a late periodic publication must not bring a removed member back."""
    world = five()
    stale = world.inspect("A").members
    assert stale is not None
    world.suspect("A", "B")
    world.deliver_all(dead="B")
    world.receive("C", "A", MembersUpdate(stale, False))
    assert world.list_of("C") == (6, "ACDE")


def test_a_graceful_stop_needs_no_timeout() -> None:
    world = five()
    world.tell("E", StopMember("E"))
    world.deliver_all()
    assert {world.list_of(name) for name in "ABCD"} == {(6, "ABCD")}
    world.tell("A", StopMember("A"))
    world.deliver_all()
    assert {world.list_of(name) for name in "BCD"} == {(7, "BCD")}


@pytest.mark.parametrize(("version", "separates"), [(4, False), (5, True), (6, False)])
def test_a_trigger_is_obeyed_only_while_both_stand_at_the_same_list(version: int, separates: bool) -> None:
    world = five()
    stray = ListMetadata(address_of("C"), world.machines["C"].uuid, address_of("B"), 9)
    world.receive("D", "A", TriggerExplicitSuspicion(version, stray))
    assert bool(world.messages(ExplicitSuspicion, to="C")) == separates
