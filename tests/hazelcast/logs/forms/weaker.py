"""The order of readings: a weaker one claims nothing that the other does not claim, and is sure of nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quarterdeck.backend.core.events import Event
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, MemberWitnessed
from quarterdeck.backend.judgement.observations.observation import Observation, ObservationKind
from tests.hazelcast.logs.forms.reading import Reading

UNKNOWN = "unknown"
_SEEN_FROM: dict[ObservationKind, frozenset[ObservationKind]] = {
    "member-lost": frozenset({"halves-apart", "lone-master", "flapping", "oscillation", "restart", "full-stop", "clock-jump"}),
    "lasting-suspicion": frozenset({"mutual-suspicion", "flapping", "halves-apart", "lone-master"}),
    "lone-master": frozenset({"halves-apart", "flapping", "oscillation", "clock-jump"}),
    "halves-apart": frozenset({"lone-master", "oscillation", "flapping"}),
    "mutual-suspicion": frozenset({"lasting-suspicion", "flapping", "lone-master", "halves-apart", "oscillation", "clock-jump"}),
    "restart": frozenset({"full-stop"}),
    "flapping": frozenset({"restart"}),
    "claim-not-accepted": frozenset({"halves-apart", "lone-master", "oscillation"}),
}  # fmt: skip
"""What an observation may be that is made from fewer lines: of the other kind with all lines."""


def weaker(less: Reading, whole: Reading) -> list[str]:
    """Return what the reading of fewer lines claims beyond that of all lines; nothing where it is weaker."""
    return [*_claims(less, whole), *_observed(less, whole)]


def _claims(less: Reading, whole: Reading) -> Iterator[str]:
    for member, records in less.records.items():
        known = [event for _, event in whole.records.get(member, [])]
        for _, event in records:
            if not _is_inference(event) and not any(_says_less(event, other) for other in known):
                yield f"{member}: {event}"


def _is_inference(event: Event) -> bool:
    """Return whether an event says what follows from several lines, or what one line says that counts where others are lost."""
    if isinstance(event, events.MergeVerdict) and event.rule == UNKNOWN:
        return True  # an order to merge whose line is cut
    if isinstance(event, events.SuspicionRaised) and event.reason.startswith("Suspecting "):
        return True  # with a list, only a master's word of this counts: the others say once more that they suspect
    return isinstance(event, MemberWitnessed | ConnectionChanged | events.MasterChanged | events.MemberStopped)


_WORDS = ("reason", "reasons", "why", "attempt", "cause", "merging", "heeded", "accepted", "left_out")


_GENERAL = {"refused": "no-connection"}
"""A cause of which a line may show less: a connection that was refused is one that was lost."""


def _says_less(event: Event, other: Event) -> bool:
    """Return whether an event is the other one, or the same with less that is known."""
    if type(event) is not type(other):
        return False
    fields = type(event).__struct_fields__
    if not all(_fits(getattr(event, name), getattr(other, name)) for name in fields if name not in _WORDS):
        return False
    cause = getattr(event, "cause", UNKNOWN)
    known = getattr(other, "cause", UNKNOWN)
    return cause in (UNKNOWN, known, _GENERAL.get(known)) or isinstance(
        event, events.MemberRemoved | events.SuspicionRaised
    )


def _fits(value: Any, other: Any) -> bool:
    if value == other or value in ("", UNKNOWN, None):
        return True
    if isinstance(value, str):
        return (
            value.startswith((f"{UNKNOWN}-", "unversioned/")) or value.partition("#")[0] == str(other).partition("#")[0]
        )
    if isinstance(value, Member):
        return value.address == other.address and _fits(value.uuid, other.uuid)
    if isinstance(value, tuple) and isinstance(other, tuple) and len(value) == len(other):
        return all(_fits(one, another) for one, another in zip(value, other, strict=True))
    return False


def _observed(less: Reading, whole: Reading) -> Iterator[str]:
    for seen in less.observations:
        said_goodbye = {
            member
            for member, records in whole.records.items()
            if any(isinstance(event, events.MemberStopped) for _, event in records)
        }
        is_goodbye = seen.kind == "member-lost" and set(seen.members) & said_goodbye
        if not is_goodbye and not any(_is_seen_from(seen, other) for other in whole.observations):
            yield f"observed: {seen.headline}"


def _is_seen_from(seen: Observation, other: Observation) -> bool:
    kinds = {seen.kind} | _SEEN_FROM.get(seen.kind, frozenset())
    return other.kind in kinds and bool(set(seen.members) & set(other.members))
