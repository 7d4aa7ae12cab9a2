"""The migrations of every cluster in sight as a table to paint: what runs, what is planned, what failed, what is done.

Every state is a glyph and a word. Of long queues only the beginning becomes rows; the head counts them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.partitions.events import ALL_LOST, MigrationStarted, PlannedMigration
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.losses.loss import TONES
from quarterdeck.backend.picture.events.partitions import NO_HOLDER_TEXT, migration_path_text
from quarterdeck.backend.picture.events.witnessed import migrating_text
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.migrations import (
    WINDOW_S,
    CopiedData,
    EndedMigration,
    MigrationsLed,
    PartitionLoss,
    SeenMigration,
    WitnessedMigration,
)
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import Fact, Sign, Tone, not_told
from quarterdeck.backend.picture.text.formatting import (
    age_text,
    bytes_text,
    counted,
    duration_text,
    names_text,
    one_line,
    with_names,
)

Entry = SeenMigration | PlannedMigration | PartitionLoss | EndedMigration | WitnessedMigration
"""What one row is about."""

RowState = Literal["copying", "committing", "planned", "failed", "lost", "done"]

SIGNS: dict[RowState, Sign] = {
    "copying": Sign("▶", "strong"),
    "committing": Sign("◆", "strong"),
    "planned": Sign("○", "plain"),
    "failed": Sign("✕", "bad"),
    "lost": Sign("∅", "bad"),
    "done": Sign("✓", "good"),
}

NONE_SEEN = "no migration was seen to end"

PLANNED_SHOWN = 50
"""Rows of what is planned."""


class MigrationRow(Struct, frozen=True):
    """One migration, or one partition that was lost. Texts are one line each."""

    key: str
    """That of a migration which has begun stays the same to its end and beyond."""
    state: RowState
    partition: str
    sentence: str
    """All of it in words."""
    note: str = ""
    kind: str = ""
    destination: str = ""
    index: str = ""
    """The replica index at which the destination arrives, after the one from which it comes."""
    displaced: str = ""
    """Whose place that was, and where that one goes."""
    age_us: int | None = None
    """How long it runs, or how long ago it ended; None while it is only planned."""

    @property
    def state_text(self) -> str:
        return f"{SIGNS[self.state].glyph} {self.state}"

    @property
    def facts(self) -> tuple[Fact, ...]:
        facts = (
            Fact("migration", f"{self.partition} {self.kind}".rstrip(), "strong"),
            Fact("state", self.state_text, SIGNS[self.state].tone),
            Fact("to", self.destination),
            Fact("index", self.index),
            Fact("in place of", self.displaced),
            Fact("since", self.age),
            Fact("note", self.note),
            Fact("in words", self.sentence, "faint"),
        )
        return tuple(fact for fact in facts if fact.text)

    @property
    def age(self) -> str:
        """For how long it has been running; empty before it begins."""
        return age_text(self.age_us) if self.age_us is not None else ""


class MigrationBoard(Struct, frozen=True):
    """Heads of all masters that have something to say, then rows: running, planned, lost, failed, done, the latest first.

    Rows are made one by one on demand: of the hundreds that there may be a screen shows a few.
    """

    heads: tuple[Fact, ...]
    entries: Mapping[str, Entry]
    """What the rows are made of, by key."""
    picture: Picture
    now_us: int

    def row(self, key: str) -> MigrationRow:
        """Return the row of this key.

        Raises:
            KeyError: There is no such row.
        """
        picture, now_us = self.picture, self.now_us
        match self.entries[key]:
            case SeenMigration() as running:
                return _running_row(picture, running, now_us)
            case PlannedMigration() as planned:
                return _planned_row(picture, planned, key)
            case PartitionLoss() as lost:
                return _lost_row(lost, key, now_us)
            case WitnessedMigration() as witnessed:
                return _witnessed_row(picture, witnessed, key, now_us)
            case EndedMigration() as ended:
                note = _with_size(f"{duration_text(ended.took_us)}, led by {ended.leader}", ended.copied)
                if ended.reason:
                    note = f"{with_names(ended.reason, picture.label_of)} ({note})"
                return _row(picture, ended.begun, "done" if ended.committed else "failed", now_us - ended.at_us, note)

    @property
    def rows(self) -> tuple[MigrationRow, ...]:
        return tuple(map(self.row, self.entries))


def migration_board(judge: Judge, now_us: int) -> MigrationBoard:
    """Return what is known of migrations at `now_us` on the run's clock."""
    picture, masters = judge.picture, judge.masters
    heads = [
        Fact("", one_line(f"{master.label}: {text}"), tone)
        for master in masters
        for text, tone in led_by(picture, master, now_us)
    ]
    history = picture.history
    heads += [Fact("", f"∅ {loss.account(now_us)}", TONES[loss.state]) for loss in judge.losses if loss.stands]
    if history.failed:
        failed = history.failed[-1]
        lines = f"✕ last failed, {age_text(now_us - failed.at_us)} ago: p{failed.begun.partition}, {failed.reason}"
        heads.append(Fact("", one_line(with_names(lines, picture.label_of)), "bad"))
    entries: dict[str, Entry] = {}
    for master in masters:
        entries |= master.leading.running
    for master in masters:
        for place, planned in enumerate(islice(master.leading.queue(), PLANNED_SHOWN)):
            entries[f"planned {master.label} {place}"] = planned
    for back, lost in enumerate(reversed(history.lost)):
        entries[f"lost {history.lost_count - back}"] = lost
    for ended in chain(reversed(history.failed), reversed(history.done)):
        entries[ended.begun.migration_id] = ended
    ends = history.done_count + history.failed_count
    entries |= {f"witnessed {ends - back}": end for back, end in enumerate(reversed(history.witnessed))}
    return MigrationBoard(tuple(heads) or (Fact("", _silence(judge), "faint"),), entries, picture, now_us)


