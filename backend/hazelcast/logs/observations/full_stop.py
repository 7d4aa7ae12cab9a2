"""A cluster of which all members have ended, so that nothing is left of what it held in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quarterdeck.backend.core.membership.events import ListInstalled, MemberMerging, MemberStopped
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, MemberWitnessed
from quarterdeck.backend.hazelcast.last_words import LastWords
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.hazelcast.logs.observations.observation import (
    LogEnds,
    Observation,
    ObservationEvidence,
    consecutive_groups,
    lasted,
    observation,
)

TOGETHER_US = 300 * SECOND_US
"""Members that stop in one go stop within such a time of each other: each may give its data away first."""


@dataclass
class _EndingIncarnation:
    """One incarnation, as far as its log shows."""

    member: str
    uuid: str
    first_us: int
    last_us: int
    """When it ended; of one that ended without a word, when it was found to be started again."""
    last: InterpretedMessage
    """The message that shows that."""
    silent_us: int = 0
    """Of one that ended without a word, when it logged last."""
    is_logged: bool = False
    """Whether it would be known if it had said that it stops."""
    end: str = ""
    """``said``, ``silent``, ``gone`` (a witness found no process there) or ``merged``; empty while it goes on."""

    @property
    def has_ended(self) -> bool:
        """Whether its process has ended. One that merged goes on as another incarnation."""
        return self.end in ("said", "silent", "gone")


class FullStops:
    """Follows which incarnations end, and looks for lineages of which none is left."""

    reads = ()

    def __init__(self, words: LastWords) -> None:
        """Begin. Another observer adds all records to `words`."""
        self._last_words = words
        self._incarnations: dict[str, _EndingIncarnation] = {}
        self._latest: dict[str, str] = {}
        """By member, its latest incarnation."""
        self._views: dict[str, ListInstalled] = {}
        """By lineage, its newest list."""
        self._listed: dict[str, set[str]] = {}
        """By lineage, all incarnations that were ever on its lists."""

    def add(self, message: InterpretedMessage) -> None:
        for record in message.records:
            uuid, event = record.uuid, record.event
            incarnation = self._incarnations.get(uuid)
            if incarnation is None:
                incarnation = _EndingIncarnation(record.member, uuid, record.at, record.at, message)
                self._incarnations[uuid] = incarnation
            before = self._incarnations.get(self._latest.get(record.member, uuid), incarnation)
            if before is not incarnation and not before.end:
                before.end, before.silent_us = "silent", before.last_us
                before.last_us, before.last = record.at, message
            self._latest[record.member] = uuid
            if not incarnation.end:
                incarnation.last_us, incarnation.last = record.at, message
            match event:
                case MemberWitnessed(sources=sources):
                    incarnation.is_logged = "logs" in sources
                case MemberStopped():
                    incarnation.end = "said"
                case ConnectionChanged(state="gone"):
                    incarnation.end = "gone"
                case ConnectionChanged(state="connected") if incarnation.end == "gone":
                    incarnation.end = ""
                case MemberMerging():
                    incarnation.end = "merged"
                case ListInstalled():
                    self._listed.setdefault(event.lineage, set()).update(member.uuid for member in event.members)
                    newest = self._views.get(event.lineage)
                    if newest is None or newest.version <= event.version:
                        self._views[event.lineage] = event

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return each time that all members of a cluster ended while no other one went on."""
        groups = [group for lineage, view in self._views.items() if (group := self._ended_of(lineage, view, ends))]
        for group in groups:
            uuids = {incarnation.uuid for incarnation in group}
            if any(uuids < {incarnation.uuid for incarnation in other} for other in groups):
                continue  # the last master's lineage: it led those that were left
            starts = (
                incarnation.first_us
                for incarnation in self._incarnations.values()
                if incarnation.first_us >= group[0].last_us
            )
            yield _observed(group, min(starts, default=None))

    def _ended_of(self, lineage: str, view: ListInstalled, ends: LogEnds) -> list[_EndingIncarnation]:
        """Return the members of a lineage that ended together, if all of its newest list have and no other one went on."""
        if any(
            incarnation is None or not incarnation.has_ended
            for incarnation in (self._incarnations.get(member.uuid) for member in view.members)
        ):
            return []
        ended = [
            incarnation
            for uuid in self._listed[lineage]
            if (incarnation := self._incarnations.get(uuid)) is not None and incarnation.has_ended
        ]
        ended.sort(key=lambda incarnation: (incarnation.last_us, incarnation.member))
        *_, group = consecutive_groups(
            ended, lambda group, incarnation: incarnation.last_us - group[-1].last_us <= TOGETHER_US
        )
        first_us, end_us = group[0].last_us, group[-1].last_us
        uuids = {incarnation.uuid for incarnation in group}
        others = (
            incarnation
            for incarnation in self._incarnations.values()
            if incarnation.first_us < first_us and incarnation.uuid not in uuids
        )
        return (
            [] if len(group) == 1 or any(self._goes_on(incarnation, end_us, ends) for incarnation in others) else group
        )

    def _goes_on(self, incarnation: _EndingIncarnation, end_us: int, ends: LogEnds) -> bool:
        if incarnation.end:
            return incarnation.last_us > end_us
        return self._last_words.standing(incarnation.member, incarnation.uuid, ends.members).fate == "there"


def _observed(group: Sequence[_EndingIncarnation], start_us: int | None) -> Observation:
    said, silent = (
        [incarnation for incarnation in group if incarnation.end != "silent"],
        [incarnation for incarnation in group if incarnation.end == "silent"],
    )
    if said:
        verb = "stopped" if any(incarnation.end == "said" for incarnation in said) else "ended"
        within = f" within {lasted(said[-1].last_us - said[0].last_us)}" if len(said) > 1 else ""
        what = verb + within + (f" ({len(silent)} without a goodbye)" if silent else "")
    else:
        what = "ended without a goodbye" if any(incarnation.is_logged for incarnation in group) else "ended"
    again = ""
    if start_us is not None:
        later = f" {lasted(start_us - said[-1].last_us)} later" if said and start_us > said[-1].last_us else ""
        again = f", and were started again{later} as a new cluster"
    each = "; ".join(
        f"{incarnation.member} {'said that it stops' if incarnation.end == 'said' else 'said nothing'}"
        for incarnation in group[:10]
    )
    return observation(
        "full-stop",
        [incarnation.member for incarnation in group],
        f"all {len(group)} members {what}{again}",
        detail=f"In this order: {each}. No other member was there.",
        cause="A planned stop, something that stops or restarts all members at once (an orchestrator, a deployment), or what "
        "all of them share: the host, its memory, its power.",
        remedy="What was only in memory is gone: load it again from its source. Stop members one after the other, each once the "
        "cluster is safe; with persistence configured, a cluster that is stopped as a whole keeps its data.",
        evidence=ObservationEvidence([incarnation.last for incarnation in group]),
        first=group[0].last,
        last=group[-1].last,
        start_us=group[0].last_us if said else max(incarnation.silent_us for incarnation in silent),
        end_us=max(group[-1].last_us, start_us or 0),
        is_open=start_us is None,
    )
