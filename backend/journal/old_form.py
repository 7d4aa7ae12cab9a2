"""Records of form 1, whose causes were only in sentences: they are put where code looks for them now.

Only the causes on which something depends are found again. The others stay ``unknown``; their sentences are shown as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any

from msgspec import structs

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import SEPARATION_TEXT
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import MigrationsCancelled, MigrationsPlanned
from quarterdeck.backend.core.properties import SECOND_US

Sentences = Iterable[tuple[str, str]]
"""Patterns of sentences, ``*`` for any text, with the cause that each means."""

SUSPICION = (
    ("no heartbeat for *", "no-heartbeat"),
    ("no master confirmation for *", "no-confirmation"),
    ("no connection*", "no-connection"),
    ("it said goodbye", "goodbye"),
    ("it asked to be suspected", "asked"),
    ("a new life of the same address *", "new-incarnation"),
    ("it leads a cluster of its own", "leads-another-cluster"),
    ("it is disconnected from some of the members", "disconnected"),
)
REPORTS = " reports: "
"""Between the member that found a suspect silent, and what it found."""

MASTER = (
    ("it forms the cluster", "forms-cluster"),
    ("its cluster merges into that one", "merges"),
    ("it suspects every older member", "suspects-older"),
    ("its mastership claim is accepted", "claim-accepted"),
)
NAMES_IT = " names it"
STOP = (("asked to stop", "asked"), ("could not join in *", "could-not-join"))
CLEARANCE = (
    ("it sent a valid heartbeat", "heartbeat"),
    ("its reply to a probe *", "probe-reply"),
    ("its mastership claim is accepted", "claim-accepted"),
    ("it sent a member list as master", "list-received"),
    ("* hears of it again", "report-withdrawn"),
)
SEPARATION = tuple((sentence, cause) for cause, sentence in SEPARATION_TEXT.items())
CLAIM_END = (("asked to stop", "stopping"), ("it merges into another cluster", "merging"))
SEARCH = (
    ("", ""),
    ("* make it ACTIVE first", "state"),
    ("its cluster is changing to *", "state-changes"),
    ("* is just joining it", "somebody-joins"),
    ("every address that it knows is a member already*", "nobody-known"),
    ("nobody answers at *", "nobody-answers"),
)
MERGE = (
    ("", ""),
    ("the cluster could not be frozen*", "not-frozen"),
    ("* refused: *", "refused"),
    ("the other cluster does not answer any more", "no-answer"),
    ("* does not reach * both ways", "links-missing"),
    ("* did not report its links", "links-missing"),
)
PLAN = (
    ("a new master leads", "new-master"),
    ("the partitions are arranged", "arranged"),
    ("* wants to leave", "member-leaves"),
    ("* of those that hold data", "members-changed"),
    ("the cluster is *", "state-changed"),
    ("a migration failed: *", "migration-failed"),
    ("partition * is not as it was *", "partition-changed"),
)

_SILENCE = re.compile(r" for (\d+(?:\.\d+)?) s$")


def upgraded(record: Record) -> Record:
    """Return `record` with the causes that its sentences mean, if it is of form 1. Its form stays what it was."""
    if record.form > 1:
        return record
    upgrade = _UPGRADES.get(type(record.event))
    return record if upgrade is None else structs.replace(record, event=upgrade(record.event))


def _cause(sentence: str, sentences: Sentences, otherwise: str = "unknown") -> str:
    return next((cause for pattern, cause in sentences if fnmatchcase(sentence, pattern)), otherwise)


def _by(sentences: Sentences, field: str = "reason") -> Callable[[Any], Event]:
    """Return what upgrades an event whose sentence in `field` holds the cause."""
    return lambda event: structs.replace(event, cause=_cause(getattr(event, field), sentences))


def suspicion_said(reason: str, form: int | None) -> tuple[str, str | None]:
    """Return the cause of a suspicion or removal as its sentence has it, and in records of form 1 the reporter.

    `form` is None for form 1, as records leave it out. The reporter is None where the observer found it itself.
    """
    reporter, found, finding = reason.partition(REPORTS)
    return _cause(finding if found else reason, SUSPICION), reporter if found and form is None else None


def _suspicion(event: events.SuspicionRaised | events.MemberRemoved) -> Event:
    reporter, found, finding = event.reason.partition(REPORTS)
    if not found:
        reporter, finding = "", event.reason
    silence = _SILENCE.search(finding)
    return structs.replace(
        event,
        cause=_cause(finding, SUSPICION),
        silence=round(float(silence[1]) * SECOND_US) if silence else None,
        reporter=Address(reporter) if reporter else None,
    )


def _master(event: events.MasterChanged) -> Event:
    if event.reason.endswith(NAMES_IT):
        return structs.replace(event, cause="named", named_by=Address(event.reason.removesuffix(NAMES_IT)))
    return structs.replace(event, cause=_cause(event.reason, MASTER))


def _not_merging(event: events.NotMerging) -> Event:
    if event.remote is not None:
        return structs.replace(event, cause=_cause(event.reason, MERGE, "verdict"))
    cause = _cause(event.reason, SEARCH)
    silent = event.reason.removeprefix("nobody answers at ").split(", ") if cause == "nobody-answers" else ()
    return structs.replace(event, cause=cause, silent=tuple(map(Address, silent)))


_UPGRADES: dict[type, Callable[[Any], Event]] = {
    events.SuspicionRaised: _suspicion,
    events.MemberRemoved: _suspicion,
    events.MasterChanged: _master,
    events.MemberStopped: _by(STOP),
    events.SuspicionCleared: _by(CLEARANCE),
    events.ExplicitSuspicionSent: _by(SEPARATION),
    events.ClaimAbandoned: _by(CLAIM_END),
    events.NotMerging: _not_merging,
    events.MergeAbandoned: _by(MERGE),
    MigrationsPlanned: _by(PLAN, "why"),
    MigrationsCancelled: _by(PLAN),
}