def led_by(picture: Picture, master: MemberBelief, now_us: int) -> Iterator[tuple[str, Tone]]:
    """Yield what a master leads, a sentence each, and how grave that is; nothing when it has not led anything yet."""
    leading, name_of = master.leading, picture.label_of
    if leading.recovering is not None:
        asked, since = names_text(leading.recovering.asked, name_of), age_text(now_us - leading.recovering.since_us)
        yield f"asks {asked} for the latest table since {since}", "warning"
    for address, since_us in leading.draining.items():
        since = age_text(now_us - since_us)
        yield f"moves all data off {name_of(address)} since {since}, so that it may leave", "warning"
    if leading.busy or leading.done or leading.failed or leading.ever_planned:
        running, ended = f"{len(leading.running)} running, {leading.waiting} planned", f"{leading.done} done"
        is_done = leading.ever_planned and not leading.busy and not leading.cancelled
        yield f"{running}, {ended}, {leading.failed} failed{'; all of its plan is done' if is_done else ''}", "plain"
    if progress := plan_text(leading, picture, now_us):
        yield progress, "strong"
    why = with_names(leading.why, name_of)
    if leading.cancelled:
        yield f"dropped {leading.cancelled} planned: {why}", "warning"
    elif leading.moves or why:
        copies = f"{counted(leading.moves, 'replica')} to copy, {leading.lower_bound} places to fill at least"
        yield f"latest plan, {copies}: {why}", "plain"


def progress_text(masters: Sequence[MemberBelief]) -> str:
    """How much is under way, in a few words; empty when nothing is."""
    leading = [master.leading for master in masters]
    running, waiting = sum(len(led.running) for led in leading), sum(led.waiting for led in leading)
    recovering = "searching the latest table" if any(led.recovering for led in leading) else ""
    moving = f"{running} migrating, {waiting} planned" if running or waiting else ""
    return ", ".join(filter(None, (recovering, moving, waiting_text(masters, idle=""))))


def waiting_text(masters: Sequence[MemberBelief], idle: str = "none waits by the master's metrics") -> str:
    """Return how many migrations wait by the metrics of real masters, `idle` if none does; empty where that is not known."""
    known = [
        metrics
        for master in masters
        if (metrics := master.metrics) is not None and metrics.queued_migrations is not None
    ]
    if not known:
        return ""
    return ", ".join(migrating_text(metrics) for metrics in known if metrics.queued_migrations) or idle


def _silence(judge: Judge) -> str:
    picture = judge.picture
    unknown = picture.without("migration-queue")
    if unknown is not None and picture.without("migration-ends") is not None:
        return f"migrations are {not_told('migration-ends', unknown.witnessed_by)}"
    if unknown is not None:
        ended = picture.history.done_count + picture.history.failed_count
        seen = f"seen to end: {counted(ended, 'migration')}" if ended else NONE_SEEN
        waiting = waiting_text(judge.masters)
        which = "; which ones are planned is" if waiting else "; what is planned is"
        return f"{seen}{waiting and '; '}{waiting}{which} {not_told('migration-queue', unknown.witnessed_by)}"
    if any(belief.table for belief in picture.members.values()):
        return "no master has migrated anything yet"
    return "no partitions yet: they are arranged at the first use of data, or when asked for"


def _running_row(picture: Picture, seen: SeenMigration, now_us: int) -> MigrationRow:
    begun = seen.begun
    source = f"data from {picture.label_of(begun.owner)}"
    copied = picture.history.copied.get(begun.migration_id)
    note = _with_size("lowers the replicas, unavoidably" if begun.unavoidable else source, copied)
    return _row(picture, begun, seen.phase, now_us - seen.since_us, note)


