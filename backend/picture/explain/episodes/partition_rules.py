"""The episode that a record of partitions, migrations, data or a witness belongs to, and its addition to it."""

from __future__ import annotations

from quarterdeck.backend.core.data import events as data
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.partitions import events as partitioning
from quarterdeck.backend.core.witnessed import events as witnessed
from quarterdeck.backend.picture.events.witnessed import connection_text
from quarterdeck.backend.picture.explain.episodes.episode import MOMENT_US, QUIET_US, START_US, Episode, OpenEpisodes

TABLE_EVENTS = (
    partitioning.TableChanged, partitioning.PartitionLost, partitioning.TableRecoveryStarted,
    partitioning.TableRecovered, partitioning.MigrationsPlanned, partitioning.MigrationsCancelled,
    partitioning.DrainStarted, partitioning.DrainFinished,
)  # fmt: skip


def table_episode(known: OpenEpisodes, record: Record, event: Event) -> Episode | None:
    """Return the episode of one of `TABLE_EVENTS`, which a master records of the whole table."""
    match event:
        case partitioning.TableChanged(author=author):
            if event.cause == "arranged" and author == record.uuid:
                note = f"{record.member} arranges {event.partitions} partitions"
                known.work[record.uuid] = known.begin("table", record, note=note)
            return known.work.get(author)
        case partitioning.PartitionLost():
            found = known.work.get(record.uuid) or known.touched.get(record.member)
            if found is not None:
                found.lost += event.loses_data
                found.promoted += not event.loses_data
            return found
        case partitioning.TableRecovered():  # the migrations of the former master end as its successor settled them
            for ids, committed in ((event.committed_ids, True), (event.rolled_back_ids, False)):
                for migration_id in ids:
                    _end(known, record, migration_id, committed=committed)
        case partitioning.MigrationsPlanned():
            return _planned(known, record, event)
        case partitioning.MigrationsCancelled():
            plan = known.plans.get(record.uuid)
            if plan is not None:
                plan.progress.planned = plan.progress.begun
            return plan
        case partitioning.DrainStarted(address):
            label = known.label_of(address)
            befalling = known.befalling(label)
            if befalling is None or befalling.kind != "stop":
                befalling = known.begin("stop", record, [label])
            known.work[record.uuid] = befalling
        case partitioning.DrainFinished(address):
            return known.befalling(known.label_of(address))
    return known.work.get(record.uuid)


def _planned(known: OpenEpisodes, record: Record, event: partitioning.MigrationsPlanned) -> Episode:
    episode = known.work.get(record.uuid)
    if event.cause == "state-changed":
        episode = known.touched.get(record.member)
    elif event.cause == "unknown" or (
        episode is not None and episode.progress.running <= 0 and record.at - episode.end_us > QUIET_US
    ):
        episode = None
    if episode is None:
        episode = known.begin("table", record, note=f"{record.member} moves replicas: {known.words(event.why)}")
        known.work[record.uuid] = episode
    known.plans[record.uuid] = episode
    episode.progress.planned = episode.progress.begun + sum(planned.type != "CLEAR" for planned in event.planned)
    return episode


MIGRATION_EVENTS = (
    partitioning.MigrationStarted, partitioning.MigrationAccepted, partitioning.MigrationRejected,
    partitioning.MigrationCopied, partitioning.MigrationCommitting, partitioning.MigrationDecided,
    partitioning.MigrationFinished, partitioning.CompletedEvicted,
)  # fmt: skip


def migration_episode(known: OpenEpisodes, record: Record, event: Event) -> Episode | None:
    """Return the episode of one of `MIGRATION_EVENTS`, the steps of single migrations."""
    match event:
        case partitioning.MigrationStarted(migration_id):
            episode = known.plans.get(record.uuid) or _loose(known, record)
            known.keyed["migration", migration_id] = episode
            progress = episode.progress
            progress.begun += 1
            progress.planned = max(progress.planned, progress.begun)
            progress.from_us = record.at if progress.from_us is None else progress.from_us
            progress.to_us = record.at
            return episode
        case partitioning.MigrationDecided(migration_id):
            return _end(known, record, migration_id, committed=event.committed) or _loose(known, record)
        case partitioning.CompletedEvicted(ids):
            found = [known.keyed.pop(("migration", migration_id)) for migration_id in ids]
            return next(filter(None, found), None) or known.work.get(record.uuid)
    episode = known.keyed.get(("migration", event.migration_id)) or _loose(known, record)  # type: ignore[union-attr]
    if isinstance(event, partitioning.MigrationCopied):
        episode.progress.bytes += event.bytes
    return episode


