"""What is shown where something about a member is not known, and what would make it known. It is never shown as none or well."""

from __future__ import annotations

from collections.abc import Collection

from quarterdeck.backend.core.witnessed.events import Aspect, Source
from quarterdeck.backend.picture.text.fact import Fact

NOT_TOLD = "not told"

LOGS_TELL: frozenset[Aspect] = frozenset(("suspicions", "claims", "merge-verdicts", "losses", "cluster-state"))
CLIENTS_ARE_TOLD: frozenset[Aspect] = frozenset(("owners", "migration-ends", "losses", "cluster-state", "join-list"))
"""What the log of a member of Hazelcast contains, and what it sends to its clients. Everything else only the member knows."""


def what_would_tell(aspect: Aspect, sources: Collection[Source]) -> str:
    """Return what an operator can give so that `aspect` is known, when all is known from `sources`."""
    if aspect in LOGS_TELL and "logs" not in sources:
        return "give logs with --logs"
    if aspect in CLIENTS_ARE_TOLD and "client-protocol" not in sources:
        return "attach to the members with --connect"
    return "only the members themselves know"


def not_told(aspect: Aspect, sources: Collection[Source]) -> str:
    """Say that an aspect is not reported, and what would report it."""
    return f"{NOT_TOLD}: {what_would_tell(aspect, sources)}"


def not_told_fact(heading: str, aspect: Aspect, sources: Collection[Source]) -> Fact:
    """Return the same as a fact."""
    return Fact(heading, not_told(aspect, sources), "faint")
