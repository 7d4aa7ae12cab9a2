"""The episode that a record of suspicions, claims, incarnations, member lists or merges belongs to, and its addition to it."""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.explain.episodes.episode import (
    FORGIVEN_US,
    MOMENT_US,
    QUIET_US,
    START_US,
    Episode,
    EpisodeKind,
    OpenEpisodes,
)

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
        case (
            events.ListRejected(sender=other)
            | events.ComplaintSent(stranger=other)
            | events.ExplicitSuspicionSent(to=other)
        ):
            return known.befalling(known.label_of(other), observer)
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
    """Return the episode in which `record.member` misses or suspects `label`, a new one when none goes on."""
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
    if not isinstance(event, events.ClaimStarted):
        answered = known.claims.get(record.member)
        if answered is not None and not isinstance(event, events.ClaimAnswered):
            answered.claim_ended = "leads" if isinstance(event, events.ClaimFinished) else "abandoned"
        return answered
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
        episode = known.keyed[key] = known.begin("merge", record)
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
    events.ClusterStateChanged, events.ClusterStateRefused, events.ProtectionChanged, events.LiteChangeRefused,
)  # fmt: skip


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
