"""Finds the pattern that a message fits, and so what the message means."""

from __future__ import annotations

from typing import NamedTuple

from quarterdeck.backend.hazelcast.logs.parsed_messages import LoggedCutList, NoEvent, ParsedMessage, Subject
from quarterdeck.backend.hazelcast.logs.patterns import membership, partitions_and_connections
from quarterdeck.backend.hazelcast.logs.patterns.partitions_and_connections import CONNECTION_FAILURE, SUBJECT_OF_LOGGER
from quarterdeck.backend.hazelcast.logs.patterns.pattern import PatternMismatch

_PATTERNS = (
    *membership.SUSPICION_PATTERNS, *membership.MEMBERSHIP_PATTERNS, *membership.MERGE_PATTERNS,
    *partitions_and_connections.PARTITION_PATTERNS, *partitions_and_connections.DIAGNOSTIC_PATTERNS,
)  # fmt: skip
EVENT_SIGNS = (b".ClusterService", *(sign.encode() for pattern in _PATTERNS for sign in pattern.signs))
EVENT_SIGNS = tuple(sorted(sign for sign in set(EVENT_SIGNS) if not any(o != sign and o in sign for o in EVENT_SIGNS)))
"""Pieces of text without which no line begins, continues or ends a message that makes an event."""

_CHATTY = frozenset({"HealthMonitor", "TcpServerConnection", "TcpServerConnector", "TcpServerConnectionErrorHandler"})
"""Loggers whose messages, but for lost connections, make no event."""
_PRINTS_LISTS = ("ClusterService", "ClusterServiceImpl")
"""A message of these without words is a member list whose lines are not there: cut away, or kept by no filter."""
_MAX_MATCHED = 1 << 18
"""Characters of a message in which a pattern is looked for."""


class PatternMatch(NamedTuple):
    """What a message is about, and what it means."""

    subject: Subject
    parsed: ParsedMessage


def match_message(text: str, logger: str = "") -> PatternMatch | None:
    """Return what a message of the product with this text means, or None when no pattern fits. Never raises."""
    text = text.lstrip()[:_MAX_MATCHED] if text[:1].isspace() else text[:_MAX_MATCHED]
    if logger in _CHATTY and not text.startswith(CONNECTION_FAILURE):
        return PatternMatch(SUBJECT_OF_LOGGER[logger], NoEvent())
    if not text and logger in _PRINTS_LISTS:
        return PatternMatch("membership", LoggedCutList())
    for log_pattern in _PATTERNS:
        if log_pattern.needle in text:
            if found := log_pattern.pattern.match(text):
                try:
                    return PatternMatch(log_pattern.subject, log_pattern.meaning(found))
                except PatternMismatch:
                    continue
    subject = SUBJECT_OF_LOGGER.get(logger)
    return PatternMatch(subject, NoEvent()) if subject else None
