"""Suspicion clearing and link probes (Cluster Service Consistency Improvements, Removing Suspicion; Decisions: Master
confirmation and Readmission)."""

from itertools import pairwise

from quarterdeck.backend.core.membership.events import SuspicionCleared, SuspicionRaised
from quarterdeck.backend.core.membership.messages import (
    ExplicitSuspicion,
    Heartbeat,
    LinkProbe,
    LinkProbeReply,
    LinksReport,
    MembersUpdate,
    ProveLinks,
)
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SETTINGS, SteppedCluster, address_of


def four() -> SteppedCluster:
    return SteppedCluster().settled("ABCD")


def probe_times(world: SteppedCluster, name: str, suspect: str, seconds: int) -> list[int]:
    """When `name` probed `suspect`, in milliseconds, while nobody answers."""
    times = []
    for _ in range(seconds * 10):
        world.pass_seconds(0.1, name)
        times += [world.now // 1000] * len(world.messages(LinkProbe, to=suspect))
        world.sent.clear()
        for other in state_of(world.machines[name]).peers.values():
            other.detector.heard(world.now)
    return times


def test_a_list_from_the_master_clears_its_suspicion_even_if_it_is_no_news_and_no_other() -> None:
    world = four()
    world.suspect("C", "AD")
    members = world.inspect("A").members
    assert members is not None
    world.receive("C", "A", MembersUpdate(members, False))
    assert world.suspects_of("C") == "D"
    (cleared,) = world.seen("C", SuspicionCleared)
    assert cleared.suspect == address_of("A") and "member list" in cleared.reason


def test_a_heartbeat_clears_another_slave() -> None:
    world = four()
    world.suspect("C", "D")
    c, d = world.machines["C"], world.machines["D"]
    world.receive("C", "D", Heartbeat(d.uuid, c.uuid, address_of("A"), 4))
    assert world.suspects_of("C") == ""


def test_two_slaves_that_suspect_one_another_are_reconciled_by_a_probe() -> None:
    """Neither sends the other heartbeats, so only the probe can clear it (Decisions: Readmission)."""
    world = four()
    world.suspect("C", "D")
    world.suspect("D", "C")
    world.live(0.9)
    assert world.suspects_of("C") == "D"
    world.live(0.3)
    assert (world.suspects_of("C"), world.suspects_of("D")) == ("", "")
    assert {world.list_of(name) for name in "ABCD"} == {(4, "ABCD")}


def test_a_probed_member_counts_as_heard_of() -> None:
    world = four()
    world.suspect("C", "D")
    world.now = 5_000_000
    c, d = world.machines["C"], world.machines["D"]
    world.receive("C", "D", LinkProbeReply(d.uuid, c.uuid, True))
    assert state_of(c).peers[address_of("D")].detector.silence_us(world.now) == 0


def test_probes_back_off_to_their_bound() -> None:
    world = four()
    world.suspect("C", "D")
    times = probe_times(world, "C", "D", 22)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert times[0] == 1000
    assert gaps == [2000, 4000, 4000, 4000, 4000]
    assert SETTINGS.probe_backoff_most_us == 4_000_000


def test_probes_stop_when_the_suspect_is_cleared() -> None:
    world = four()
    world.suspect("C", "D")
    world.live(1.5)
    assert world.suspects_of("C") == ""
    assert probe_times(world, "C", "D", 8) == []
    assert not world.machines["C"].timers.is_set("probe")


def test_probes_stop_when_the_suspect_is_off_the_list() -> None:
    world = four()
    world.suspect("C", "D")
    world.suspect("A", "D")
    world.deliver_all(dead="D")
    assert world.list_of("C") == (5, "ABC")
    assert probe_times(world, "C", "D", 8) == []


def test_a_suspect_that_comes_and_goes_is_probed_from_the_shortest_delay_on() -> None:
    world = four()
    world.suspect("C", "D")
    probe_times(world, "C", "D", 8)
    c, d = world.machines["C"], world.machines["D"]
    world.receive("C", "D", Heartbeat(d.uuid, c.uuid, address_of("A"), 4))
    world.suspect("C", "D")
    begun = world.now // 1000
    assert probe_times(world, "C", "D", 2)[0] - begun == 1000


def test_a_member_older_than_the_accepted_master_is_neither_probed_nor_cleared_by_a_reply() -> None:
    world = four()
    world.suspect("D", "A")
    world.suspect("B", "A")
    world.deliver_all(dead="AC")
    assert world.master_of("D") == "B" and world.suspects_of("D") == "A"
    assert probe_times(world, "D", "A", 6) == []
    d, a = world.machines["D"], world.machines["A"]
    world.receive("D", "A", LinkProbeReply(a.uuid, d.uuid, True))
    assert world.suspects_of("D") == "A"


def test_whoever_asked_to_be_suspected_is_not_cleared_by_its_probe_reply() -> None:
    """B has removed D from its list and says so; that it still answers is no reason to follow it."""
    world = four()
    world.suspect("B", "A")
    world.suspect("C", "A")
    world.loses = lambda sender, receiver, message: "D" in (sender, receiver)
    for _ in range(20):
        world.pass_seconds(0.5, "B", "C")
        world.deliver_all(dead="A")
    assert world.list_of("B") == (5, "BC")
    world.loses = lambda *_: False
    world.receive("D", "B", ExplicitSuspicion(world.inspect("D").metadata()))
    assert world.suspects_of("D") == "B"
    world.receive("B", "D", LinkProbe(world.machines["D"].uuid, world.machines["B"].uuid))
    (reply,) = world.messages(LinkProbeReply, to="D")
    assert not reply.knows_you
    world.deliver(LinkProbeReply, to="D")
    assert world.suspects_of("D") == "B"


def test_a_probe_for_an_earlier_life_is_not_answered() -> None:
    world = four()
    world.receive("B", "C", LinkProbe(world.machines["C"].uuid, "an earlier life"))
    assert not world.sent


def test_a_reply_to_an_earlier_life_or_of_another_one_clears_nothing() -> None:
    world = four()
    world.suspect("C", "D")
    c, d = world.machines["C"], world.machines["D"]
    world.receive("C", "D", LinkProbeReply(d.uuid, "an earlier life", True))
    world.receive("C", "D", LinkProbeReply("another life", c.uuid, True))
    assert world.suspects_of("C") == "D"


def test_somebody_who_has_not_joined_replies_too() -> None:
    world = SteppedCluster()
    joiner = world.born("A", "B")
    world.start("A")
    world.sent.clear()
    world.receive("A", "B", LinkProbe("uuid-b", joiner.uuid))
    assert world.messages(LinkProbeReply, to="B") == [LinkProbeReply(joiner.uuid, "uuid-b", False)]


# The proof of all links to another cluster


def test_a_proof_is_reported_as_soon_as_all_have_replied() -> None:
    world = four()
    world.settled("XY")
    targets = tuple((address_of(name), world.machines[name].uuid) for name in "XY")
    token = world.token_of("A")
    world.receive("B", "A", ProveLinks(token, targets))
    world.deliver(LinkProbe)
    world.deliver(LinkProbeReply)
    assert world.messages(LinksReport, to="A") == [LinksReport(token, ())]


def test_a_proof_is_reported_after_a_second_with_those_who_are_missing() -> None:
    world = four()
    world.settled("XY")
    targets = tuple((address_of(name), world.machines[name].uuid) for name in "XY")
    token = world.token_of("A")
    world.receive("B", "A", ProveLinks(token, targets))
    world.deliver(LinkProbe, to="X")
    world.deliver(LinkProbeReply)
    world.pass_seconds(0.5, "B")
    assert len(world.messages(LinkProbe, to="Y")) == 2, "a probe that may be lost is sent again"
    world.pass_seconds(0.5, "B")
    assert world.messages(LinksReport, to="A") == [LinksReport(token, (address_of("Y"),))]


def test_another_life_at_the_address_proves_nothing() -> None:
    world = four()
    token = world.token_of("A")
    world.receive("B", "A", ProveLinks(token, ((address_of("X"), "the incarnation that was shown"),)))
    world.receive("B", "X", LinkProbeReply("another life", world.machines["B"].uuid, False))
    world.pass_seconds(1, "B")
    assert world.messages(LinksReport, to="A") == [LinksReport(token, (address_of("X"),))]


def test_only_the_master_may_ask_for_a_proof() -> None:
    world = four()
    world.receive("B", "C", ProveLinks(world.token_of("C"), ((address_of("X"), "x"),)))
    assert not world.sent


def test_a_probe_makes_nobody_suspected() -> None:
    world = four()
    world.suspect("C", "D")
    probe_times(world, "C", "D", 6)
    assert len(world.seen("C", SuspicionRaised)) == 1
