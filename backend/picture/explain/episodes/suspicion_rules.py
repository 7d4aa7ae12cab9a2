"""Which episode a record of a suspicion or of a claim of mastership belongs to, and what it adds to it."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.explain.episodes.episode import Episode, EpisodeKind
from quarterdeck.backend.picture.explain.episodes.open_episodes import MOMENT_US, QUIET_US, OpenEpisodes, Rule


def suspicion_of(
    known: OpenEpisodes, record: Record, label: str, cause: str, kind: EpisodeKind = "suspicion"
) -> Episode:
    """Return the episode in which `record.member` misses or suspects `label`, a new one when there is none that goes on."""
    observer = record.member
    found = known.befalling(label, observer)
    if found is not None and not _is_over(found, record, kind):
        if found.kind == kind:
            known.watching[observer] = found
        return found
    watching = known.watching.get(observer)
    if watching is not None and watching.kind == kind and record.at - watching.end_us <= MOMENT_US:
        if label not in watching.observers and label not in watching.late_at and not watching.lists:
            known.add_subject(watching, label)
            return watching
    episode = known.begin("stop" if cause == "goodbye" else kind, record, [label])
    known.watching[observer] = episode
    return episode


def _is_over(episode: Episode, record: Record, kind: EpisodeKind) -> bool:
    """Return whether this is another episode: so long after the rest it would stand too far up to be seen."""
    if episode.kind == "late":
        return kind != "late" or episode.late_at.keys() <= episode.trusted_by.keys()
    if episode.kind == "suspicion" and not episode.lists and episode.observers:
        if episode.observers.keys() <= episode.trusted_by.keys():
            return True
    return record.at - episode.end_us > QUIET_US


def _late(known: OpenEpisodes, record: Record, event: events.HeartbeatLate) -> Episode:
    label = known.label_of(event.address)
    if event.over:
        episode = known.befalling(label, record.member) or known.begin("late", record, [label])
        episode.trusted_by[record.member] = None
        return episode
    episode = suspicion_of(known, record, label, "no-heartbeat", "late")
    episode.late_at.setdefault(record.member, record.at)
    episode.trusted_by.pop(record.member, None)
    return episode


def _raised(known: OpenEpisodes, record: Record, event: events.SuspicionRaised) -> Episode:
    label = known.label_of(event.suspect)
    episode = known.cause_of(record) or suspicion_of(known, record, label, event.cause)
    if label in episode.subjects:
        episode.observers.setdefault(record.member, record.at)
        episode.trusted_by.pop(record.member, None)
        episode.evidence = episode.evidence or known.evidence(event)
    return episode


def _cleared(known: OpenEpisodes, record: Record, event: events.SuspicionCleared) -> Episode | None:
    episode = known.befalling(known.label_of(event.suspect), record.member)
    if episode is not None:
        episode.trusted_by[record.member] = None
    return episode


def _is_asked(known: OpenEpisodes, record: Record, event: events.ExplicitSuspicionReceived) -> Episode | None:
    sender = known.label_of(event.sender)
    return known.befalling(record.member) or known.befalling(sender, record.member)


def _observer_paused(known: OpenEpisodes, record: Record, event: events.ObserverPaused) -> Episode | None:
    return known.befalling(record.member) or known.begin(
        "other", record, note=f"{record.member} stood still itself, so it suspects no member"
    )


def _reported(known: OpenEpisodes, record: Record, event: events.DisconnectionReported) -> Episode | None:
    reporter = known.label_of(event.reporter)
    found = known.watching.get(reporter)
    for suspect in event.suspects:
        found = found or known.befalling(known.label_of(suspect), reporter)
    return found


def _resolved(known: OpenEpisodes, record: Record, event: events.DisconnectionResolved) -> Episode:
    episode = known.begin("disconnection", record, map(known.label_of, event.remove))
    episode.evidence, episode.remover = known.words(event.why), record.member
    return episode


# Claims


def _claim_started(known: OpenEpisodes, record: Record, event: events.ClaimStarted) -> Episode:
    suspected = [known.label_of(address) for address in event.suspected]
    episode = known.cause_of(record)
    for label in suspected:
        episode = episode or known.befalling(label, record.member)
    if episode is None or (episode.claimant not in ("", record.member) and episode.claim_ended):
        episode = known.begin("suspicion", record, suspected)
    elif episode.kind == "suspicion" and record.member not in episode.subjects:
        for label in suspected:
            known.add_subject(episode, label)
    episode.claimant, episode.claim_ended = record.member, ""
    known.claims[record.member] = episode
    return episode


def _claim_finished(known: OpenEpisodes, record: Record, event: events.ClaimFinished) -> Episode | None:
    episode = known.claims.get(record.member)
    if episode is not None:
        episode.claim_ended = "leads"
    return episode


def _claim_abandoned(known: OpenEpisodes, record: Record, event: events.ClaimAbandoned) -> Episode | None:
    episode = known.claims.get(record.member)
    if episode is not None:
        episode.claim_ended = "abandoned"
    return episode


SUSPICION_RULES: Mapping[type, Rule] = {
    events.ListRejected: lambda known, record, event: known.befalling(known.label_of(event.sender), record.member),
    events.SuspicionRaised: _raised,
    events.SuspicionCleared: _cleared,
    events.HeartbeatLate: _late,
    events.ExplicitSuspicionSent: lambda known, record, event: (
        known.cause_of(record) or known.befalling(known.label_of(event.to), record.member)
    ),
    events.ExplicitSuspicionReceived: _is_asked,
    events.ComplaintSent: lambda known, record, event: known.befalling(known.label_of(event.stranger), record.member),
    events.ObserverPaused: _observer_paused,
    events.DisconnectionReported: _reported,
    events.DisconnectionResolved: _resolved,
    events.ClaimStarted: _claim_started,
    events.ClaimAnswered: lambda known, record, event: known.claims.get(record.member),
    events.ClaimFinished: _claim_finished,
    events.ClaimAbandoned: _claim_abandoned,
}
