"""Finds the pattern that a message fits, and so what the message means."""

from __future__ import annotations

import re
from typing import NamedTuple

from quarterdeck.backend.hazelcast.logs.parsed_messages import NoEvent, ParsedMessage, Subject
from quarterdeck.backend.hazelcast.logs.patterns import membership, partitions_and_connections, split_brain, suspicion
from quarterdeck.backend.hazelcast.logs.patterns.partitions_and_connections import CONNECTION_FAILURE, SUBJECT_OF_LOGGER
from quarterdeck.backend.hazelcast.logs.patterns.pattern import PatternMismatch

_PATTERNS = (
    *suspicion.PATTERNS,
    *membership.PATTERNS,
    *split_brain.PATTERNS,
    *partitions_and_connections.PATTERNS,
)
_QUIET = re.compile(
    r"(?:processors=|Initialized new cluster connection|Connection\[|Connecting to /|Could not connect to: )"
)
_READ = 1 << 18
"""Characters of a message in which a pattern is looked for."""


class PatternMatch(NamedTuple):
    """What a message is about, and what it means."""

    subject: Subject
    parsed: ParsedMessage


def match_message(text: str, logger: str = "") -> PatternMatch | None:
    """What a message of the product with this text means, or None when no pattern fits. Never raises."""
    text = text.lstrip()[:_READ] if text[:1].isspace() else text[:_READ]
    if _QUIET.match(text):
        return PatternMatch("other" if text.startswith("p") else "connections", NoEvent())
    if logger in _CHATTY and not text.startswith(CONNECTION_FAILURE):
        return PatternMatch(SUBJECT_OF_LOGGER[logger], NoEvent())
    for log_pattern in _PATTERNS:
        if log_pattern.needle in text:
            found = log_pattern.pattern.match(text)
            if found:
                try:
                    return PatternMatch(log_pattern.subject, log_pattern.meaning(found))
                except PatternMismatch:
                    continue
    subject = SUBJECT_OF_LOGGER.get(logger)
    return PatternMatch(subject, NoEvent()) if subject else None


_CHATTY = frozenset({"HealthMonitor", "TcpServerConnection", "TcpServerConnector", "TcpServerConnectionErrorHandler"})
