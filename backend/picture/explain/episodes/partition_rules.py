"""Which episode a record of partitions, migrations or data belongs to, and what it adds to it."""

from __future__ import annotations

from quarterdeck.backend.core.data import events as data
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.partitions import events
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.explain.episodes.open_episodes import QUIET_US, OpenEpisodes

TABLE_EVENTS = (
    events.TableChanged, events.PartitionLost, events.TableRecoveryStarted, events.TableRecovered,
    events.MigrationsPlanned, events.MigrationsCancelled, events.DrainStarted, events.DrainFinished,
)  # fmt: skip


def table_episode(known: OpenEpisodes, record: Record, event: Event) -> Episode | None:
    """Return the episode of one of `TABLE_EVENTS`, which a master records of the whole table."""
    match event:
        case events.TableChanged(author=author):
            if event.cause == "arranged" and author == record.uuid:
                note = f"{record.member} arranges {event.partitions} partitions"
                known.work[record.uuid] = known.begin("table", record, note=note)
            return known.work.get(author)
        case events.PartitionLost():
            found = known.work.get(record.uuid) or known.touched.get(record.member)
            if found is not None:
                found.lost += event.loses_data
                found.promoted += not event.loses_data
            return found
        case events.TableRecovered():  # the migrations of the former master end as its successor settled them
            for ids, committed in ((event.committed_ids, True), (event.rolled_back_ids, False)):
                for migration_id in ids:
                    _end(known, record, migration_id, committed=committed)
        case events.MigrationsPlanned():
            return _planned(known, record, event)
        case events.MigrationsCancelled():
            plan = known.plans.get(record.uuid)
            if plan is not None:
                plan.progress.planned = plan.progress.begun
            return plan
        case events.DrainStarted(address):
            label = known.label_of(address)
            befalling = known.befalling(label)
            if befalling is None or befalling.kind != "stop":
                befalling = known.begin("stop", record, [label])
            known.work[record.uuid] = befalling
        case events.DrainFinished(address):
            return known.befalling(known.label_of(address))
    return known.work.get(record.uuid)


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


MIGRATION_EVENTS = (
    events.MigrationStarted, events.MigrationAccepted, events.MigrationRejected, events.MigrationCopied,
    events.MigrationCommitting, events.MigrationDecided, events.MigrationFinished, events.CompletedEvicted,
)  # fmt: skip


def migration_episode(known: OpenEpisodes, record: Record, event: Event) -> Episode | None:
    """Return the episode of one of `MIGRATION_EVENTS`, the steps of single migrations."""
    match event:
        case events.MigrationStarted(migration_id):
            episode = known.plans.get(record.uuid) or _loose(known, record)
            known.keyed["migration", migration_id] = episode
            progress = episode.progress
            progress.begun += 1
            progress.planned = max(progress.planned, progress.begun)
            progress.from_us = record.at if progress.from_us is None else progress.from_us
            progress.to_us = record.at
            return episode
        case events.MigrationDecided(migration_id):
            return _end(known, record, migration_id, committed=event.committed) or _loose(known, record)
        case events.CompletedEvicted(ids):
            found = [known.keyed.pop(("migration", migration_id)) for migration_id in ids]
            return next(filter(None, found), None) or known.work.get(record.uuid)
    episode = known.keyed.get(("migration", event.migration_id)) or _loose(known, record)  # type: ignore[union-attr]
    if isinstance(event, events.MigrationCopied):
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


def _loose(known: OpenEpisodes, record: Record) -> Episode:
    note = "migrations that began before go on"
    return known.named_or_begun(record, QUIET_US, ("loose migrations",), "table", note)


DATA_EVENTS = (data.CallStarted, data.CallFinished, data.BackupOutOfStep, data.BackupInStep, data.EntriesMerged)


def data_episode(known: OpenEpisodes, record: Record, event: Event) -> Episode | None:
    """Return the episode of one of `DATA_EVENTS`."""
    match event:
        case data.CallStarted() | data.CallFinished():
            episode = known.recent("calls", record, QUIET_US) or known.begin("calls", record)
            if isinstance(event, data.CallStarted):
                episode.calls += 1
            elif event.problem:
                episode.failed_calls += 1
                episode.failure = episode.failure or known.words(event.problem)
            return episode
        case data.BackupOutOfStep() | data.BackupInStep():
            episode = known.recent("backups", record, QUIET_US) or known.begin("backups", record)
            if isinstance(event, data.BackupInStep):
                episode.in_step += 1
            else:
                episode.out_of_step.add(event.partition)
                episode.evidence = episode.evidence or known.words(event.reason)
            return episode
        case data.EntriesMerged(offered=offered, taken=taken):
            found = known.arriving.get(record.member) or known.touched.get(record.member)
            if found is not None:
                found.offered += offered
                found.taken += taken
                found.failure = found.failure or event.problem
            return found
    return None
