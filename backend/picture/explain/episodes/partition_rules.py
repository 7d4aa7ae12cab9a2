"""Which episode a record of partitions, migrations or data belongs to, and what it adds to it."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.backend.core.data.events import BackupInStep, BackupOutOfStep, CallFinished, CallStarted, EntriesMerged
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.partitions import events
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.explain.episodes.open_episodes import QUIET_US, OpenEpisodes, Rule


def _table_changed(known: OpenEpisodes, record: Record, event: events.TableChanged) -> Episode | None:
    if event.cause == "arranged" and event.author == record.uuid:
        episode = known.begin("table", record, note=f"{record.member} arranges {event.partitions} partitions")
        known.work[record.uuid] = episode
        return episode
    return known.work.get(event.author)


def _partition_lost(known: OpenEpisodes, record: Record, event: events.PartitionLost) -> Episode | None:
    episode = known.work.get(record.uuid) or known.touched.get(record.member)
    if episode is not None:
        if event.loses_data:
            episode.lost += 1
        else:
            episode.promoted += 1
    return episode


def _planned(known: OpenEpisodes, record: Record, event: events.MigrationsPlanned) -> Episode:
    episode = known.work.get(record.uuid)
    if event.cause == "state-changed":
        episode = known.touched.get(record.member)
    elif event.cause == "unknown" or (episode is not None and not _is_warm(episode, record)):
        episode = None
    if episode is None:
        episode = known.begin("table", record, note=f"{record.member} moves replicas: {known.words(event.why)}")
        known.work[record.uuid] = episode
    known.plans[record.uuid] = episode
    to_do = sum(planned.type != "CLEAR" for planned in event.planned)
    episode.progress.planned = episode.progress.begun + to_do
    return episode


def _is_warm(episode: Episode, record: Record) -> bool:
    return episode.progress.running > 0 or record.at - episode.end_us <= QUIET_US


def _cancelled(known: OpenEpisodes, record: Record, event: events.MigrationsCancelled) -> Episode | None:
    episode = known.plans.get(record.uuid)
    if episode is not None:
        episode.progress.planned = episode.progress.begun
    return episode


def _started(known: OpenEpisodes, record: Record, event: events.MigrationStarted) -> Episode:
    episode = known.plans.get(record.uuid) or _loose(known, record)
    known.keyed["migration", event.migration_id] = episode
    progress = episode.progress
    progress.begun += 1
    progress.planned = max(progress.planned, progress.begun)
    progress.from_us = record.at if progress.from_us is None else progress.from_us
    progress.to_us = record.at
    return episode


def _of_migration(known: OpenEpisodes, record: Record, event: events.MigrationAccepted) -> Episode | None:
    return known.keyed.get(("migration", event.migration_id)) or _loose(known, record)


def _copied(known: OpenEpisodes, record: Record, event: events.MigrationCopied) -> Episode | None:
    episode = known.keyed.get(("migration", event.migration_id)) or _loose(known, record)
    episode.progress.bytes += event.bytes
    return episode


def _end(known: OpenEpisodes, record: Record, migration_id: str, *, committed: bool) -> Episode | None:
    episode = known.keyed.get(("migration", migration_id))
    if episode is not None:
        if committed:
            episode.progress.committed += 1
        else:
            episode.progress.rolled_back += 1
        episode.progress.to_us = record.at
    return episode


def _recovered(known: OpenEpisodes, record: Record, event: events.TableRecovered) -> Episode | None:
    """End the migrations of the former master as its successor settled them."""
    for ids, committed in ((event.committed_ids, True), (event.rolled_back_ids, False)):
        for migration_id in ids:
            _end(known, record, migration_id, committed=committed)
    return known.work.get(record.uuid)


def _evicted(known: OpenEpisodes, record: Record, event: events.CompletedEvicted) -> Episode | None:
    found = [known.keyed.pop(("migration", migration_id)) for migration_id in event.migration_ids]
    return next(filter(None, found), None) or known.work.get(record.uuid)


def _loose(known: OpenEpisodes, record: Record) -> Episode:
    note = "migrations that began before go on"
    return known.named_or_begun(record, QUIET_US, ("loose migrations",), "table", note)


def _drain_started(known: OpenEpisodes, record: Record, event: events.DrainStarted) -> Episode | None:
    label = known.label_of(event.address)
    episode = known.befalling(label)
    if episode is None or episode.kind != "stop":
        episode = known.begin("stop", record, [label])
    known.work[record.uuid] = episode
    return episode


def _call(known: OpenEpisodes, record: Record, event: CallStarted | CallFinished) -> Episode | None:
    episode = known.recent("calls", record, QUIET_US) or known.begin("calls", record)
    if isinstance(event, CallStarted):
        episode.calls += 1
    elif event.problem:
        episode.failed_calls += 1
        episode.failure = episode.failure or known.words(event.problem)
    return episode


def _out_of_step(known: OpenEpisodes, record: Record, event: BackupOutOfStep) -> Episode | None:
    episode = known.recent("backups", record, QUIET_US) or known.begin("backups", record)
    episode.out_of_step.add(event.partition)
    episode.evidence = episode.evidence or known.words(event.reason)
    return episode


def _in_step(known: OpenEpisodes, record: Record, event: BackupInStep) -> Episode | None:
    episode = known.recent("backups", record, QUIET_US) or known.begin("backups", record)
    episode.in_step += 1
    return episode


def _entries_merged(known: OpenEpisodes, record: Record, event: EntriesMerged) -> Episode | None:
    episode = known.arriving.get(record.member) or known.touched.get(record.member)
    if episode is not None:
        episode.offered += event.offered
        episode.taken += event.taken
        episode.failure = episode.failure or event.problem
    return episode


PARTITION_RULES: Mapping[type, Rule] = {
    events.TableChanged: _table_changed,
    events.PartitionLost: _partition_lost,
    events.TableRecoveryStarted: lambda known, record, event: known.work.get(record.uuid),
    events.TableRecovered: _recovered,
    events.MigrationsPlanned: _planned,
    events.MigrationsCancelled: _cancelled,
    events.MigrationStarted: _started,
    events.MigrationAccepted: _of_migration,
    events.MigrationRejected: _of_migration,
    events.MigrationCopied: _copied,
    events.MigrationCommitting: _of_migration,
    events.MigrationDecided: lambda known, record, event: (
        _end(known, record, event.migration_id, committed=event.committed) or _loose(known, record)
    ),
    events.MigrationFinished: _of_migration,
    events.CompletedEvicted: _evicted,
    events.DrainStarted: _drain_started,
    events.DrainFinished: lambda known, record, event: known.befalling(known.label_of(event.address)),
    CallStarted: _call,
    CallFinished: _call,
    BackupOutOfStep: _out_of_step,
    BackupInStep: _in_step,
    EntriesMerged: _entries_merged,
}