def _end(known: OpenEpisodes, record: Record, migration_id: str, *, committed: bool) -> Episode | None:
    episode = known.keyed.get(("migration", migration_id))
    if episode is not None:
        episode.progress.committed += committed
        episode.progress.rolled_back += not committed
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


SOURCES: dict[witnessed.Source, str] = {"logs": "their logs", "client-protocol": "what they report to clients"}

WITNESS_EVENTS = (
    witnessed.MemberWitnessed, witnessed.ConnectionChanged, witnessed.ReplicaMigrated, witnessed.MigrationsRemaining,
    witnessed.MigrationFailed, witnessed.OwnersTold,
)  # fmt: skip


def witness_episode(known: OpenEpisodes, record: Record, event: Event) -> Episode | None:
    """Return the episode of one of `WITNESS_EVENTS`."""
    match event:
        case witnessed.MemberWitnessed():
            return _witnessed(known, record, event)
        case witnessed.ConnectionChanged():
            return _connection(known, record, event)
        case witnessed.ReplicaMigrated():
            return _migrated(known, record, event)
        case witnessed.OwnersTold():
            return known.touched.get(record.member)
    return known.recent("table", record, QUIET_US)


def _witnessed(known: OpenEpisodes, record: Record, event: witnessed.MemberWitnessed) -> Episode | None:
    label = record.member
    known.witnessed.add(record.uuid)
    if known.incarnations.get(label) == record.uuid:
        return known.touched.get(label)
    again = label in known.incarnations
    known.incarnations[label] = record.uuid
    known.list_of.pop(label, None)
    known.forget(label)
    episode = known.arriving.get(label)
    if episode is None or episode.kind != "merge" or record.at - episode.end_us > QUIET_US:
        latest = known.recent("watch", record, START_US)  # a start that is known follows at once
        episode = latest if latest is not None and latest.again == again else known.begin("watch", record)
        episode.again, episode.target = again, " and ".join(SOURCES[source] for source in event.sources)
    episode.subjects[label] = None
    known.arriving[label] = episode
    return episode


def _connection(known: OpenEpisodes, record: Record, event: witnessed.ConnectionChanged) -> Episode | None:
    label = record.member
    arriving = known.arriving.get(label)
    if event.state in ("connected", "merging") and arriving is not None and record.at - arriving.end_us <= QUIET_US:
        return arriving
    befalling = known.befalling(label)
    explains = befalling is not None and befalling.kind in ("kill", "stop", "pause", "suspicion")
    if befalling is not None and explains and event.state != "connected" and record.at - befalling.end_us <= QUIET_US:
        return befalling
    episode = known.recent("connection", record, MOMENT_US)
    if episode is None or episode.target != event.state:
        episode = known.begin("connection", record)
        episode.target = event.state
        episode.note = known.words(connection_text(event))
    known.add_subject(episode, label)
    return episode


def _migrated(known: OpenEpisodes, record: Record, event: witnessed.ReplicaMigrated) -> Episode:
    episode = known.work.get(record.uuid)
    if episode is None or record.at - episode.end_us > QUIET_US:
        episode = known.recent("table", record, QUIET_US)
    if episode is None:
        episode = known.begin("table", record, note="replicas move")
    progress = episode.progress
    progress.from_us = record.at - event.took if progress.from_us is None else progress.from_us
    progress.to_us = record.at
    progress.begun += 1
    progress.planned = max(progress.planned, progress.begun, event.planned_count)
    progress.committed += event.succeeded
    progress.rolled_back += not event.succeeded
    return episode
