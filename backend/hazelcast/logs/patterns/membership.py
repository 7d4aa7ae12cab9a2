"""Patterns of messages about membership, suspicion, mastership claims and split-brain recovery.

They stand in this order: suspicion, claims and partial disconnections; incarnations, joining and member lists; merges and the
state of the cluster.
"""

from __future__ import annotations

import re
from typing import cast

from quarterdeck.backend.commands.discovery import JOIN_LIST
from quarterdeck.backend.core.address import DEFAULT_PORT
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES, ClusterState
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.split_brain.merge_decision import MergeDirection
from quarterdeck.backend.core.witnessed.events import JoinerRefused
from quarterdeck.backend.hazelcast.logs import parsed_messages as logged
from quarterdeck.backend.hazelcast.logs.lines.layout import to_address
from quarterdeck.backend.hazelcast.logs.patterns.pattern import (
    ADDRESS,
    MEMBER,
    UUID,
    LogPattern,
    PatternMismatch,
    address,
    known,
    log_pattern,
    mentioned_member,
    mentioned_members,
    view,
)


def _asking(found: re.Match[str]) -> logged.ParsedMessage:
    text = found.string.replace("\n", "")
    version, members = view(text)
    behind = text.rpartition("]}")[2]
    suspected, _, asked = behind.partition("initial addresses to ask")
    return logged.LoggedClaimRequest(version, members, mentioned_members(suspected), mentioned_members(asked))


def _claimed(text: str) -> logged.ParsedMessage:
    """Return a finished claim; without its list where the line is cut."""
    try:
        return logged.LoggedClaimFinish(*view(text))
    except PatternMismatch:
        return logged.LoggedClaimFinish(None, ())


SUSPICION_PATTERNS: list[LogPattern] = [
    log_pattern(
        "suspicion", "is suspected to be dead", rf"({MEMBER}) is suspected to be dead(?: for reason: ([^\n]*))?",
        lambda found: logged.LoggedSuspicion(mentioned_member(found[1]), found[2] or ""), ("uspect",),
    ),
    log_pattern(
        "suspicion", "because it has not sent any heartbeats",
        rf"Suspecting ({MEMBER}) (because it has not sent any heartbeats [^\n]*)",
        lambda found: logged.LoggedSuspicion(mentioned_member(found[1]), found[0], True),
    ),
    log_pattern(
        "suspicion", "because it has not sent any ",
        rf"Removing ({MEMBER}) (because it has not sent any (?:heartbeats|master confirmation)[^\n]*)",
        lambda found: logged.LoggedSuspicion(mentioned_member(found[1]), found[0], True),
    ),
    log_pattern(
        "suspicion", "could not ping ", rf"{ADDRESS} could not ping (?:reach )?({ADDRESS})",
        lambda found: logged.LoggedSuspicion(mentioned_member(found[1]), found[0], True),
    ),
    log_pattern(
        "suspicion", "Removed suspicion ", rf"Removed suspicion (?:of|from) ({MEMBER})\. Reason: ([^\n]*)",
        lambda found: logged.LoggedSuspicionCleared(mentioned_member(found[1]), found[2]), ("uspicion",),
    ),
    log_pattern(
        "suspicion", "eceived suspicion request from", rf"Received suspicion request from:? ({MEMBER})",
        lambda found: logged.LoggedExplicitSuspicion(address(found[1])),
    ),
    log_pattern("claim", "Starting mastership claim", r"Starting mastership claim process", lambda _: logged.LoggedClaimStart()),
    log_pattern("claim", "with suspected members", r"Local MembersView\{", _asking),
    log_pattern(
        "claim", "Mastership is claimed with", r"Mastership is claimed with: ",
        lambda found: _claimed(found.string),
    ),
    log_pattern(
        "claim", "Mastership of ", rf"Mastership of ({MEMBER}) is accepted",
        lambda found: logged.LoggedClaimAcceptance(address(found[1])), ("astership",),
    ),
    log_pattern(
        "claim", " claims mastership but ", rf"(?:[\w.$]+Exception: )?({MEMBER}) (claims mastership but [^\n!]*)",
        lambda found: logged.LoggedClaimRefusal(address(found[1]), found[2]),
    ),
    log_pattern(
        "claim", "annot accept mastership claim of ",
        rf"(?:[\w.$]+Exception: )?Cannot accept mastership claim of ({MEMBER})([^\n]*)",
        lambda found: logged.LoggedClaimRefusal(address(found[1]), found[0][:300]),
    ),
    log_pattern(
        "disconnection", "Received suspected members", rf"Received suspected members: (\[.*\]) from ({MEMBER})\s*$",
        lambda found: events.DisconnectionReported(
            address(found[2]), tuple(member.address for member in mentioned_members(found[1]))
        ),
    ),
    log_pattern(
        "disconnection", "because it has disconnected from some",
        rf"Removing ({MEMBER}) (because it has disconnected from some of the members)",
        lambda found: logged.LoggedRemoval(mentioned_member(found[1]), found[0]), ("because it has ",),
    ),
    known("suspicion", """
        Cannot send explicit suspicion | MasterConfirmation has been received from | When using Phi-Accrual |
        * has sent MasterConfirmation | * pinged | * will ping | Both complainer | Cannot handle heartbeat from |
        Cannot handle suspect of | Cannot send heartbeat complaint | Cannot suspect | Complainee | Complainer |
        Could not send MasterConfirmation | Error while sending heartbeat | Ignoring explicit suspicion |
        Ignoring heartbeat | Local UUID mismatch on received heartbeat | No need for explicit suspicion |
        Not receiving any heartbeats from | Not removing suspicion | Not sending MasterConfirmation |
        Not sending heartbeat complaint | Received heartbeat from | Removing suspected address |
        Sending MasterConfirmation | Sending explicit suspicion | Sending heartbeat complaint |
        Sending latest member list | This node does not have a connection to
    """),
    known("claim", """
        Mastership claim accepted |
        A more recent MembersView | Asking MembersView | Cannot accept mastership claim | Claiming mastership |
        Exception thrown while running DecideNewMembersViewTask | Ignoring decided members view |
        Ignoring mastership claim | Latest MembersView | Should not accept mastership claim
    """),
    known("disconnection", """
        * is disconnected to | Cannot check disconnected members | Ignoring received suspected members |
        Partial disconnection resolution algorithm | Received suspected members: |
        This not is not master but received suspected members | Won't remove partially disconnected
    """),
]  # fmt: skip


