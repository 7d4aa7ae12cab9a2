"""Which episode a record of a fault, a request or a setting belongs to: what operators do to a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.backend.core.events import (
    JournalChanged,
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
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.explain.episodes.open_episodes import FORGIVEN_US, MOMENT_US, OpenEpisodes, Rule

READ_US = 35_000_000
"""The configuration of each witnessed member is read so often at least, at its own moment."""


def _killed(known: OpenEpisodes, record: Record, event: ProcessKilled) -> Episode:
    latest = known.latest.get("kill")
    if latest is not None and record.at - latest.at_us <= MOMENT_US and not latest.lists:
        known.add_subject(latest, event.target)
        return latest
    return known.begin("kill", record, [event.target])


def _resumed(known: OpenEpisodes, record: Record, event: ProcessResumed) -> Episode:
    frozen = known.befalling(event.target)
    episode = known.begin("resume", record, [event.target])
    if frozen is not None and frozen.kind == "pause":
        episode.since_us = frozen.at_us
    return episode


def _link_changed(known: OpenEpisodes, record: Record, event: LinkChanged) -> Episode:
    condition = condition_text(event)
    episode = known.recent("links", record, MOMENT_US)
    if episode is None or episode.target != condition:
        episode = known.begin("links", record)
        episode.target = condition
    source, target = (episode.places.setdefault(label, len(episode.places)) for label in (event.source, event.target))
    episode.links[source] = episode.links.get(source, 0) | 1 << target
    return episode


def _join_list_changed(known: OpenEpisodes, record: Record, event: events.JoinListChanged) -> Episode:
    # A witnessed member shows its list and no author: an edit is seen at each of them when its configuration is read.
    witnessed = record.uuid in known.witnessed
    author = None if witnessed or not event.edition else event.author
    key = ("join list", author, bool(event.edition) if witnessed else event.edition, event.addresses)
    episode = known.named(record, READ_US if witnessed else MOMENT_US, *key)
    if episode is None:
        episode = known.begin("join-list", record)
        episode.note = ", ".join(map(known.label_of, event.addresses)) or "nobody"
        episode.target = known.label_of(author) if author is not None else ""
        episode.again = event.edition > 0
        if author is not None:
            episode.note += f" (edition {event.edition})"
        known.keyed[key] = episode
    return episode


def _settings_changed(known: OpenEpisodes, record: Record, event: events.SettingsChanged) -> Episode:
    said = ", ".join(f"{name} {value}" for name, value in sorted(event.properties.items()))
    return known.named_or_begun(record, MOMENT_US, ("settings", said), "settings", said)


def _asked(known: OpenEpisodes, record: Record, event: OperatorAsked) -> Episode:
    said = request_text(event)
    episode = known.named_or_begun(record, MOMENT_US, ("request", said), "request", said)
    episode.failure = episode.failure or ("" if event.granted else event.reason or "refused")
    return episode


def _stranger(known: OpenEpisodes, record: Record, event: StrangerRefused) -> Episode:
    key = ("refusal", record.member, event.cause)
    episode = known.named_or_begun(record, FORGIVEN_US, key, "refusal", event.reason)
    episode.subjects[event.remote] = None
    return episode


def _unusable(known: OpenEpisodes, record: Record, event: events.AddressUnusable) -> Episode | None:
    came = known.arriving.get(record.member)
    if came is not None and came.at_us <= record.at <= came.end_us + MOMENT_US:
        return came
    note = known.words(f"nobody to join at {event.address}: {event.reason}")
    return known.named_or_begun(record, FORGIVEN_US, ("address", event.address, event.cause), "other", note)


FAULT_RULES: Mapping[type, Rule] = {
    ProcessKilled: _killed,
    ProcessPaused: lambda known, record, event: known.begin("pause", record, [event.target]),
    ProcessResumed: _resumed,
    LinkChanged: _link_changed,
    events.JoinListChanged: _join_list_changed,
    events.SettingsChanged: _settings_changed,
    OperatorAsked: _asked,
    StrangerRefused: _stranger,
    events.AddressUnusable: _unusable,
    JournalChanged: lambda known, record, event: known.begin(
        "other", record, note=f"the journal of {event.target} {journal_text(event)}"
    ),
}
