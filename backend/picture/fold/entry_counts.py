"""How many entries the members of a side own together, counted only when each has reported after the last change.

Members of Hazelcast report each in its own time. Between a change of the list or of the owners and the next report of each
member, a sum counts entries that moved twice, or not at all. So a count is taken at a fence: every member on the list has
reported since that change, every partition has an owner on the list, and no migration waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from quarterdeck.backend.core.data.events import DataMeasured
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import MemberMeasured
from quarterdeck.backend.picture.fold.belief import MemberBelief

COLLECTED_US = 2 * SECOND_US
"""What arrives so soon after a change may have been collected before it."""
UNCHANGED_US = 30 * SECOND_US
"""What a member has reported still holds if it reports nothing else for so long after a change: metrics come every 5 seconds."""
FIRST_US = 2 * SECOND_US
"""What a member reports so soon after it was first seen is its first report of that, and no change."""
COUNTS_KEPT = 200


class EntryCount(NamedTuple):
    """The entries of all members of one list."""

    at_us: int
    version: int
    """Of the list."""
    members: frozenset[str]
    """The incarnations on it."""
    entries: Mapping[str, int]
    """By map, at the owners."""
    backups: Mapping[str, int]
    """By map, how many backups it is to have, where that is reported."""
    written: Mapping[str, int]
    """By map, the writes that any member has reported in this run so far."""

    def writes_until(self, later: EntryCount, name: str) -> int:
        return later.written.get(name, 0) - self.written.get(name, 0)


class EntryCounts:
    """The latest count of each list."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[int, EntryCount]] = {}
        """By lineage and version, the versions in order."""
        self._written: dict[str, int] = {}

    def copy(self) -> EntryCounts:
        twin = EntryCounts()
        twin._counts = {lineage: counts.copy() for lineage, counts in self._counts.items()}
        twin._written = self._written.copy()
        return twin

    def follow(self, before: str, version: int, lineage: str) -> None:
        """Count on from the list of this version where a member goes on under another master."""
        known = self.latest(before, version)
        if known is not None and lineage not in self._counts:
            self._counts[lineage] = {0: known._replace(version=0)}
            for former in list(self._counts)[:-COUNTS_KEPT]:
                del self._counts[former]

    def latest(self, lineage: str, version: int) -> EntryCount | None:
        """Return the latest count of a list of the lineage that is no newer than this version."""
        counts = self._counts.get(lineage, {})
        return max((count for count in counts.values() if count.version <= version), key=_time, default=None)

    def before(self, lineage: str, version: int, members: Collection[str]) -> EntryCount | None:
        """Return the latest count before the list of this version, if all these members were in it.

        One that has come since may have brought entries.
        """
        count = self.latest(lineage, version - 1) or self.latest(lineage, version)
        return count if count is not None and count.members.issuperset(members) else None

    def take(
        self, reporter: MemberBelief, event: DataMeasured | MemberMeasured, members: Collection[MemberBelief]
    ) -> tuple[EntryCount | None, EntryCount] | None:
        """Apply a report. Return the count before and the new one where it completes a count."""
        if isinstance(event, DataMeasured):
            for part in event.maps:
                self._written[part.map] = self._written.get(part.map, 0) + part.writes
        master = next((other for other in members if other.lineage == reporter.lineage and other.leads), None)
        if master is None or (side := _side(master, members)) is None:
            return None
        before = self.latest(master.lineage, master.version)
        count = _count(side, master.version, self._written, max(belief.at for belief in side))
        counts = self._counts.setdefault(master.lineage, {})
        counts[master.version] = count
        for version in list(counts)[:-COUNTS_KEPT]:
            del counts[version]
        return before, count


def _time(count: EntryCount) -> int:
    return count.at_us


def _side(master: MemberBelief, members: Collection[MemberBelief]) -> list[MemberBelief] | None:
    """Return the members on the list of `master` if each has reported since the last change; else None."""
    table, known = master.table, {belief.uuid: belief for belief in members if belief.lineage == master.lineage}
    if table is None or (master.metrics is not None and master.metrics.queued_migrations):
        return None
    side = [known.get(member.uuid) for member in master.members]
    found = [belief for belief in side if belief is not None and belief.running and belief.version == master.version]
    if len(found) < len(side) or sum(table.owned_by(belief.uuid) for belief in found) < table.partitions:
        return None
    changes = ((belief.list_since_us, belief.started_us) for belief in found)
    changed_us = [
        at_us for at_us, begun_us in (*changes, (table.since_us, master.started_us)) if at_us - begun_us > FIRST_US
    ]
    since_us = max(changed_us, default=-COLLECTED_US)
    return found if all(_has_reported(belief, since_us, max(one.at for one in found)) for belief in found) else None


def _has_reported(belief: MemberBelief, since_us: int, now_us: int) -> bool:
    if belief.data is not None and belief.data.at_us >= since_us + COLLECTED_US:
        return True
    return belief.metrics is not None and belief.metrics.span > 0 and now_us >= since_us + UNCHANGED_US


def _count(side: Collection[MemberBelief], version: int, written: Mapping[str, int], at_us: int) -> EntryCount:
    entries: dict[str, int] = {}
    backups: dict[str, int] = {}
    for data in (belief.data for belief in side if belief.data is not None):
        for name, stored in data.maps.items():
            entries[name] = entries.get(name, 0) + stored.entries
            if stored.backups is not None:  # a member that owns no entry of a map reports that it has no backups
                backups[name] = max(backups.get(name, 0), stored.backups)
    members = frozenset(belief.uuid for belief in side)
    return EntryCount(at_us, version, members, entries, backups, dict(written))
