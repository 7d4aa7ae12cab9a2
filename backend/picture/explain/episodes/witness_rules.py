"""Which episode a record of a witness belongs to."""

from __future__ import annotations

from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.witnessed import events as witnessed
from quarterdeck.backend.picture.events.witnessed import connection_text
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.explain.episodes.open_episodes import MOMENT_US, QUIET_US, START_US, OpenEpisodes

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
    if (
        befalling is not None
        and befalling.kind in ("kill", "stop", "pause", "suspicion")
        and event.state != "connected"
    ):
        if record.at - befalling.end_us <= QUIET_US:
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
    if event.succeeded:
        progress.committed += 1
    else:
        progress.rolled_back += 1
    return episode