_BLOCK = re.compile(
    r"Members (?:\{size:\s*(?P<size>\d{1,6}), ver:\s*(?P<version>\d{1,9})\} \[|\[(?P<old_size>\d{1,6})\] \{)"
    r"(?P<body>(?:[^\[\]{}]++|\[[^\]\n]*+\])*+)[\]}]"
)
_HEAD_LENGTH = 40
_ENTRY = re.compile(r"^\s*(?P<member>Member .*\S)\s*$", re.MULTILINE)


def is_cut_list(text: str) -> bool:
    """Return whether a message is the beginning of a member list, as at the end of a file that was rotated inside it."""
    return "Members {size:" in text[:_HEAD_LENGTH] and text[-1] != "]" and _BLOCK.search(text) is None


def _list(found: re.Match[str]) -> logged.ParsedMessage:
    """Parse a whole block. Raises `PatternMismatch` for one that is cut short or whose size is not that of its lines."""
    if (block := _BLOCK.search(found.string)) is None:
        raise PatternMismatch("a member list without its end")
    members = tuple(mentioned_member(entry["member"]) for entry in _ENTRY.finditer(block["body"]))
    if len(members) != int(block["size"] or block["old_size"]) or not members:
        raise PatternMismatch("a member list whose size is not that of its lines")
    version = block["version"]
    if not version and not any(member.this for member in members):
        return logged.NoEvent()  # as clients in the same process print it
    return logged.LoggedMemberList(int(version) if version else None, members)


def _unresolved(host: str, reason: str) -> logged.ParsedMessage:
    named = to_address(host, str(DEFAULT_PORT))
    why = f"{host} has no address: {reason}"
    return events.AddressUnusable(named, why, "unresolvable") if named else logged.NoEvent()


