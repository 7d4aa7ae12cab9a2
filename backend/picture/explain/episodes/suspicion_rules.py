"""Which episode a record of a suspicion or of a claim of mastership belongs to, and what it adds to it."""

from __future__ import annotations

from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.explain.episodes.episode import Episode, EpisodeKind
from quarterdeck.backend.picture.explain.episodes.open_episodes import MOMENT_US, QUIET_US, OpenEpisodes

SUSPICION_EVENTS = (
    events.HeartbeatLate, events.SuspicionRaised, events.SuspicionCleared, events.ListRejected, events.ComplaintSent,
    events.ExplicitSuspicionSent, events.ExplicitSuspicionReceived, events.ObserverPaused,
    events.DisconnectionReported, events.DisconnectionResolved,
)  # fmt: skip


def suspicion_episode(known: OpenEpisodes, record: Record, event: Event) -> Episode | None:
    """Return the episode of one of `SUSPICION_EVENTS`."""
    observer = record.member
    match event:
        case events.HeartbeatLate(address, over=True):
            label = known.label_of(address)
            episode = known.befalling(label, observer) or known.begin("late", record, [label])
            episode.trusted_by[observer] = None
            return episode
        case events.HeartbeatLate(address):
            episode = suspicion_of(known, record, known.label_of(address), "no-heartbeat", "late")
            episode.late_at.setdefault(observer, record.at)
            episode.trusted_by.pop(observer, None)
            return episode
        case events.SuspicionRaised(suspect):
            label = known.label_of(suspect)
            episode = known.cause_of(record) or suspicion_of(known, record, label, event.cause)
            if label in episode.subjects:
                episode.observers.setdefault(observer, record.at)
                episode.trusted_by.pop(observer, None)
                episode.evidence = episode.evidence or known.evidence(event)
            return episode
        case events.SuspicionCleared(suspect):
            found = known.befalling(known.label_of(suspect), observer)
            if found is not None:
                found.trusted_by[observer] = None
            return found
        case events.ListRejected(sender=sender):
            return known.befalling(known.label_of(sender), observer)
        case events.ComplaintSent(stranger=stranger):
            return known.befalling(known.label_of(stranger), observer)
        case events.ExplicitSuspicionSent(to):
            return known.befalling(known.label_of(to), observer)
        case events.ExplicitSuspicionReceived(sender):
            return known.befalling(observer) or known.befalling(known.label_of(sender), observer)
        case events.ObserverPaused():
            note = f"{observer} stood still itself, so it suspects no member"
            return known.befalling(observer) or known.begin("other", record, note=note)
        case events.DisconnectionReported(reporter, suspects):
            found = known.watching.get(known.label_of(reporter))
            for suspect in suspects:
                found = found or known.befalling(known.label_of(suspect), known.label_of(reporter))
            return found
        case events.DisconnectionResolved(remove=remove, why=why):
            episode = known.begin("disconnection", record, map(known.label_of, remove))
            episode.evidence, episode.remover = known.words(why), observer
            return episode
    return None


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


CLAIM_EVENTS = (events.ClaimStarted, events.ClaimAnswered, events.ClaimFinished, events.ClaimAbandoned)


def claim_episode(known: OpenEpisodes, record: Record, event: Event) -> Episode | None:
    """Return the episode of one of `CLAIM_EVENTS`."""
    if isinstance(event, events.ClaimStarted):
        return _claim_started(known, record, event)
    episode = known.claims.get(record.member)
    if episode is not None and not isinstance(event, events.ClaimAnswered):
        episode.claim_ended = "leads" if isinstance(event, events.ClaimFinished) else "abandoned"
    return episode


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