def _witnessed_row(picture: Picture, witnessed: WitnessedMigration, key: str, now_us: int) -> MigrationRow:
    moved, name_of = witnessed.migrated, picture.label_of
    source = one_line(name_of(moved.source)) if moved.source else ""
    destination = one_line(name_of(moved.destination)) if moved.destination else NO_HOLDER_TEXT
    note = f"{duration_text(moved.took)}, reported by {one_line(witnessed.teller)}"
    state: RowState = "done" if moved.succeeded else "failed"
    origin, partition = f" from {source}" if source else "", f"p{moved.partition}"
    sentence = f"{partition}: replica {moved.index} to {destination}{origin}; {state}, {note}"
    return MigrationRow(
        key,
        state,
        partition,
        sentence,
        note,
        destination=destination,
        index=str(moved.index),
        displaced=source,
        age_us=now_us - witnessed.at_us,
    )


def _with_size(note: str, copied: CopiedData | None) -> str:
    return f"{note}, {bytes_text(copied.bytes)} copied in {duration_text(copied.took_us)}" if copied else note


def _row(picture: Picture, begun: MigrationStarted, state: RowState, age_us: int, note: str) -> MigrationRow:
    before = f"{begun.destination_current}→" if begun.destination_current >= 0 else ""
    after = f"→{begun.source_new}" if begun.source_new >= 0 else ""
    name_of, partition = picture.label_of, f"p{begun.partition}"
    sentence = one_line(f"{partition} {begun.type}: {migration_path_text(begun, name_of)}; {state}, {note}")
    return MigrationRow(
        begun.migration_id,
        state,
        partition,
        sentence,
        one_line(note),
        kind=begun.type,
        destination=one_line(name_of(begun.destination)),
        index=f"{before}{begun.destination_new}",
        displaced=one_line(f"{name_of(begun.source)}{after}") if begun.source else "",
        age_us=age_us,
    )


def _planned_row(picture: Picture, planned: PlannedMigration, key: str) -> MigrationRow:
    source = one_line(picture.label_of(planned.source)) if planned.source else ""
    destination = one_line(picture.label_of(planned.destination)) if planned.destination else NO_HOLDER_TEXT
    index = str(planned.replica_index)
    note = "lowers the replicas, unavoidably" if planned.unavoidable else ""
    instead = f" in place of {source}" if source else ""
    partition = f"p{planned.partition}"
    what = f"{partition} {planned.type}: {destination} to {index}{instead}"
    sentence = "; ".join(filter(None, (what, "planned", note)))
    return MigrationRow(
        key,
        "planned",
        partition,
        sentence,
        note,
        kind=planned.type,
        destination=destination,
        index=index,
        displaced=source,
    )


def _lost_row(lost: PartitionLoss, key: str, now_us: int) -> MigrationRow:
    partition, reporter = f"p{lost.partition}", one_line(lost.leader)
    if lost.lost_backups >= ALL_LOST:
        note = f"no replica was left, reported by {reporter}"
        sentence = f"{partition} lost all replicas and begins empty; {note}"
    else:
        note = f"for maps with at most {counted(lost.lost_backups, 'backup')}, reported by {reporter}"
        sentence = f"{partition} lost too many replicas, and begins empty {note}"
    return MigrationRow(key, "lost", partition, sentence, note, age_us=now_us - lost.at_us)


BAR_LENGTH = 10

FULL, EMPTY = "▰", "▱"


def plan_text(leading: MigrationsLed, picture: Picture, now_us: int) -> str:
    """Return what a master that has something to migrate has done of its plan, the pace, and the time left; else empty."""
    left = leading.waiting + len(leading.running)
    if not left:
        return ""
    parts = [rate_text(picture, now_us), left_text(leading, picture, now_us)]
    if leading.planned_count:
        ended = max(0, leading.planned_count - left)
        full = BAR_LENGTH * ended // leading.planned_count
        bar = FULL * full + EMPTY * (BAR_LENGTH - full)
        parts.insert(0, f"{bar} {100 * ended // leading.planned_count} % of {leading.planned_count} migrations")
    return ", ".join(filter(None, parts))


def rate_text(picture: Picture, now_us: int) -> str:
    """How many migrations ended in a second, and how much was copied; empty when nothing was in the last seconds."""
    rate = picture.history.rates.at(now_us)
    if not rate.migrations and not rate.bytes:
        return ""
    copied = f", {bytes_text(round(rate.bytes))}/s" if rate.bytes else ""
    return f"{rate.migrations:.3g} migrations/s{copied} over the last {WINDOW_S} s"


def left_text(leading: MigrationsLed, picture: Picture, now_us: int) -> str:
    """How long all that is planned and running will take, if it goes on as in the last seconds."""
    left = leading.waiting + len(leading.running)
    if not left:
        return ""
    if rate := picture.history.rates.at(now_us).migrations:
        return f"about {age_text(max(SECOND_US, round(left / rate * SECOND_US)))} left"
    oldest_us = min((running.since_us for running in leading.running.values()), default=now_us)
    if now_us - oldest_us < WINDOW_S * SECOND_US:
        return "just begun, so there is no telling how long it will take"
    return f"nothing has ended for {WINDOW_S} s, so there is no telling how long it will take"
