"""May the next member be stopped? Yes, no, or not known, and why.

A graceful stop hands over what only the leaving member has, and a member that ends sooner than that is replaced by the backups of
the others. So a member may be stopped when the cluster is whole, may migrate and does not, and the other copies are there. What
members do not report is a reason for "not known", never for yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.health.cluster_health import ClusterHealth
from quarterdeck.backend.judgement.table_agreement import is_unsettled, table_digests
from quarterdeck.backend.judgement.what_if.blast_radius import loss_of
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import age_text, counted, listed, one_line

QUIET_US = 30 * SECOND_US
"""Members of Hazelcast compare their backups so often: for so long owners must not have changed, and no backup be missing."""
PAUSE_US = 5 * SECOND_US
"""Migrations with a longer time between them are of two rounds."""
FEWEST_MEASURED = 5
"""Of fewer migrations no rate is given."""
NAMED = 4

Answer = Literal["yes", "no", "unknown"]


class StopReason(NamedTuple):
    """Why a member may not be stopped, or why that is not known."""

    kind: str
    text: str
    answer: Literal["no", "unknown"]
    since_us: int | None = None
    """Since when it is so, where that is known."""

    def as_fields(self, now_us: int) -> dict[str, object]:
        since = None if self.since_us is None else round(max(now_us - self.since_us, 0) / SECOND_US, 1)
        return {"kind": self.kind, "text": self.text, "since_seconds": since}


class StopVerdict(NamedTuple):
    """Whether a member may be stopped now."""

    reasons: tuple[StopReason, ...]
    expected_stop_us: int | None
    """How long a graceful stop will take, by the migrations that were seen; None where none were."""

    @property
    def answer(self) -> Answer:
        """No outweighs not known."""
        answers: set[Answer] = {reason.answer for reason in self.reasons}
        return "no" if "no" in answers else "unknown" if answers else "yes"

    def sentence(self, label: str) -> str:
        """Return the verdict on the member called `label` in words."""
        named, reasons = one_line(label), "; ".join(reason.text for reason in self.reasons)
        if self.answer == "no":
            return f"{named} may not be stopped now: {reasons}"
        if self.answer == "unknown":
            return f"not known whether {named} may be stopped: {reasons}"
        took = f"; a graceful stop takes about {age_text(self.expected_stop_us)}" if self.expected_stop_us else ""
        return f"{named} may be stopped{took}"

    def as_fields(self, now_us: int) -> dict[str, object]:
        """Return the fields of the JSON contract."""
        expected = self.expected_stop_us
        return {
            "verdict": self.answer,
            "reasons": [reason.as_fields(now_us) for reason in self.reasons],
            "expected_stop_seconds": None if expected is None else round(expected / SECOND_US, 1),
        }


def may_stop(picture: Picture, health: ClusterHealth, label: str, now_us: int, minimum: int = 1) -> StopVerdict:
    """Judge whether the member called `label` may be stopped at `now_us`, so that at least `minimum` members are left."""
    belief = picture.members.get(label)
    if belief is None or not belief.running:
        state = "was never met" if belief is None else "is not reached or does not run"
        return StopVerdict((StopReason("member", f"{one_line(label)} {state}", "unknown"),), None)
    reasons = (
        *_whole(health),
        *_size(belief, minimum),
        *_links(picture, belief),
        *_state(picture, belief),
        *_migrations(picture, belief, now_us),
        *_tables(picture, belief, now_us),
        *_backups(picture, belief, health, now_us),
    )
    return StopVerdict(reasons, expected_stop_us(picture, belief))


def expected_stop_us(picture: Picture, belief: MemberBelief) -> int | None:
    """Return how long the replicas of a member take to move, at the rate of the latest round of migrations; None if unknown."""
    history = picture.history
    ends = sorted([*(end.at_us for end in history.done), *(end.at_us for end in history.witnessed)])
    began = len(ends) - 1
    while began > 0 and ends[began] - ends[began - 1] <= PAUSE_US:
        began -= 1
    measured = ends[max(began, 0) :]
    if belief.table is None or len(measured) < FEWEST_MEASURED or measured[-1] == measured[0]:
        return None
    held = belief.table.owned_by(belief.uuid) + belief.table.backed_up_by(belief.uuid)
    return round(held * (measured[-1] - measured[0]) / (len(measured) - 1))


def _whole(health: ClusterHealth) -> Iterator[StopReason]:
    if health.condition == "data-lost":
        yield StopReason("data-lost", f"data was lost lately: {health.sentence}", "no")
    elif health.whole is not True:
        yield StopReason("whole", health.sentence, "unknown" if health.whole is None else "no")
    elif health.is_loss_feared:
        yield StopReason("data-lost", f"data may be lost: {health.sentence}", "unknown")


def _size(belief: MemberBelief, minimum: int) -> Iterator[StopReason]:
    left = sum(not member.lite for member in belief.members if member.uuid != belief.uuid)
    wanted = max(minimum, belief.needed)
    if left == 0:
        yield StopReason("size", "it is the only member with data: all of it ends with it", "no")
    elif left < wanted:
        yield StopReason("size", f"{counted(left, 'member')} would be left; {wanted} are wanted at least", "no")


def _links(picture: Picture, belief: MemberBelief) -> Iterator[StopReason]:
    """Members that do not hear each other will fall apart, however well all looks until they notice."""
    listed = {picture.label_of(address) for address in belief.listed}
    cut = [ends for ends, link in picture.links.items() if link.blocked and listed.issuperset(ends)]
    if cut:
        source, target = map(one_line, cut[0])
        more = f" and {counted(len(cut) - 1, 'other link')}" if len(cut) > 1 else ""
        yield StopReason(
            "links", f"the link from {source} to {target}{more} {'is' if len(cut) == 1 else 'are'} cut", "no"
        )


def _state(picture: Picture, belief: MemberBelief) -> Iterator[StopReason]:
    if not belief.shows("cluster-state"):
        text = "the state of the cluster is not reported; nothing migrates unless it is ACTIVE"
        yield StopReason("state", text, "unknown")
    elif belief.cluster_state != "ACTIVE":
        master = picture.master_of(belief.label)
        table = master.table if master is not None and master.table is not None else belief.table
        lost = loss_of(picture, table, [belief.label]).lost if table is not None and belief.shows("backups") else ()
        text = f"the cluster is {belief.cluster_state}: its data would not migrate to others"
        yield StopReason("state", f"{text}; {counted(len(lost), 'partition')} would be lost" if lost else text, "no")


def _migrations(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[StopReason]:
    master = picture.master_of(belief.label)
    if master is None:
        yield StopReason("migrations", "its master is not seen, so what migrates is not known", "unknown")
    elif master.shows("migration-queue"):
        leading = master.leading
        if leading.recovering is not None:
            since_us = leading.recovering.since_us
            yield StopReason("migrations", "the latest partition table is being searched", "no", since_us)
        elif left := leading.waiting + len(leading.running):
            since_us = min((migration.since_us for migration in leading.running.values()), default=now_us)
            yield StopReason("migrations", f"{counted(left, 'migration')} not ended", "no", since_us)
        leaving = [picture.label_of(address) for address in leading.draining if address != belief.address]
        if leaving:
            yield StopReason("leaving", f"{listed(leaving, NAMED)} leaves at this moment", "no")
    elif master.metrics is None:
        yield StopReason("migrations", "how many migrations wait is not reported yet", "unknown")
    elif (waiting := master.metrics.queued_migrations) is None:
        yield StopReason("migrations", "how many migrations wait is not reported", "unknown")
    elif waiting:
        yield StopReason("migrations", f"{counted(waiting, 'task')} in the migration queue", "no", master.metrics_us)
    measured = [other.metrics for other in _running(picture) if other.metrics is not None]
    if missing := max((metrics.cp_missing or 0 for metrics in measured), default=0):
        yield StopReason("cp", f"{counted(missing, 'CP member')} missing: one less may be too few", "no")
    syncing = sum(metrics.replica_syncs or 0 for metrics in measured)
    if syncing:
        yield StopReason("backups", f"{counted(syncing, 'backup')} are being copied", "no")


def _running(picture: Picture) -> list[MemberBelief]:
    return [belief for belief in picture.members.values() if belief.running]


def _is_unarranged(picture: Picture) -> bool:
    """Return whether no member of Hazelcast has a partition: none does before data is stored for the first time."""
    return all(
        belief.table is None and belief.metrics is not None and belief.metrics.owned_partitions == 0
        for belief in _running(picture)
    )


def _tables(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[StopReason]:
    if _is_unarranged(picture):
        return
    digests = table_digests(picture, (other.label for other in _running(picture)), now_us)
    if is_unsettled(picture, now_us):
        yield StopReason("tables", "members report other owners, and it is not known yet whether that lasts", "unknown")
    elif len(digests) > 1:
        sizes = " and ".join(listed(labels, NAMED) for labels in digests.values())
        yield StopReason("tables", f"there are {len(digests)} partition tables: {sizes}", "no")
    table = belief.table
    if belief.witnessed_by and table is None:
        yield StopReason("tables", "its partition table is not reported", "unknown")
    elif belief.witnessed_by and table is not None and (quiet_us := now_us - table.since_us) < QUIET_US:
        text = f"owners are known and unchanged for {age_text(quiet_us)} only; backups are compared every {age_text(QUIET_US)}"
        yield StopReason("tables", text, "unknown", table.since_us)


def _backups(picture: Picture, belief: MemberBelief, health: ClusterHealth, now_us: int) -> Iterator[StopReason]:
    if health.replicas.safe is False:
        yield StopReason("backups", health.replicas.text, "no")
    elif health.replicas.safe is None and not belief.witnessed_by:
        yield StopReason("backups", health.replicas.text, "unknown")
    elif belief.witnessed_by and not _is_unarranged(picture):
        yield from _counted_backups(picture, belief)


def _counted_backups(picture: Picture, belief: MemberBelief) -> Iterator[StopReason]:
    """Compare entries with backups, as members of Hazelcast count them: half a partition's share may be under way."""
    members = _running(picture)
    # The first metrics of a connection are not complete; a member whose later ones name no map has none.
    unknown = [other for other in members if other.metrics is None or not other.metrics.span]
    silent = [other.label for other in unknown if other.data is None]
    stored = [other.data for other in members if other.data is not None]
    entries, backed_up = sum(data.entries for data in stored), sum(data.backup_entries for data in stored)
    if silent:
        yield StopReason("backups", f"{listed(silent, NAMED)} has not reported its entries yet", "unknown")
    elif (by_map := _backups_by_map(members)) is not None:
        yield from _missing_backups(by_map, belief)
    elif entries and not backed_up:
        yield StopReason("backups", f"{entries:,} entries of maps have no backup", "no")
    elif entries and _is_short(backed_up, entries * max(round(backed_up / entries), 1), belief):
        text = f"{backed_up:,} backups of {entries:,} entries"
        unlike = "some are missing, or maps have different numbers of backups"
        yield StopReason("backups", f"{text}: {unlike}", "unknown")


