"""Which episode a record of clusters that meet, or of the state of one, belongs to, and what it adds to it."""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.explain.episodes.open_episodes import FORGIVEN_US, QUIET_US, OpenEpisodes

MERGE_EVENTS = (
    events.MergeVerdict, events.MergeStarted, events.MergeAbandoned, events.MemberMerging, events.NotMerging,
)  # fmt: skip


def merge_episode(known: OpenEpisodes, record: Record, event: Event) -> Episode | None:
    """Return the episode of one of `MERGE_EVENTS`."""
    match event:
        case events.MergeVerdict(remote):
            episode, other = _merge_of(known, record, remote), known.label_of(remote)
            if event.decision == "cannot-merge":
                episode.failure = f"{record.member} and {other} cannot merge: {known.words(event.why)}"
                return episode
            loser, winner = (record.member, other) if event.decision == "local-merges" else (other, record.member)
            episode.target = winner
            if not episode.subjects:
                episode.subjects[loser] = None
            return episode
        case events.MergeStarted(target, merging):
            episode = _merge_of(known, record, target)
            episode.target, episode.failure = known.label_of(target), ""
            episode.subjects = dict.fromkeys(map(known.label_of, merging))
            for label in episode.subjects:
                known.arriving[label] = episode
            return episode
        case events.MergeAbandoned(target, reason):
            episode = _merge_of(known, record, target)
            episode.failure = f"given up: {known.words(reason)}"
            return episode
        case events.MemberMerging(target):
            arriving = known.arriving.get(record.member)
            if arriving is None or arriving.kind != "merge":
                arriving = _merge_of(known, record, target)
                arriving.target = known.label_of(target)
            arriving.subjects[record.member] = None
            known.arriving[record.member] = arriving
            return arriving
        case events.NotMerging():
            return known.cause_of(record) or _standstill(known, record, event)
    return None


def _merge_of(known: OpenEpisodes, record: Record, remote: Address) -> Episode:
    """Return the episode in which the cluster of `record.member` and that of `remote` meet."""
    key = ("merge", *sorted((record.member, known.label_of(remote))))
    episode = known.named(record, FORGIVEN_US, *key)
    if episode is None or (episode.arrived and len(episode.arrived) >= len(episode.subjects)):
        episode = known.begin("merge", record)
        known.keyed[key] = episode
    return episode


def _standstill(known: OpenEpisodes, record: Record, event: events.NotMerging) -> Episode | None:
    """Return the episode of why members do not merge: it goes on for the same cause, and ends without a reason."""
    latest = known.latest.get("not-merging")
    same = None
    if latest is not None and (latest.target == event.cause or not event.reason):
        if record.member in latest.subjects or (event.reason and record.at - latest.end_us <= QUIET_US):
            same = latest
    if same is None:
        if not event.reason:
            return None
        same = known.begin("not-merging", record, note=known.words(event.reason))
        same.target = event.cause
    same.subjects[record.member] = None
    if not event.reason:
        same.since_us = record.at
    return same


STATE_EVENTS = (
    *(events.ClusterStateChanged, events.ClusterStateRefused, events.ProtectionChanged),
    events.LiteChangeRefused,
)


def state_episode(known: OpenEpisodes, record: Record, event: Event) -> Episode | None:
    """Return the episode of one of `STATE_EVENTS`."""
    match event:
        case events.ClusterStateChanged(state):
            came = known.arriving.get(record.member)
            if came is not None and came.kind == "merge" and record.at - came.end_us <= QUIET_US:
                return came
            if event.cause in ("list", "joined", "claim-answer"):
                return None
            episode = known.recent("state", record, QUIET_US)
            if episode is None or episode.target != state:
                episode = known.begin("state", record)
                episode.target = state
            episode.subjects[record.member] = None
            return episode
        case events.ClusterStateRefused(wanted, reason):
            episode = known.begin("state", record)
            episode.target, episode.failure = wanted, known.words(reason)
            return episode
        case events.LiteChangeRefused(lite, reason):
            what = "demoted" if lite else "promoted"
            return known.begin("table", record, note=f"{record.member} is not {what}: {known.words(reason)}")
        case events.ProtectionChanged():
            found = known.cause_of(record) or known.touched.get(record.member)
            if found is not None and event.operating:
                found.refusing.pop(record.member, None)
            elif found is not None:
                found.refusing[record.member] = None
            return found
    return None
