"""Patterns of messages about incarnations, joining and member lists (Hazelcast: joining and member list and logs)."""

from __future__ import annotations

import re

from quarterdeck.backend.core.address import DEFAULT_PORT
from quarterdeck.backend.core.membership.events import AddressUnusable, ListRejected
from quarterdeck.backend.core.witnessed.discovery import JOIN_LIST
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
)

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
    block = _BLOCK.search(found.string)
    if block is None:
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
    return AddressUnusable(named, f"{host} has no address: {reason}", "unresolvable") if named else logged.NoEvent()


PATTERNS: list[LogPattern] = [
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
        lambda found: AddressUnusable(address(found[1]), "its cluster has another name", "other-cluster"),
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
        lambda found: ListRejected(0, address(found[1]), found[2]), ("Not updating members",),
    ),
    log_pattern(
        "membership", "Not updating members received",
        rf"Not updating members received from caller: ({ADDRESS}) (because [^\n]*)",
        lambda found: ListRejected(0, address(found[1]), found[2].strip()),
    ),
    log_pattern(
        "joining", " discovery", r"Using (Multicast|TCP/IP) discovery",
        lambda found: logged.LoggedJoiner("multicast" if found[1] == "Multicast" else JOIN_LIST),
    ),
    log_pattern(
        "joining", "Kubernetes Discovery activated", r"Kubernetes Discovery activated",
        lambda _: logged.LoggedJoiner("kubernetes"),
    ),
    known(
        "life",
        """
        Backpressure is | Cluster name: | Copyright (c) | Destroying node | Diagnostics disabled |
        Enable DEBUG/FINE log level | Hazelcast is starting in a Java modular environment | --add-modules |
        Hazelcast Shutdown is completed | Interfaces is | Loading configuration | Using configuration |
        Node is already shutting down | Picked | Prefer IPv4 stack is | Shutting down | TPC: | The Jet engine is |
        Using
        """,
    ),
    known(
        "joining",
        """
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
        """,
    ),
    known(
        "membership",
        """
        * is promoted to normal member | * is removed. Publishing | * is returning with a new identity |
        Cannot publish member list | Cluster version set to | Committing/rolling-back |
        Following unknown addresses are found | Local member list join version | Member list join version of |
        No member list join version | Master * | No need to remove | Node is already joined |
        Not applying member update | Not finalizing join | Not removing | Old master | Promoting |
        Received a periodic member update | Received an older member update | Sending member list | Setting members |
        Updating local member list version
        """,
    ),
]  # fmt: skip
