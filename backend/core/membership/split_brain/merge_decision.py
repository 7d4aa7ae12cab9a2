"""Which of two clusters that meet merges into the other.

See Split-brain Recovery Improvements; Hazelcast: merge decision; Decisions: Tie-break of a merge.

A pure function of what the two masters say of their clusters. Both sides come to the same outcome: each rule that forbids
a merge either looks the same from both sides or has its mirror further down, and the last three cannot all be undecided.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.address import Address, numeric_order
from quarterdeck.backend.core.cluster_profile import ClusterProfile, allows_joins

MergeDirection = Literal["local-merges", "remote-merges", "cannot-merge"]

Verdict = tuple[MergeDirection, str] | None
"""What one rule returns: the outcome and why, or None when it does not decide."""

Judge = Callable[[ClusterProfile, ClusterProfile], Verdict]

SHOWN_ADDRESSES = 5
"""A sentence names at most so many addresses."""


class MergeDecision(Struct, frozen=True):
    """The outcome, the name of the rule that decided, and why in one sentence for people."""

    decision: MergeDirection
    rule: str
    why: str


class Rule(Struct, frozen=True):
    """One rule: its name, what holds of two clusters that it does not decide about, and its function.

    `judge` gets local and remote.
    """

    name: str
    passed: str
    judge: Judge


NO_ANSWER = "no-answer"
NO_ANSWER_PASSED = "the other master answered"


def decide_merge(local: ClusterProfile, remote: ClusterProfile | None) -> MergeDecision:
    """Return which cluster merges, seen from `local`. `remote` is None when there was no answer."""
    if remote is None:
        why = f"no member answered {local.address}, so there is no cluster to merge with"
        return MergeDecision("cannot-merge", NO_ANSWER, why)
    for rule in RULES:
        verdict = rule.judge(local, remote)
        if verdict is not None:
            outcome, why = verdict
            return MergeDecision(outcome, rule.name, why)
    raise AssertionError("two masters with different addresses always differ by the last rule")


def passed_before(rule_name: str) -> tuple[tuple[str, str], ...]:
    """Return the rules that let two clusters pass before `rule_name` decided: name and what held, in order."""
    every = ((NO_ANSWER, NO_ANSWER_PASSED), *((rule.name, rule.passed) for rule in RULES))
    names = [name for name, _ in every]
    return every[: names.index(rule_name)]


def _remote_is_my_member(local: ClusterProfile, remote: ClusterProfile) -> Verdict:
    if remote.address not in _addresses(local):
        return None
    if remote.address == local.address:
        return "cannot-merge", f"{local.address} met a master at its own address"
    return "cannot-merge", f"{remote.address} is still a member of the cluster of {local.address}"


def _i_am_its_member(local: ClusterProfile, remote: ClusterProfile) -> Verdict:
    if local.address not in _addresses(remote):
        return None
    return "cannot-merge", f"{remote.address} thinks that {local.address} is a member of its cluster"


def _members_intersect(local: ClusterProfile, remote: ClusterProfile) -> Verdict:
    common = sorted(_addresses(local) & _addresses(remote), key=numeric_order)
    if not common:
        return None
    more = f" and {len(common) - SHOWN_ADDRESSES} more" if len(common) > SHOWN_ADDRESSES else ""
    named = ", ".join(common[:SHOWN_ADDRESSES])
    return "cannot-merge", f"{local.address} and {remote.address} both list {named}{more}"


def _address(local: ClusterProfile, remote: ClusterProfile) -> Verdict:
    """Break the tie by address: the smaller wins (Decisions: Tie-break of a merge).

    Ports are compared as numbers, not as text as the product does.
    """
    first, last = sorted((local.address, remote.address), key=numeric_order)
    why = f"the clusters are of equal size and {last} comes after {first}, so {last} merges into {first}"
    return ("local-merges" if last == local.address else "remote-merges"), why


def _addresses(profile: ClusterProfile) -> set[Address]:
    """Return every address of the cluster; its master's too, should its own list lack it."""
    return {profile.address, *(member.address for member in profile.members)}


def _must_agree(what: str, field: str) -> Judge:
    def judge(local: ClusterProfile, remote: ClusterProfile) -> Verdict:
        here, there = getattr(local, field), getattr(remote, field)
        if here == there:
            return None
        both = f"{_text(here)} at {local.address}, {_text(there)} at {remote.address}"
        return "cannot-merge", f"the {what} differ: {both}"

    return judge


def _text(value: str) -> str:
    return repr(value) if value else "none"


def _must_allow_joins(cluster: ClusterProfile) -> Verdict:
    if allows_joins(cluster.state):
        return None
    if cluster.state == "IN_TRANSITION":
        return "cannot-merge", f"the cluster of {cluster.address} is changing its state and lets no member in for now"
    return "cannot-merge", f"the cluster of {cluster.address} is {cluster.state} and lets no member in"


def _smaller_merges(what: str, size_of: Callable[[ClusterProfile], int]) -> Judge:
    def judge(local: ClusterProfile, remote: ClusterProfile) -> Verdict:
        here, there = size_of(local), size_of(remote)
        if here == there:
            return None
        loser, winner = (local, remote) if here < there else (remote, local)
        members = what if here != 1 else what.replace("members", "member")
        sizes = f"{local.address} has {here} {members} and {remote.address} has {there}"
        why = f"{sizes}, so {loser.address} merges into {winner.address}"
        return ("local-merges" if loser is local else "remote-merges"), why

    return judge


_data_members = _smaller_merges("data members", lambda profile: profile.data_member_count)
_total_members = _smaller_merges("members in total", lambda profile: len(profile.members))

RULES: tuple[Rule, ...] = (
    Rule("cluster-name", "both clusters have the same name", _must_agree("cluster names", "cluster_name")),
    Rule("joiner", "both join in the same way", _must_agree("ways to join", "joiner")),
    Rule(
        "partition-groups",
        "both have the same partition groups configured",
        _must_agree("partition groups", "partition_groups"),
    ),
    Rule(
        "partition-count",
        "both have the same partition count configured",
        _must_agree("partition counts", "partition_count"),
    ),
    Rule("cluster-version", "both have the same cluster version", _must_agree("cluster versions", "cluster_version")),
    Rule("remote-is-my-member", "the remote master is no member of the local cluster", _remote_is_my_member),
    Rule("local-state", "the state of the local cluster allows joins", lambda local, _: _must_allow_joins(local)),
    Rule("remote-state", "the state of the remote cluster allows joins", lambda _, remote: _must_allow_joins(remote)),
    Rule("i-am-its-member", "the local master is no member of the remote cluster", _i_am_its_member),
    Rule("members-intersect", "no address is listed by both clusters", _members_intersect),
    Rule("data-members", "both have the same number of data members", _data_members),
    Rule("total-members", "both have the same number of members in total", _total_members),
    Rule("address", "", _address),
)
"""In the order in which they are asked once there is an answer; the last one always decides."""
