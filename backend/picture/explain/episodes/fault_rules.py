"""The episode that a record of a fault, a request or a setting belongs to."""

from __future__ import annotations

from quarterdeck.backend.core.events import (
    Event,
    JournalChanged,
    MembersExpected,
    OperatorAsked,
    ProcessKilled,
    ProcessPaused,
    ProcessResumed,
    Record,
    StrangerRefused,
)
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.events.faults import condition_text, journal_text, request_text
from quarterdeck.backend.picture.explain.episodes.episode import FORGIVEN_US, MOMENT_US, Episode, OpenEpisodes

READ_US = 35_000_000
"""The configuration of each witnessed member is read so often at least, at its own moment."""


FAULT_EVENTS = (ProcessKilled, ProcessPaused, ProcessResumed, LinkChanged, JournalChanged, MembersExpected)


def fault_episode(known: OpenEpisodes, record: Record, event: Event) -> Episode | None:
    """Return the episode of one of `FAULT_EVENTS`: faults of the processes of members and of their links."""
    match event:
        case LinkChanged():
            condition = condition_text(event)
            episode = known.recent("links", record, MOMENT_US)
            if episode is None or episode.target != condition:
                episode = known.begin("links", record)
                episode.target = condition
            source, target = (
                episode.places.setdefault(label, len(episode.places)) for label in (event.source, event.target)
            )
            episode.links[source] = episode.links.get(source, 0) | 1 << target
            return episode
        case ProcessKilled(label):
            latest = known.latest.get("kill")
            if latest is not None and record.at - latest.at_us <= MOMENT_US and not latest.lists:
                known.add_subject(latest, label)
                return latest
            return known.begin("kill", record, [label])
        case ProcessPaused(label):
            return known.begin("pause", record, [label])
        case ProcessResumed(label):
            frozen = known.befalling(label)
            episode = known.begin("resume", record, [label])
            if frozen is not None and frozen.kind == "pause":
                episode.since_us = frozen.at_us
            return episode
        case JournalChanged():
            return known.begin("other", record, note=f"the journal of {event.target} {journal_text(event)}")
        case MembersExpected(size):
            return known.begin("other", record, note=f"{size} members are accepted as the size of the cluster")
    return None


REQUEST_EVENTS = (
    OperatorAsked, StrangerRefused, events.JoinListChanged, events.SettingsChanged, events.AddressUnusable,
)  # fmt: skip


def request_episode(known: OpenEpisodes, record: Record, event: Event) -> Episode | None:
    """Return the episode of one of `REQUEST_EVENTS`: requests to members, and their configuration."""
    match event:
        case events.JoinListChanged():
            return _join_list_changed(known, record, event)
        case events.SettingsChanged(properties):
            said = ", ".join(f"{name} {value}" for name, value in sorted(properties.items()))
            return known.named_or_begun(record, MOMENT_US, ("settings", said), "settings", said)
        case OperatorAsked():
            said = request_text(event)
            episode = known.named_or_begun(record, MOMENT_US, ("request", said), "request", said)
            episode.failure = episode.failure or ("" if event.granted else event.reason or "refused")
            return episode
        case StrangerRefused(remote, reason, cause):
            key = ("refusal", record.member, cause)
            episode = known.named_or_begun(record, FORGIVEN_US, key, "refusal", reason)
            episode.subjects[remote] = None
            return episode
        case events.AddressUnusable(address):
            came = known.arriving.get(record.member)
            if came is not None and came.at_us <= record.at <= came.end_us + MOMENT_US:
                return came
            note = known.words(f"no member to join at {address}: {event.reason}")
            return known.named_or_begun(record, FORGIVEN_US, ("address", address, event.cause), "other", note)
    return None


def _join_list_changed(known: OpenEpisodes, record: Record, event: events.JoinListChanged) -> Episode:
    # A witnessed member shows its list and no author: an edit is seen at each of them when its configuration is read.
    witnessed = record.uuid in known.witnessed
    author = None if witnessed or not event.edition else event.author
    key = ("join list", author, bool(event.edition) if witnessed else event.edition, event.addresses)
    episode = known.named(record, READ_US if witnessed else MOMENT_US, *key)
    if episode is None:
        episode = known.begin("join-list", record)
        episode.note = ", ".join(map(known.label_of, event.addresses)) or "no address"
        episode.target = known.label_of(author) if author is not None else ""
        episode.again = event.edition > 0
        if author is not None:
            episode.note += f" (edition {event.edition})"
        known.keyed[key] = episode
    return episode