class _MapBackups(NamedTuple):
    entries: int
    backups: int
    backup_entries: int


def _backups_by_map(members: Iterable[MemberBelief]) -> dict[str, _MapBackups] | None:
    """Return what all members together hold of each map; None where the backups of one that has entries are not reported."""
    found: dict[str, _MapBackups] = {}
    for stored in (belief.data for belief in members if belief.data is not None):
        recorded = [(held.entries, held.backup_entries or 0) for held in stored.maps.values()]
        if [sum(counts) for counts in zip(*recorded, strict=True)] != [stored.entries, stored.backup_entries]:
            return None  # not every map is recorded
        for name, held_here in stored.maps.items():
            if held_here.backups is None or held_here.backup_entries is None:
                return None
            known = found.get(name, _MapBackups(0, held_here.backups, 0))
            held = known.backup_entries + held_here.backup_entries
            # A member that owns no entry of the map reports that it has no backups.
            found[name] = _MapBackups(known.entries + held_here.entries, max(known.backups, held_here.backups), held)
    return None if any(held.backup_entries and not held.backups for held in found.values()) else found


def _missing_backups(maps: Mapping[str, _MapBackups], belief: MemberBelief) -> Iterator[StopReason]:
    without = [name for name, held in maps.items() if held.entries and not held.backups]
    if without:
        entries = sum(maps[name].entries for name in without)
        text = f"{listed(list(map(one_line, without)), NAMED)}: {entries:,} entries of maps that have no backup"
        yield StopReason("backups", text, "no")
    for name, held in maps.items():
        if _is_short(held.backup_entries, held.entries * held.backups, belief):
            copies = f"{held.backup_entries:,} backups of {held.entries:,} entries that have {held.backups} each"
            text = f"map {one_line(name)}: {copies}"
            yield StopReason("backups", text, "unknown")


def _is_short(held: int, wanted: int, belief: MemberBelief) -> bool:
    partitions = belief.table.partitions if belief.table is not None else 1
    return wanted - held > max(wanted / partitions / 2, 1)
