"""Which episode a record of clusters that meet, or of the state of one, belongs to, and what it adds to it."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.explain.episodes.open_episodes import FORGIVEN_US, QUIET_US, OpenEpisodes, Rule


def _merge_of(known: OpenEpisodes, record: Record, remote: Address) -> Episode:
    """Return the episode in which the cluster of `record.member` and that of `remote` meet."""
    key = ("merge", *sorted((record.member, known.label_of(remote))))
    episode = known.named(record, FORGIVEN_US, *key)
    if episode is None or (episode.arrived and len(episode.arrived) >= len(episode.subjects)):
        episode = known.begin("merge", record)
        known.keyed[key] = episode
    return episode


def _verdict(known: OpenEpisodes, record: Record, event: events.MergeVerdict) -> Episode:
    episode = _merge_of(known, record, event.remote)
    other = known.label_of(event.remote)
    if event.decision == "cannot-merge":
        episode.failure = f"{record.member} and {other} cannot merge: {known.words(event.why)}"
        return episode
    loser, winner = (record.member, other) if event.decision == "local-merges" else (other, record.member)
    episode.target = winner
    if not episode.subjects:
        episode.subjects[loser] = None
    return episode


def _merge_started(known: OpenEpisodes, record: Record, event: events.MergeStarted) -> Episode:
    episode = _merge_of(known, record, event.target)
    episode.target, episode.failure = known.label_of(event.target), ""
    episode.subjects = dict.fromkeys(map(known.label_of, event.merging))
    for label in episode.subjects:
        known.arriving[label] = episode
    return episode


def _merge_abandoned(known: OpenEpisodes, record: Record, event: events.MergeAbandoned) -> Episode:
    episode = _merge_of(known, record, event.target)
    episode.failure = f"given up: {known.words(event.reason)}"
    return episode


def _merging(known: OpenEpisodes, record: Record, event: events.MemberMerging) -> Episode:
    episode = known.arriving.get(record.member)
    if episode is None or episode.kind != "merge":
        episode = _merge_of(known, record, event.target)
        episode.target = known.label_of(event.target)
    episode.subjects[record.member] = None
    known.arriving[record.member] = episode
    return episode


def _not_merging(known: OpenEpisodes, record: Record, event: events.NotMerging) -> Episode | None:
    caused = known.cause_of(record)
    latest = known.latest.get("not-merging")
    if caused is not None or latest is None:
        same = None
    elif record.member in latest.subjects:
        same = latest if not event.reason or latest.target == event.cause else None
    else:
        same = (
            latest if event.reason and latest.target == event.cause and record.at - latest.end_us <= QUIET_US else None
        )
    if caused is not None or (same is None and not event.reason):
        return caused
    if same is None:
        same = known.begin("not-merging", record, note=known.words(event.reason))
        same.target = event.cause
    same.subjects[record.member] = None
    if not event.reason:
        same.since_us = record.at
    return same


def _state_changed(known: OpenEpisodes, record: Record, event: events.ClusterStateChanged) -> Episode | None:
    came = known.arriving.get(record.member)
    if came is not None and came.kind == "merge" and record.at - came.end_us <= QUIET_US:
        return came
    if event.cause in ("list", "joined", "claim-answer"):
        return None
    episode = known.recent("state", record, QUIET_US)
    if episode is None or episode.target != event.state:
        episode = known.begin("state", record)
        episode.target = event.state
    episode.subjects[record.member] = None
    return episode


def _state_refused(known: OpenEpisodes, record: Record, event: events.ClusterStateRefused) -> Episode:
    episode = known.begin("state", record)
    episode.target, episode.failure = event.wanted, known.words(event.reason)
    return episode


def _protection(known: OpenEpisodes, record: Record, event: events.ProtectionChanged) -> Episode | None:
    episode = known.cause_of(record) or known.touched.get(record.member)
    if episode is not None:
        if event.operating:
            episode.refusing.pop(record.member, None)
        else:
            episode.refusing[record.member] = None
    return episode


MERGE_RULES: Mapping[type, Rule] = {
    events.MergeVerdict: _verdict,
    events.MergeStarted: _merge_started,
    events.MergeAbandoned: _merge_abandoned,
    events.MemberMerging: _merging,
    events.NotMerging: _not_merging,
    events.ClusterStateChanged: _state_changed,
    events.ClusterStateRefused: _state_refused,
    events.ProtectionChanged: _protection,
}
