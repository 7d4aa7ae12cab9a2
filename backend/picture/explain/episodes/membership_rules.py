"""Which episode a record of an incarnation or of a member list belongs to, and what it adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.explain.episodes.open_episodes import MOMENT_US, QUIET_US, START_US, OpenEpisodes, Rule
from quarterdeck.backend.picture.explain.episodes.suspicion_rules import suspicion_of

# Incarnations


def _started(known: OpenEpisodes, record: Record, event: events.MemberStarted) -> Episode:
    label = record.member
    again = known.incarnations.get(label, record.uuid) != record.uuid
    known.incarnations[label] = record.uuid
    known.call(event.address, label)
    known.list_of.pop(label, None)
    merging = known.cause_of(record) or (known.arriving.get(label) if event.merged_from else None)
    known.forget(label)
    if merging is not None and merging.kind == "merge":
        known.arriving[label] = merging
        return merging
    watched = known.arriving.get(label)
    if watched is not None and watched.kind in ("watch", "start") and watched is known.touched.get(label):
        if record.at - watched.end_us <= MOMENT_US:  # a witness has announced it
            watched.kind = "start"
            known.latest["start"] = watched
            return watched
    latest = known.recent("start", record, START_US)
    if latest is None or latest.again != again or latest is not known.episodes[-1]:
        latest = known.begin("start", record)
        latest.again = again
    latest.subjects[label] = None
    known.arriving[label] = latest
    return latest


def _arriving(known: OpenEpisodes, record: Record, event: Any) -> Episode | None:
    return known.arriving.get(record.member)


def _join_failed(known: OpenEpisodes, record: Record, event: events.JoinFailed) -> Episode:
    reasons = "; ".join(dict.fromkeys(event.reasons.values()))
    episode = known.arriving.get(record.member) or known.begin("start", record, [record.member])
    episode.failure = known.words(f"{record.member} gives up joining: {reasons or 'nobody to ask'}")
    return episode


def _stopped(known: OpenEpisodes, record: Record, event: events.MemberStopped) -> Episode | None:
    if event.cause == "could-not-join":
        return known.arriving.get(record.member)
    episode = known.befalling(record.member)
    if episode is None or episode.kind != "stop":
        episode = known.begin("stop", record, [record.member])
    return episode


# Lists


def _list_installed(known: OpenEpisodes, record: Record, event: events.ListInstalled) -> Episode | None:
    key = (event.lineage, event.version)
    episode = known.keyed.get(key)
    label = record.member
    if episode is None:
        members = frozenset(member.address for member in event.members)
        for member in event.members:
            if member.uuid == record.uuid:
                known.call(member.address, label)
        before = known.list_of.get(label)
        earlier = known.members_of.get(before) if before is not None else None
        episode = known.cause_of(record) or _of_change(known, record, event, members, earlier)
        episode.lists[known.label_of(event.master)] = (event.version, len(members))
        known.keyed[key] = episode
        known.members_of[key] = members
        if event.master == event.author and known.label_of(event.master) == label:
            known.work[record.uuid] = episode
    known.list_of[label] = key
    if known.arriving.get(label) is episode:
        episode.arrived[label] = None
    return episode


def _of_change(
    known: OpenEpisodes,
    record: Record,
    event: events.ListInstalled,
    members: frozenset[Address],
    earlier: frozenset[Address] | None,
) -> Episode:
    """Return the episode of a list that no member has had before, by who came and who went."""
    if earlier is not None:
        gone = sorted(known.label_of(address) for address in earlier - members)
        for label in gone:
            episode = known.befalling(label, record.member)
            if episode is not None and record.at - episode.end_us <= QUIET_US:
                return _remove(episode, record, known.label_of(event.master), label)
        if gone and event.cause != "joined":
            episode = known.begin("suspicion", record, gone)
            episode.evidence = known.words(event.reason)
            for label in gone:
                _remove(episode, record, known.label_of(event.master), label)
            return episode
    came = members - (earlier or frozenset())
    newcomers = [known.label_of(member.address) for member in event.members if member.address in came]
    for label in (*reversed(newcomers), record.member):
        episode = known.arriving.get(label)
        if episode is not None and record.at - episode.end_us <= QUIET_US:
            for newcomer in newcomers:
                if known.arriving.get(newcomer) is episode:
                    episode.arrived[newcomer] = None
            return episode
    if earlier is None or not newcomers:
        return known.touched.get(record.member) or known.begin("join", record, [record.member])
    return known.begin("join", record, newcomers)


def _remove(episode: Episode, record: Record, remover: str, label: str) -> Episode:
    episode.remover = episode.remover or remover
    episode.removed.setdefault(label, record.at)
    return episode


def _removed(known: OpenEpisodes, record: Record, event: events.MemberRemoved) -> Episode:
    label = known.label_of(event.address)
    episode = known.cause_of(record) or suspicion_of(known, record, label, event.cause)
    episode.evidence = episode.evidence or known.evidence(event)
    return _remove(episode, record, record.member, label)


def _admitted(known: OpenEpisodes, record: Record, event: events.MemberAdmitted) -> Episode | None:
    label = known.label_of(event.address)
    episode = known.arriving.get(label) or known.cause_of(record)
    if episode is not None:
        episode.arrived[label] = None
        episode.held_back.pop(label, None)
    return episode


def _held_back(known: OpenEpisodes, record: Record, event: events.MemberHeldBack) -> Episode | None:
    label = known.label_of(event.address)
    episode = known.arriving.get(label)
    if episode is not None:
        episode.held_back[label] = None
    return episode


def _master_changed(known: OpenEpisodes, record: Record, event: events.MasterChanged) -> Episode | None:
    if event.cause == "claim-accepted":
        return known.claims.get(known.label_of(event.master))
    return known.cause_of(record) or known.touched.get(record.member)


MEMBERSHIP_RULES: Mapping[type, Rule] = {
    events.MemberStarted: _started,
    events.JoinRequested: _arriving,
    events.JoinDelayed: _arriving,
    events.JoinFailed: _join_failed,
    events.MemberStopped: _stopped,
    events.ListInstalled: _list_installed,
    events.MemberRemoved: _removed,
    events.MemberAdmitted: _admitted,
    events.MemberHeldBack: _held_back,
    events.MasterChanged: _master_changed,
}