MEMBERSHIP_PATTERNS: list[LogPattern] = [
    log_pattern("membership", "Members ", r"\s*Members (?:\{size:|\[\d)", _list, ("Members {size", "Members [")),
    log_pattern(
        "life", " is ", rf"({ADDRESS}) is ([A-Z][A-Z_]+)\.?\s*$", lambda found: logged.LoggedLifecycle(found[2]),
        (" is START", " is SHUT", " is MERG"),
    ),
    log_pattern("life", " starting at ", rf"[^\n]*\d[^\n]* starting at {ADDRESS}", lambda _: logged.LoggedStart()),
    log_pattern(
        "life", "Resetting local member UUID", rf"Resetting local member UUID\. Previous: ({UUID}), new: ({UUID})",
        lambda found: logged.LoggedUuidReset(found[1].lower(), found[2].lower()), ("Resetting ",),
    ),
    log_pattern(
        "life", "Setting new local member", rf"Setting new local member\. old uuid: ({UUID}) new uuid: ({UUID})",
        lambda found: logged.LoggedUuidReset(found[1].lower(), found[2].lower()),
    ),
    log_pattern(
        "life", "Running shutdown hook", r"Running shutdown hook", lambda _: logged.LoggedShutdown("the process was asked to end")
    ),
    log_pattern(
        "life", "Shutdown request of", rf"Shutdown request of ({MEMBER})",
        lambda found: logged.LoggedShutdownRequest(mentioned_member(found[1])),
    ),
    log_pattern(
        "life", "Terminating forcefully", r"Terminating forcefully",
        lambda _: logged.LoggedShutdown("terminated by force"),
    ),
    log_pattern(
        "life", "will shutdown", r"This (?:member|node) will shutdown because (.*)",
        lambda found: logged.LoggedShutdown(found[1][:300]),
    ),
    log_pattern(
        "joining", "could not join cluster at node",
        rf"Node could not join cluster at node: [^\n]*?({ADDRESS}) Cause: [^\n]*different cluster",
        lambda found: events.AddressUnusable(address(found[1]), "its cluster has another name", "other-cluster"),
        ("ould not join",),
    ),
    log_pattern(
        "joining", "failure for node join", r"Reason of failure for node join ?: ([^\n]*)",
        lambda found: logged.LoggedJoinFailure(found[1].strip()[:300]),
    ),
    log_pattern(
        "joining", "an invalid join request from",
        rf"Received an invalid join request from ({ADDRESS}), cause: ([^\n]*)",
        lambda found: JoinerRefused(address(found[1]), found[2].strip()[:300]),
    ),
    log_pattern(
        "joining", "ould not join", r"(?:Could not join (?:the )?cluster|Node could not join cluster)[^\n]*",
        lambda found: logged.LoggedJoinFailure(found[0][:300]),
    ),
    log_pattern(
        "joining", "ouldn't join to the master", r"Couldn't join to the master ?: ?[^\n]*",
        lambda found: logged.LoggedJoinFailure(found[0][:300]),
    ),
    log_pattern(
        "joining", "Kubernetes API access is forbidden", r"Kubernetes API access is forbidden[^\n]*",
        lambda found: logged.LoggedJoinFailure(found[0][:300]),
    ),
    log_pattern(
        "joining", "Wrong bind request from",
        rf"Wrong bind request from ({ADDRESS})! This node is not (?:the )?requested endpoint: ({ADDRESS})",
        lambda found: JoinerRefused(address(found[1]), f"Wrong bind request: this member is not {address(found[2])}"),
    ),
    log_pattern(
        "joining", "DNS lookup for serviceDns",
        r"DNS lookup for serviceDns '([^'\s]{1,255})' failed(?:: ([^\n]{1,200}))?",
        lambda found: _unresolved(found[1], (found[2] or "the lookup failed").strip()),
    ),
    log_pattern(
        "joining", "Cannot resolve hostname", r"Cannot resolve hostname '([^'\s]{1,255})'",
        lambda found: _unresolved(found[1], "unknown host"),
    ),
    log_pattern(
        "joining", "oin request to ", rf"Sending join ?[Rr]equest to ({ADDRESS})",
        lambda found: logged.LoggedJoinRequest(address(found[1])),
    ),
    log_pattern(
        "joining", "Sending joinRequest ", rf"Sending joinRequest ({ADDRESS})",
        lambda found: logged.LoggedJoinRequest(address(found[1])),
    ),
    log_pattern(
        "membership", "Removing ", rf"Removing (Member {ADDRESS}(?: - {UUID})?(?: lite)?)( because [^\n]*)?\.?\s*$",
        lambda found: logged.LoggedRemoval(mentioned_member(found[1]), (found[2] or "").removeprefix(" because ").strip()),
    ),
    log_pattern(
        "membership", "Not updating members because caller",
        rf"Not updating members because caller: ({ADDRESS}) (is not known master: [^\n]*)",
        lambda found: events.ListRejected(0, address(found[1]), found[2]), ("Not updating members",),
    ),
    log_pattern(
        "membership", "Not updating members received",
        rf"Not updating members received from caller: ({ADDRESS}) (because [^\n]*)",
        lambda found: events.ListRejected(0, address(found[1]), found[2].strip()),
    ),
    log_pattern(
        "joining", " discovery", r"Using (Multicast|TCP/IP) discovery",
        lambda found: logged.LoggedJoiner("multicast" if found[1] == "Multicast" else JOIN_LIST),
    ),
    log_pattern(
        "joining", "Kubernetes Discovery activated", r"Kubernetes Discovery activated",
        lambda _: logged.LoggedJoiner("kubernetes"),
    ),
    known("life", """
        Can not shut down node because | Graceful shutdown could not be completed | Graceful shutdown failed |
        Interrupted while | ManagementCenterService could not | Node creation failed | Shutdown sleep interrupted |
        Unimplemented shutdown hook policy |
        Unknown listener type | While calling operation.onFailure |
        Backpressure is | Cluster name: | Copyright (c) | Destroying node | Diagnostics disabled |
        Enable DEBUG/FINE log level | Hazelcast is starting in a Java modular environment | --add-modules |
        Hazelcast Shutdown is completed | Interfaces is | Loading configuration | Using configuration |
        Node is already shutting down | Picked | Prefer IPv4 stack is | Shutting down | TPC: | The Jet engine is |
        Using
    """),
    known("joining", """
        Address ' | Cannot fetch name of the node | Could not join to the cluster | Node could not join cluster |
        The … Hazelcast member discovery strategy |  Could not find any service for serviceDns |
        Address * was being used by | Authentication failed on master node |
        Before join check failed | Calling join on already joined node | Cannot set master address | Config seed port is |
        Could not prepare cluster state | Error during join check | Error while joining the cluster |
        Error while running post-join operation | Hazelcast running on Kubernetes | Invalid join request from |
        Received ConfigMismatchOp | Received my address as master | There's already an existing member |
        This node requires MulticastJoin | couldn't ping | will ping |
        * is added to the blacklist | * is permanently added to the blacklist | * is removed from the blacklist |
        Ambiguous master response | Cannot allow join request from | Cannot claim myself as master |
        Cannot set as master | Claiming myself as master | Cluster state either is locked |
        Cluster state is in transition | Connecting to possible member |
        Could not create connection to possible master | Handling join from | Handling master response |
        Ignoring join request | Ignoring master response | Join try count exceed | Joining over target |
        Joining to master | My claim to be master | New join request has been received | No join method is enabled |
        Not-connected to | PostJoin master | Received a new join request from |
        Received my identity as master identity | Sending master answer | Sending master question |
        NOT sending master question | Setting master address to | Setting master to | Setting myself as master |
        The address ( | This node is being set as the master | This node will assume master role |
        Waiting for all connections | cannot join
    """),
    known("membership", """
        * is promoted to normal member | * is removed. Publishing | * is returning with a new identity |
        Cannot publish member list | Cluster version set to | Committing/rolling-back |
        Following unknown addresses are found | Local member list join version | Member list join version of |
        No member list join version | Master * | No need to remove | Node is already joined |
        Not applying member update | Not finalizing join | Not removing | Old master | Promoting |
        Received a periodic member update | Received an older member update | Sending member list | Setting members |
        Updating local member list version
    """),
]  # fmt: skip


