"""Patterns of messages about suspicion, mastership claims and partial disconnections."""

from __future__ import annotations

import re

from quarterdeck.backend.core.membership.events import DisconnectionReported
from quarterdeck.backend.hazelcast.logs import parsed_messages as logged
from quarterdeck.backend.hazelcast.logs.patterns.pattern import (
    ADDRESS,
    MEMBER,
    LogPattern,
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


PATTERNS: list[LogPattern] = [
    log_pattern(
        "suspicion", "is suspected to be dead", rf"({MEMBER}) is suspected to be dead(?: for reason: ([^\n]*))?",
        lambda found: logged.LoggedSuspicion(mentioned_member(found[1]), found[2] or ""), ("uspect",),
    ),
    log_pattern(
        "suspicion", "because it has not sent any heartbeats",
        rf"Suspecting ({MEMBER}) (because it has not sent any heartbeats [^\n]*)",
        lambda found: logged.LoggedDetection(mentioned_member(found[1]), found[0]),
    ),
    log_pattern(
        "suspicion", "because it has not sent any ",
        rf"Removing ({MEMBER}) (because it has not sent any (?:heartbeats|master confirmation)[^\n]*)",
        lambda found: logged.LoggedDetection(mentioned_member(found[1]), found[0]),
    ),
    log_pattern(
        "suspicion", "could not ping ", rf"{ADDRESS} could not ping (?:reach )?({ADDRESS})",
        lambda found: logged.LoggedDetection(mentioned_member(found[1]), found[0]),
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
        lambda found: logged.LoggedClaimFinish(*view(found.string)),
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
        lambda found: DisconnectionReported(
            address(found[2]), tuple(member.address for member in mentioned_members(found[1]))
        ),
    ),
    log_pattern(
        "disconnection", "because it has disconnected from some",
        rf"Removing ({MEMBER}) (because it has disconnected from some of the members)",
        lambda found: logged.LoggedRemoval(mentioned_member(found[1]), found[0]), ("because it has ",),
    ),
    known(
        "suspicion",
        """
        * has sent MasterConfirmation | * pinged | * will ping | Both complainer | Cannot handle heartbeat from |
        Cannot handle suspect of | Cannot send heartbeat complaint | Cannot suspect | Complainee | Complainer |
        Could not send MasterConfirmation | Error while sending heartbeat | Ignoring explicit suspicion |
        Ignoring heartbeat | Local UUID mismatch on received heartbeat | No need for explicit suspicion |
        Not receiving any heartbeats from | Not removing suspicion | Not sending MasterConfirmation |
        Not sending heartbeat complaint | Received heartbeat from | Removing suspected address |
        Sending MasterConfirmation | Sending explicit suspicion | Sending heartbeat complaint |
        Sending latest member list | This node does not have a connection to
        """,
    ),
    known(
        "claim",
        """
        A more recent MembersView | Asking MembersView | Cannot accept mastership claim | Claiming mastership |
        Exception thrown while running DecideNewMembersViewTask | Ignoring decided members view |
        Ignoring mastership claim | Latest MembersView | Should not accept mastership claim
        """,
    ),
    known(
        "disconnection",
        """
        * is disconnected to | Cannot check disconnected members | Ignoring received suspected members |
        Partial disconnection resolution algorithm | Received suspected members: |
        This not is not master but received suspected members | Won't remove partially disconnected
        """,
    ),
]  # fmt: skip
