"""Patterns of messages about split-brain recovery and the state of the cluster (Hazelcast: split brain and cluster states)."""

from __future__ import annotations

import re
from typing import Literal, cast

from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES, ClusterState
from quarterdeck.backend.core.membership.events import ClusterStateChanged, MergeVerdict
from quarterdeck.backend.hazelcast.logs import parsed_messages as logged
from quarterdeck.backend.hazelcast.logs.patterns.pattern import ADDRESS, LogPattern, address, known, log_pattern

_RULES = (
    ("thinks this-node as its member", "i-am-its-member"),
    ("thinks that this-node is its member", "i-am-its-member"),
    ("thinks we are its member", "i-am-its-member"),
    ("already member", "remote-is-my-member"),
    ("already a member", "remote-is-my-member"),
    ("already merged in", "remote-is-my-member"),
    ("intersect", "members-intersect"),
    ("member list", "members-intersect"),
    ("cluster version", "cluster-version"),
    ("state", "local-state"),
    ("data member count", "data-members"),
)


def _rule(why: str) -> str:
    if "same data member count" in why:
        return "address"
    return next((rule for sign, rule in _RULES if sign in why), "unknown")


def _judged(
    decision: Literal["local-merges", "remote-merges", "cannot-merge"], found: re.Match[str]
) -> logged.ParsedMessage:
    why = found["why"].strip(" ,")
    return MergeVerdict(address(found["remote"]), decision, _rule(why), found[0].strip())


def _state(found: re.Match[str]) -> logged.ParsedMessage:
    name = found["state"]
    if name not in CLUSTER_STATES:
        return logged.NoEvent()
    before, after = found["before"], cast(ClusterState, name)
    initiator = f", initiated by {found['initiator']}" if found["initiator"] else ""
    return ClusterStateChanged(after, f"changed from {before}{initiator}")


PATTERNS: list[LogPattern] = [
    log_pattern(
        "merge", "We should merge to ", rf"We should merge to (?P<remote>{ADDRESS})(?P<why>[^\n]*)",
        lambda found: _judged("local-merges", found),
    ),
    log_pattern(
        "merge", "We are merging to ", rf"We are merging to (?P<remote>{ADDRESS})(?P<why>[^\n]*)",
        lambda found: _judged("local-merges", found),
    ),
    log_pattern(
        "merge", " should merge to us", rf"(?P<remote>{ADDRESS}) should merge to us(?P<why>[^\n]*)",
        lambda found: _judged("remote-merges", found),
    ),
    log_pattern(
        "merge", "current member is not a master",
        rf"A split-brain merge validation request was received[^\n]*request source \(({ADDRESS})\)",
        lambda found: logged.LoggedSearchRedirected(address(found[1])),
    ),
    log_pattern(
        "merge", "CANNOT merge to ", rf"{ADDRESS} CANNOT merge to (?P<remote>{ADDRESS})(?P<why>[^\n]*)",
        lambda found: _judged("cannot-merge", found),
    ),
    log_pattern(
        "merge", "erge to ",
        rf"(?:Should not merge|Cannot merge|Not merging|CANNOT merge) to (?P<remote>{ADDRESS})(?P<why>[^\n]*)",
        lambda found: _judged("cannot-merge", found),
    ),
    log_pattern(
        "merge", " is merging to ", rf"{ADDRESS} is merging to ({ADDRESS}),? because ?: instructed by master {ADDRESS}",
        lambda found: logged.LoggedMergeOrder(address(found[1])),
    ),
    log_pattern(
        "merge", " is merging to ", rf"{ADDRESS} is merging to (?P<remote>{ADDRESS})(?P<why>,? because ?:[^\n]*)",
        lambda found: _judged("local-merges", found),
    ),
    log_pattern(
        "merge", " is merging [", rf"{ADDRESS} is merging \[[^\]]*\] to ({ADDRESS})",
        lambda found: logged.LoggedMergeStart(address(found[1])), ("merging ",),
    ),
    log_pattern(
        "merge", "to FROZEN", r"(Could not change cluster state to FROZEN[^\n]*)",
        lambda found: logged.LoggedMergeAbandonment(found[1]),
    ),
    log_pattern(
        "merge", "Reverting cluster state back", r"(Reverting cluster state back to [^\n]*)",
        lambda found: logged.LoggedMergeAbandonment(found[1]),
    ),
    log_pattern(
        "merge", "Cannot start merge", r"((?:Cannot start merge|Aborting merge|Merge is aborted)[^\n]*)",
        lambda found: logged.LoggedMergeAbandonment(found[1]),
    ),
    log_pattern(
        "state", "Changing cluster state from ",
        r"Changing cluster state from (?:ClusterState\{state=)?(?P<before>[A-Z_]+).*? to "
        r"(?:ClusterStateChange\{[^{}]*?newState=)?(?P<state>[A-Z_]+)\}?(?:, initiator: (?P<initiator>\S+?),)?",
        _state,
    ),
    known(
        "merge",
        """
        * is merging | Cannot process split brain | Cannot verify member list version | Disposing |
        Error during join check | Ignoring join check from | Ignoring merge |
        Interrupted while preparing cluster for merge | Preparing to merge | Problem while waiting for merge |
        Received SplitBrain | Sending SplitBrain | SplitBrainJoinMessage | Timeout during join check |
        Waiting for merge instruction | While changing cluster state to | While reverting cluster state
        """,
    ),
    known(
        "state",
        """
        Changing cluster state | Cluster state is | Extending cluster state lock | Locking cluster state |
        Rolling back cluster state | Split brain protection
        """,
    ),
]  # fmt: skip
