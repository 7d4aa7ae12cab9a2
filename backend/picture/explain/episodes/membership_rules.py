"""Which episode a record of an incarnation or of a member list belongs to, and what it adds to it."""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.explain.episodes.open_episodes import MOMENT_US, QUIET_US, START_US, OpenEpisodes
from quarterdeck.backend.picture.explain.episodes.suspicion_rules import suspicion_of

INCARNATION_EVENTS = (
    events.MemberStarted, events.JoinRequested, events.JoinDelayed, events.JoinFailed, events.MemberStopped,
)  # fmt: skip


def incarnation_episode(known: OpenEpisodes, record: Record, event: Event) -> Episode | None:
    """Return the episode of one of `INCARNATION_EVENTS`."""
    label = record.member
    match event:
        case events.MemberStarted():
            return _started(known, record, event)
        case events.JoinFailed(reasons=reasons):
            why = "; ".join(dict.fromkeys(reasons.values())) or "no address to ask"
            episode = known.arriving.get(label) or known.begin("start", record, [label])
            episode.failure = known.words(f"{label} gives up joining: {why}")
            return episode
        case events.MemberStopped() if event.cause != "could-not-join":
            befalling = known.befalling(label)
            if befalling is None or befalling.kind != "stop":
                befalling = known.begin("stop", record, [label])
            return befalling
    return known.arriving.get(label)


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


LIST_EVENTS = (
    events.ListInstalled, events.MemberRemoved, events.MemberAdmitted, events.MemberHeldBack, events.MasterChanged,
)  # fmt: skip


def list_episode(known: OpenEpisodes, record: Record, event: Event) -> Episode | None:
    """Return the episode of one of `LIST_EVENTS`."""
    match event:
        case events.ListInstalled():
            return _list_installed(known, record, event)
        case events.MemberRemoved(address):
            label = known.label_of(address)
            episode = known.cause_of(record) or suspicion_of(known, record, label, event.cause)
            episode.evidence = episode.evidence or known.evidence(event)
            return _remove(episode, record, record.member, label)
        case events.MemberAdmitted(address):
            label = known.label_of(address)
            found = known.arriving.get(label) or known.cause_of(record)
            if found is not None:
                found.arrived[label] = None
                found.held_back.pop(label, None)
            return found
        case events.MemberHeldBack(address):
            found = known.arriving.get(known.label_of(address))
            if found is not None:
                found.held_back[known.label_of(address)] = None
            return found
        case events.MasterChanged(master):
            if event.cause == "claim-accepted":
                return known.claims.get(known.label_of(master))
            return known.cause_of(record) or known.touched.get(record.member)
    return None


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
    if label in episode.subjects:  # one that starts again may be expected by the episode of its start, too
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
    if event.cause in ("promotion", "demotion"):
        what = "promotes a lite member" if event.cause == "promotion" else "has demoted a member: it holds no data"
        return known.begin("table", record, note=f"{known.label_of(event.master)} {what}")
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
