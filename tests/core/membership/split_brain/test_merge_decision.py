from __future__ import annotations

from itertools import combinations
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.address import Address, make_address
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES, ClusterProfile, ProfiledMember
from quarterdeck.backend.core.membership.split_brain.merge_decision import (
    RULES,
    MergeDirection,
    decide_merge,
    passed_before,
)

MIRROR: dict[MergeDirection, MergeDirection] = {
    "local-merges": "remote-merges",
    "remote-merges": "local-merges",
    "cannot-merge": "cannot-merge",
}


def profile(*members: str, lite: str = "", **others: Any) -> ClusterProfile:
    """A cluster of `members`, the first its master. Members named in `lite` hold no data."""
    listed = tuple(ProfiledMember(Address(member), f"uuid-{member}", member in lite.split()) for member in members)
    whole = ClusterProfile(
        address=listed[0].address,
        uuid=listed[0].uuid,
        cluster_name="dev",
        state="ACTIVE",
        members=listed,
        list_version=len(listed),
        data_member_count=sum(not member.lite for member in listed),
    )
    return msgspec.structs.replace(whole, **others)


LOCAL = profile("a:1", "b:1")
REMOTE = profile("c:1", "d:1")

TABLE: list[tuple[ClusterProfile, ClusterProfile | None, MergeDirection, str, str]] = [
    (LOCAL, None, "cannot-merge", "no-answer", "no member answered a:1"),
    (
        LOCAL,
        profile("c:1", cluster_name="prod"),
        "cannot-merge",
        "cluster-name",
        "'dev' at a:1, 'prod' at c:1",
    ),
    (LOCAL, profile("c:1", joiner="multicast"), "cannot-merge", "joiner", "'tcp-ip' at a:1, 'multicast' at c:1"),
    (LOCAL, profile("c:1", partition_groups="zone"), "cannot-merge", "partition-groups", "none at a:1, 'zone' at c:1"),
    (LOCAL, profile("c:1", partition_count="271"), "cannot-merge", "partition-count", "none at a:1, '271' at c:1"),
    (LOCAL, profile("c:1", cluster_version="1.1"), "cannot-merge", "cluster-version", "'1.0' at a:1, '1.1' at c:1"),
    (
        LOCAL,
        profile("b:1", "c:1"),
        "cannot-merge",
        "remote-is-my-member",
        "b:1 is still a member of the cluster of a:1",
    ),
    (LOCAL, profile("a:1", "c:1"), "cannot-merge", "remote-is-my-member", "a:1 met a master at its own address"),
    (profile("a:1", state="FROZEN"), REMOTE, "cannot-merge", "local-state", "the cluster of a:1 is FROZEN"),
    (LOCAL, profile("c:1", state="PASSIVE"), "cannot-merge", "remote-state", "the cluster of c:1 is PASSIVE"),
    (LOCAL, profile("c:1", "a:1"), "cannot-merge", "i-am-its-member", "c:1 thinks that a:1 is a member"),
    (LOCAL, profile("c:1", "b:1", "d:1"), "cannot-merge", "members-intersect", "a:1 and c:1 both list b:1"),
    (LOCAL, profile("c:1", "d:1", "e:1"), "local-merges", "data-members", "a:1 has 2 data members and c:1 has 3"),
    (LOCAL, profile("c:1"), "remote-merges", "data-members", "so c:1 merges into a:1"),
    (LOCAL, profile("c:1", "d:1", "e:1", lite="e:1"), "local-merges", "total-members", "a:1 has 2 members in total"),
    (profile("a:1", "b:1", "e:1", lite="e:1"), REMOTE, "remote-merges", "total-members", "so c:1 merges into a:1"),
    (LOCAL, REMOTE, "remote-merges", "address", "c:1 comes after a:1, so c:1 merges into a:1"),
    (REMOTE, LOCAL, "local-merges", "address", "c:1 comes after a:1, so c:1 merges into a:1"),
]


@pytest.mark.parametrize(("local", "remote", "outcome", "rule", "why"), TABLE)
def test_each_rule_decides_and_says_why(
    local: ClusterProfile, remote: ClusterProfile | None, outcome: MergeDirection, rule: str, why: str
) -> None:
    decision = decide_merge(local, remote)
    assert (decision.decision, decision.rule) == (outcome, rule)
    assert why in decision.why
    assert "\n" not in decision.why


def test_the_table_holds_every_rule_in_order() -> None:
    in_table = list(dict.fromkeys(rule for _, _, _, rule, _ in TABLE))
    assert in_table == ["no-answer", *(rule.name for rule in RULES)]


FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cluster-name": ({}, {"cluster_name": "prod"}),
    "joiner": ({}, {"joiner": "multicast"}),
    "partition-groups": ({}, {"partition_groups": "zone"}),
    "partition-count": ({}, {"partition_count": "271"}),
    "cluster-version": ({}, {"cluster_version": "1.1"}),
    "remote-is-my-member": ({"members": profile("a:1", "c:1").members}, {}),
    "local-state": ({"state": "FROZEN"}, {}),
    "remote-state": ({}, {"state": "PASSIVE"}),
    "i-am-its-member": ({}, {"members": profile("c:1", "a:1").members}),
    "data-members": ({}, {"data_member_count": 7}),
}
"""What to change at (local, remote) so that the rule decides, in order. No two change the same field of one side."""


@pytest.mark.parametrize(("first", "second"), list(combinations(FAULTS, 2)))
def test_the_earlier_rule_decides_when_two_could(first: str, second: str) -> None:
    local = msgspec.structs.replace(LOCAL, **FAULTS[first][0], **FAULTS[second][0])
    remote = msgspec.structs.replace(REMOTE, **FAULTS[first][1], **FAULTS[second][1])
    assert decide_merge(local, remote).rule == first


@pytest.mark.parametrize("state", CLUSTER_STATES)
def test_only_states_that_allow_joins_let_merge(state: str) -> None:
    rule = decide_merge(profile("a:1", state=state), REMOTE).rule
    assert (rule == "local-state") == (state in ("FROZEN", "PASSIVE"))


def test_a_given_count_of_data_members_is_not_counted_again() -> None:
    assert decide_merge(profile("a:1", data_member_count=9), REMOTE).decision == "remote-merges"


def test_ports_are_compared_as_numbers() -> None:
    decision = decide_merge(profile("10.0.0.1:5701"), profile("10.0.0.1:15701"))
    assert (decision.decision, decision.rule) == ("remote-merges", "address")


def test_many_common_addresses_are_not_all_written_out() -> None:
    common = [f"h:{port}" for port in range(1, 9)]
    why = decide_merge(profile("a:1", *common), profile("c:1", *common)).why
    assert why == "a:1 and c:1 both list h:1, h:2, h:3, h:4, h:5 and 3 more"


def test_the_rules_passed_are_told_in_order() -> None:
    assert passed_before("no-answer") == ()
    assert [name for name, _ in passed_before("cluster-version")] == [
        "no-answer",
        "cluster-name",
        "joiner",
        "partition-groups",
        "partition-count",
    ]
    assert all(held for _, held in passed_before("address"))


addresses = st.builds(make_address, st.sampled_from(("a", "b", "10.0.0.9", "10.0.0.10", "fe80::1")), st.integers(1, 12))
"""Few, so that clusters overlap often."""


@st.composite
def profiles(draw: st.DrawFn) -> ClusterProfile:
    members = draw(st.lists(addresses, min_size=1, max_size=4, unique=True))
    rarely = st.integers(0, 5).map(lambda number: number == 0)
    return profile(
        *members,
        lite=" ".join(draw(st.sets(st.sampled_from(members)).map(sorted))),
        state=draw(st.sampled_from(("ACTIVE", "ACTIVE", "ACTIVE", *CLUSTER_STATES))),
        cluster_name="prod" if draw(rarely) else "dev",
        partition_count="271" if draw(rarely) else "",
        cluster_version="1.1" if draw(rarely) else "1.0",
        data_member_count=draw(st.integers(0, 3)),
    )


@given(profiles(), profiles())
def test_both_sides_come_to_the_same_outcome(one: ClusterProfile, other: ClusterProfile) -> None:
    here, there = decide_merge(one, other), decide_merge(other, one)
    assert there.decision == MIRROR[here.decision]
    assert here.decision in get_args(MergeDirection)
    if here.decision != "cannot-merge":
        assert here.rule == there.rule
        assert here.why.rpartition("so ")[2] == there.why.rpartition("so ")[2], "both name the same loser"


@given(profiles())
def test_a_cluster_never_merges_into_itself(one: ClusterProfile) -> None:
    assert decide_merge(one, one).decision == "cannot-merge"


disjoint = st.permutations([Address(f"h:{port}") for port in range(1, 13)])


@given(
    disjoint, st.lists(st.integers(0, 3), min_size=3, max_size=3), st.lists(st.integers(1, 4), min_size=3, max_size=3)
)
def test_clusters_that_may_merge_stand_in_one_order(order: list[Address], data: list[int], sizes: list[int]) -> None:
    """No three clusters can each be sent to the next in a circle."""
    a, b, c = (
        profile(*order[4 * place : 4 * place + sizes[place]], data_member_count=data[place]) for place in range(3)
    )
    loses = [decide_merge(x, y).decision == "local-merges" for x, y in ((a, b), (b, c), (c, a))]
    assert len(set(loses)) == 2