_RULES = (
    ("same data member count", "address"),
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


_REMOTE = rf"(?P<remote>{ADDRESS})"
_WHY = r"(?P<why>[^\n]*)"


def _verdict(decision: MergeDirection, needle: str, pattern: str) -> LogPattern:
    def judged(found: re.Match[str]) -> logged.ParsedMessage:
        why = found["why"].strip(" ,")
        rule = next((rule for sign, rule in _RULES if sign in why), "unknown")
        return events.MergeVerdict(address(found["remote"]), decision, rule, found[0].strip())

    return log_pattern("merge", needle, pattern, judged)


def _state(found: re.Match[str]) -> logged.ParsedMessage:
    name = found["state"]
    if name not in CLUSTER_STATES:
        return logged.NoEvent()
    before, after = found["before"], cast(ClusterState, name)
    initiator = f", initiated by {found['initiator']}" if found["initiator"] else ""
    return events.ClusterStateChanged(after, f"it was changed from {before}{initiator}")


MERGE_PATTERNS: list[LogPattern] = [
    _verdict("local-merges", "We should merge to ", f"We should merge to {_REMOTE}{_WHY}"),
    _verdict("local-merges", "We are merging to ", f"We are merging to {_REMOTE}{_WHY}"),
    _verdict("remote-merges", " should merge to us", f"{_REMOTE} should merge to us{_WHY}"),
    log_pattern(
        "merge", "current member is not a master",
        rf"A split-brain merge validation request was received[^\n]*request source \({ADDRESS}\)",
        lambda _: logged.LoggedSearchRedirected(),
    ),
    _verdict("cannot-merge", "CANNOT merge to ", f"{ADDRESS} CANNOT merge to {_REMOTE}{_WHY}"),
    _verdict(
        "cannot-merge", "erge to ", f"(?:Should not merge|Cannot merge|Not merging|CANNOT merge) to {_REMOTE}{_WHY}"
    ),
    log_pattern(
        "merge", " is merging to ", rf"{ADDRESS} is merging to ({ADDRESS}),? because ?: instructed by master {ADDRESS}",
        lambda found: logged.LoggedMergeOrder(address(found[1])),
    ),
    _verdict("local-merges", " is merging to ", rf"{ADDRESS} is merging to {_REMOTE}(?P<why>,? because ?:[^\n]*)"),
    log_pattern(
        "merge", " is merging [", rf"{ADDRESS} is merging \[[^\]]*\] to ({ADDRESS})",
        lambda found: logged.LoggedMergeStart(address(found[1])), ("merging ",),
    ),
    *(
        log_pattern("merge", needle, rf"({said}[^\n]*)", lambda found: logged.LoggedMergeAbandonment(found[1]))
        for needle, said in (
            ("to FROZEN", "Could not change cluster state to FROZEN"),
            ("Reverting cluster state back", "Reverting cluster state back to "),
            ("Cannot start merge", "(?:Cannot start merge|Aborting merge|Merge is aborted)"),
        )
    ),
    log_pattern(
        "state", "Changing cluster state from ",
        r"Changing cluster state from (?:ClusterState\{state=)?(?P<before>[A-Z_]+).*? to "
        r"(?:ClusterStateChange\{[^{}]*?newState=)?(?P<state>[A-Z_]+)\}?(?:, initiator: (?P<initiator>\S+?),)?",
        _state,
    ),
    known("merge", """
        Cluster-merge process is ongoing | Merge instruction sent from | Prepare-merge instruction | While merging |
        * is merging | Cannot process split brain | Cannot verify member list version | Disposing |
        Error during join check | Ignoring join check from | Ignoring merge |
        Interrupted while preparing cluster for merge | Preparing to merge | Problem while waiting for merge |
        Received SplitBrain | Sending SplitBrain | SplitBrainJoinMessage | Timeout during join check |
        Waiting for merge instruction | While changing cluster state to | While reverting cluster state
    """),
    known("state", """
        Initial state is already set | Changing cluster state | Cluster state is | Extending cluster state lock |
        Locking cluster state |
        Rolling back cluster state | Split brain protection
    """),
]  # fmt: skip
