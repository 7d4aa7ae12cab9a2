"""What a message says: the first phrase that fits it."""

from __future__ import annotations

import re
from typing import NamedTuple

from quarterdeck.backend.pipeline.product_logs import (
    said_of_membership,
    said_of_merging,
    said_of_suspicion,
    said_of_the_rest,
)
from quarterdeck.backend.pipeline.product_logs.phrases import NotSaid
from quarterdeck.backend.pipeline.product_logs.said_of_the_rest import SUBJECT_OF_LOGGER
from quarterdeck.backend.pipeline.product_logs.sayings import Known, Saying, Subject

_PHRASES = (
    *said_of_suspicion.PHRASES,
    *said_of_membership.PHRASES,
    *said_of_merging.PHRASES,
    *said_of_the_rest.PHRASES,
)
_QUIET = re.compile(
    r"(?:processors=|Initialized new cluster connection|Connection\[|Connecting to /|Could not connect to: )"
)
_READ = 1 << 18
"""Characters of a message in which a phrase is looked for."""


class Understood(NamedTuple):
    subject: Subject
    saying: Saying


def understand(text: str, logger: str = "") -> Understood | None:
    """What a message of the product with this text says, or None when no phrase fits. Never raises."""
    text = text.lstrip()[:_READ] if text[:1].isspace() else text[:_READ]
    if _QUIET.match(text):
        return Understood("other" if text.startswith("p") else "connections", Known())
    if logger in _CHATTY:
        return Understood(SUBJECT_OF_LOGGER[logger], Known())
    for phrase in _PHRASES:
        if phrase.needle in text:
            found = phrase.pattern.match(text)
            if found:
                try:
                    return Understood(phrase.subject, phrase.meaning(found))
                except NotSaid:
                    continue
    subject = SUBJECT_OF_LOGGER.get(logger)
    return Understood(subject, Known()) if subject else None


_CHATTY = frozenset({"HealthMonitor", "TcpServerConnection", "TcpServerConnector", "TcpServerConnectionErrorHandler"})
