"""Who forms a cluster when nobody names a master (chapter `joining`; Decisions: Members that everybody refuses and Who may found
a cluster)."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.causes import UnreachableCause
from quarterdeck.backend.core.inputs import PeerUnreachable
from quarterdeck.backend.core.membership.events import AddressUnusable, JoinFailed, ListInstalled, NotMerging
from quarterdeck.backend.core.membership.messages import WhoIsMaster
from tests.core.stepped_cluster import SETTINGS, SteppedCluster, address_of

REASONS: dict[UnreachableCause, str] = {
    "no-answer": "connection refused",
    "unresolvable": "the name of the host does not resolve",
    "other-cluster": "it refuses this member, which belongs to the cluster 'prod', not 'dev'",
    "rejected": "it refuses this member, which does not know the secret of the cluster",
    "rejected-by-cluster": "it refuses this member, which does not know the secret of the cluster",
    "no-member": "no member answers there: it announced a frame of 1213486160 bytes; the limit is 4096",
    "itself": "it refuses this member, which claims to be itself",
}


def joiner(join_list: str, **answers: UnreachableCause) -> SteppedCluster:
    """X looks for a cluster, and nobody it asks is reached, for the reasons given; who has none keeps silent."""
    world = SteppedCluster()
    world.born("X", join_list)
    world.start("X")
    answer(world, **answers)
    return world


def answer(world: SteppedCluster, **answers: UnreachableCause) -> None:
    for name, cause in answers.items():
        world.tell("X", PeerUnreachable(address_of(name), REASONS[cause], cause))


def live(world: SteppedCluster, seconds: int, **answers: UnreachableCause) -> None:
    for _ in range(seconds):
        if "X" not in world.halted:
            world.pass_seconds(1)
            answer(world, **answers)


@pytest.mark.parametrize("cause", ["no-answer", "rejected"])
def test_who_is_not_named_itself_gives_up_after_five_attempts(cause: UnreachableCause) -> None:
    world = joiner("AB", A=cause, B=cause)
    live(world, SETTINGS.max_join_us // 1_000_000 + 2, A=cause, B=cause)
    (failed,) = world.seen("X", JoinFailed)
    assert set(failed.reasons.values()) == {REASONS[cause]}
    assert world.halted["X"].failed and "5 attempts within 60 s" in world.halted["X"].reason
    assert not world.seen("X", ListInstalled)
    assert SETTINGS.max_join_us <= world.now <= SETTINGS.max_join_us + 1_500_000


def test_also_when_nobody_says_anything() -> None:
    world = joiner("AB")
    live(world, SETTINGS.max_join_us // 1_000_000 + 2)
    (failed,) = world.seen("X", JoinFailed)
    assert set(failed.reasons.values()) == {"no answer within 9 s"}


def test_meanwhile_it_asks_again_every_second() -> None:
    world = joiner("A", A="no-answer")
    world.sent.clear()
    live(world, 10, A="no-answer")
    assert len(world.messages(WhoIsMaster, to="A")) >= 9


@pytest.mark.parametrize("cause", ["no-answer", "unresolvable", "other-cluster"])
def test_who_is_named_itself_forms_the_cluster(cause: UnreachableCause) -> None:
    assert joiner("AX", A=cause).list_of("X") == (1, "X")


def test_its_own_address_under_another_name_is_itself() -> None:
    assert joiner("AB", A="itself", B="no-answer").list_of("X") == (1, "X")


def test_hosts_that_do_not_resolve_are_not_named() -> None:
    assert joiner("AB", A="unresolvable", B="unresolvable").list_of("X") == (1, "X")
    assert not joiner("AB", A="unresolvable", B="no-answer").machines["X"].joined


def test_who_meets_only_another_cluster_forms_its_own_at_once() -> None:
    """Two clusters may live on one set of hosts."""
    assert joiner("AB", A="other-cluster", B="other-cluster").list_of("X") == (1, "X")
    assert joiner("AB", A="other-cluster", B="unresolvable").list_of("X") == (1, "X")
    assert not joiner("AB", A="other-cluster", B="no-answer").machines["X"].joined


def test_whom_everybody_refuses_forms_none_though_it_is_named() -> None:
    world = joiner("AXB", A="rejected", B="rejected")
    live(world, 70, A="rejected", B="rejected")
    assert not world.seen("X", ListInstalled)
    assert world.seen("X", JoinFailed)[0].reasons == dict.fromkeys(map(address_of, "AB"), REASONS["rejected"])


def test_one_that_refuses_is_enough_when_the_rest_is_silent() -> None:
    world = joiner("AXB", A="rejected", B="no-answer")
    live(world, 70, A="rejected", B="no-answer")
    assert not world.seen("X", ListInstalled) and world.seen("X", JoinFailed)


def test_a_refusal_is_not_forgotten_when_the_one_who_refused_hangs_up_unheard() -> None:
    world = joiner("AXB", A="rejected", B="no-answer")
    live(world, 70, A="no-member", B="no-answer")
    assert not world.seen("X", ListInstalled)
    assert [event.cause for event in world.seen("X", AddressUnusable)] == ["rejected"]


def test_whom_a_cluster_refuses_founds_none_with_others_whom_it_refuses() -> None:
    world = SteppedCluster().starting(X="AXY", Y="AXY")
    for _ in range(70):
        for name in "XY":
            if name not in world.halted:
                world.tell(
                    name, PeerUnreachable(address_of("A"), REASONS["rejected-by-cluster"], "rejected-by-cluster")
                )
        world.live(1)
    for name in "XY":
        assert not world.seen(name, ListInstalled) and world.seen(name, JoinFailed)


def test_members_found_a_cluster_although_one_that_is_in_none_refuses_them() -> None:
    """Where all start at once, one with a wrong secret keeps nobody from founding."""
    world = SteppedCluster().starting(X="AXY", Y="AXY")
    for _ in range(30):
        for name in "XY":
            world.tell(name, PeerUnreachable(address_of("A"), REASONS["rejected"], "rejected"))
        world.live(1)
    assert world.list_of("X") == world.list_of("Y") == (2, "XY")


def test_it_is_forgotten_when_nobody_is_there_any_more() -> None:
    world = joiner("AX", A="rejected")
    live(world, 15, A="no-answer")
    assert world.list_of("X") == (1, "X")


def test_who_is_no_member_keeps_nobody_from_founding() -> None:
    assert joiner("AXB", A="no-member", B="no-answer").list_of("X") == (1, "X")


def test_two_that_name_only_each_other_agree_to_form_a_cluster() -> None:
    world = SteppedCluster().starting(A="B", B="A")
    world.live(4)
    assert world.list_of("A") == world.list_of("B") == (2, "AB")


def test_each_address_of_no_use_is_told_once_by_name() -> None:
    world = joiner("ABC", A="unresolvable", B="other-cluster", C="no-answer")
    live(world, 20, A="unresolvable", B="other-cluster", C="no-answer")
    told = [(event.address, event.cause) for event in world.seen("X", AddressUnusable)]
    assert told == [(address_of("A"), "unresolvable"), (address_of("B"), "other-cluster")]
    live(world, 2, A="no-answer")
    live(world, 2, A="unresolvable")
    assert len(world.seen("X", AddressUnusable)) == 3


def test_a_master_that_finds_nobody_says_what_is_wrong_with_the_addresses() -> None:
    world = joiner("AX", A="unresolvable")
    for _ in range(2):
        world.search("X")
    why = world.seen("X", NotMerging)[-1].reason
    assert why == f"nobody answers at {address_of('A')} ({REASONS['unresolvable']})"
