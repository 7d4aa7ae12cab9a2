"""The fold of records into episodes.

What reads it, a view or a pane, does so::

    episodes = Episodes(name_of)
    episodes.extend(records)            # in the order of time, again and again: a few microseconds a record
    for episode in episodes.latest(20): # oldest first; an episode stays the same object while it grows
        sentence = sentence_of(episode) # `text`, `tone` of `backend.picture.text.fact.Tone`, and `events` (their number)

Each record belongs to exactly one episode. `revision` grows with every record, and `episode.count` with every record of that
episode, so a painter knows when a line has changed. `episode.at_us` is when it began, `episode.records` are its records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.picture.events.catalogue import KINDS, describe_event, part_of
from quarterdeck.backend.picture.explain.episodes import fault_rules as faults
from quarterdeck.backend.picture.explain.episodes import membership_rules as membership
from quarterdeck.backend.picture.explain.episodes import merge_rules as merges
from quarterdeck.backend.picture.explain.episodes import partition_rules as partitions
from quarterdeck.backend.picture.explain.episodes import suspicion_rules as suspicions
from quarterdeck.backend.picture.explain.episodes import witness_rules as witness
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.explain.episodes.open_episodes import MOMENT_US, OpenEpisodes, Rule
from quarterdeck.backend.picture.text.formatting import NameOf, one_line, with_names

RULES: dict[type[Event], Rule] = {
    **dict.fromkeys(membership.INCARNATION_EVENTS, membership.incarnation_episode),
    **dict.fromkeys(membership.LIST_EVENTS, membership.list_episode),
    **dict.fromkeys(suspicions.SUSPICION_EVENTS, suspicions.suspicion_episode),
    **dict.fromkeys(suspicions.CLAIM_EVENTS, suspicions.claim_episode),
    **dict.fromkeys(merges.MERGE_EVENTS, merges.merge_episode),
    **dict.fromkeys(merges.STATE_EVENTS, merges.state_episode),
    **dict.fromkeys(faults.FAULT_EVENTS, faults.fault_episode),
    **dict.fromkeys(faults.REQUEST_EVENTS, faults.request_episode),
    **dict.fromkeys(partitions.TABLE_EVENTS, partitions.table_episode),
    **dict.fromkeys(partitions.MIGRATION_EVENTS, partitions.migration_episode),
    **dict.fromkeys(partitions.DATA_EVENTS, partitions.data_episode),
    **dict.fromkeys(witness.WITNESS_EVENTS, witness.witness_episode),
}


class Episodes:
    """The episodes of one run, which grow with its records. `name_of` knows members whose start is not among these."""

    def __init__(self, name_of: NameOf = str) -> None:
        self._known = OpenEpisodes(name_of)
        self.revision = 0
        """How many records were taken in."""

    def extend(self, records: Iterable[Record]) -> None:
        known = self._known
        for record in records:
            kind = type(record.event)
            part = part_of(record.event)
            self.revision += 1
            if part == "measurement":
                continue
            rule = RULES.get(kind)
            episode = rule(known, record, record.event) if rule is not None else None
            episode = episode or self._nearest(record, background=part == "background")
            known.keep(episode, record, KINDS[kind], part)

    def of(self, record: Record) -> Episode | None:
        """Return the episode that a record belongs to, as long as that is known; None for what comes by the thousand."""
        return self._known.of(record)

    @property
    def all(self) -> Sequence[Episode]:
        return self._known.episodes

    def latest(self, most: int) -> list[Episode]:
        """Return the last `most` episodes, oldest first."""
        found: deque[Episode] = self._known.episodes
        return list(islice(found, max(0, len(found) - most), None))

    def after(self, number: int) -> list[Episode]:
        """Return those that began after the one of this number, oldest first."""
        return self.latest(max(0, self._known.begun - number))

    @property
    def forgotten(self) -> int:
        """How many of the oldest are not remembered any more."""
        return self._known.begun - len(self._known.episodes)

    def _nearest(self, record: Record, *, background: bool) -> Episode:
        known = self._known
        for found in (known.cause_of(record), known.touched.get(record.member)):
            if found is not None and (background or record.at - found.end_us <= MOMENT_US):
                return found
        words = one_line(with_names(describe_event(record.event, known.label_of), known.label_of))
        return known.begin("other", record, note=f"{one_line(record.member)} {words}")
