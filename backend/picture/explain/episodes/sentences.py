"""An episode as a sentence: the incident, its consequences, and its duration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from quarterdeck.backend.core.causes import NONE_FOUND
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership.partial_disconnection.shrinking_graph import vertices_of
from quarterdeck.backend.picture.events.faults import impairment_text, impairments_of
from quarterdeck.backend.picture.explain.episodes.episode import Episode, EpisodeKind
from quarterdeck.backend.picture.explain.event_index import event_of
from quarterdeck.backend.picture.network.fault_shapes import Shape, links_in, shapes_of
from quarterdeck.backend.picture.text.fact import Tone
from quarterdeck.backend.picture.text.formatting import bytes_text, counted, duration_text, listed, one_line

NAMES_SHOWN = 6
SHAPES_SHOWN = 3

BESIDE_US = 100_000
"""A removal that comes so soon is not said to come after."""


class Sentence(NamedTuple):
    """The text of an episode's line."""

    text: str
    tone: Tone
    events: int
    """How many records it is made of."""


def sentence_of(episode: Episode) -> Sentence:
    """Return the incident so far, as one line without control characters."""
    parts = filter(None, (HEADS[episode.kind](episode), *_outcome(episode)))
    head, *rest = parts
    joint = ", " if ": " in head.replace(f"({episode.evidence})", "") else ": "
    return Sentence(one_line(head + (joint + ", ".join(rest) if rest else "")), _tone(episode), episode.count)


def names(labels: Iterable[str]) -> str:
    """Return the first few of `labels`, and the number of the rest."""
    return listed(list(labels), NAMES_SHOWN)


# What it began with


def _start(episode: Episode) -> str:
    if episode.again:
        return f"{names(episode.subjects)} {_verb(episode.subjects, 'starts', 'start')} again"
    return f"start {names(episode.subjects)}"


def _suspicion(episode: Episode) -> str:
    who = names(episode.subjects)
    because = f" ({episode.evidence})" if episode.evidence else ""
    if episode.claimant and episode.claimant not in episode.subjects:
        return f"{episode.claimant} claims the mastership from {who}{because}"
    if episode.remover:
        waited = max(episode.removed.values(), default=episode.at_us) - episode.at_us
        after = f" after {duration_text(waited)}" if waited > BESIDE_US else ""
        return f"{episode.remover} removes {names(episode.removed)}{after}{because}"
    return f"{names(episode.observers)} {_verb(episode.observers, 'suspects', 'suspect')} {who}{because}"


def _links(episode: Episode) -> str:
    link, labels = event_of(LinkChanged, episode.first), list(episode.places)
    shapes, left = shapes_of(episode.links, episode.links, many_sides=True)
    described = [_shape(shape, labels) for shape in shapes[:SHAPES_SHOWN]]
    if left or len(shapes) > SHAPES_SHOWN:
        described.append("more")
    where, count = " and ".join(described), links_in(episode.links)
    if link.is_plain:
        return f"heal {where}: {counted(count, 'link')}"
    if link.blocked:
        how = "" if link.blocked == "blackhole" else f" ({link.blocked})"
        others = [impairment_text(impairment) for impairment in impairments_of(link) if impairment.kind != "cut"]
        return f"cut {where}: {' and '.join((counted(count, 'link') + how, *others))}"
    return f"{where}: {'the link' if count == 1 else f'each of {count} links'} {episode.target}"


def _shape(shape: Shape, labels: list[str]) -> str:
    sides = [[labels[place] for place in vertices_of(side)] for side in shape.sides]
    spelt = (side[0] if len(side) == 1 else f"{{{names(side)}}}" for side in sides)
    return (" → " if shape.one_way else " | ").join(spelt)


_MERGES = {"merge-started", "member-merging", "merge-abandoned"}
"""Kinds of events of which one shows that a merge has begun."""


def _merge(episode: Episode) -> str:
    who = names(episode.subjects)
    if not episode.target:
        return episode.failure or f"{who} merge"
    if not episode.kinds & _MERGES:  # found out, and not begun
        return f"{who} should merge into the cluster of {episode.target}"
    return f"{who} {_verb(episode.subjects, 'merges', 'merge')} into the cluster of {episode.target}"


def _join_list(episode: Episode) -> str:
    """Say who edited the list of whom, where that is known; a list that was only read is no edit."""
    whose = names(episode.tellers)
    if episode.target:
        return f"{episode.target} edits the join list of {whose}: {episode.note}"
    if episode.again:
        return f"the join list of {whose} was edited: {episode.note}"
    return f"{whose} {_verb(episode.tellers, 'looks', 'look')} for others at {episode.note}"


def _not_merging(episode: Episode) -> str:
    who = names(episode.subjects)
    if episode.target in NONE_FOUND:
        over = f" for {duration_text(episode.since_us - episode.at_us)}" if episode.since_us is not None else ""
        return f"{who} {_verb(episode.subjects, 'finds', 'find')} no other cluster{over}: {episode.note}"
    if episode.since_us is not None:
        return f"{who} did not merge for {duration_text(episode.since_us - episode.at_us)}: {episode.note}"
    return f"{who} {_verb(episode.subjects, 'does', 'do')} not merge: {episode.note}"


def _state(episode: Episode) -> str:
    if episode.failure:
        return f"the cluster does not become {episode.target}"
    return f"the cluster is {episode.target} for {counted(len(episode.subjects), 'member')}"


def _resume(episode: Episode) -> str:
    stood = "" if episode.since_us is None else f" after {duration_text(episode.at_us - episode.since_us)}"
    return f"{names(episode.subjects)} runs on{stood}"


HEADS: Mapping[EpisodeKind, Callable[[Episode], str]] = {
    "start": _start,
    "watch": lambda episode: f"watch {names(episode.subjects)} by {episode.target}",
    "join": lambda episode: f"{names(episode.subjects)} {_verb(episode.subjects, 'joins', 'join')}",
    "stop": lambda episode: f"stop {names(episode.subjects)}",
    "kill": lambda episode: f"kill {names(episode.subjects)}",
    "pause": lambda episode: f"freeze {names(episode.subjects)}",
    "resume": _resume,
    "late": lambda episode: (
        f"no heartbeat from {names(episode.subjects)} at {names(episode.late_at or episode.trusted_by)}"
    ),
    "suspicion": _suspicion,
    "disconnection": lambda episode: (
        f"{episode.remover} settles a partial disconnection: "
        f"{names(episode.subjects)} {_verb(episode.subjects, 'goes', 'go')}"
    ),
    "links": _links,
    "merge": _merge,
    "not-merging": _not_merging,
    "state": _state,
    "table": lambda episode: episode.note,
    "calls": lambda episode: (
        f"clients make {counted(episode.calls, 'call')} in {duration_text(episode.end_us - episode.at_us)}"
    ),
    "backups": lambda episode: (
        f"backups of {counted(len(episode.out_of_step), 'partition')} are out of step: {episode.evidence}"
    ),
    "join-list": _join_list,
    "settings": lambda episode: f"settings of {names(episode.tellers)}: {episode.note}",
    "request": lambda episode: f"{episode.note} at {names(episode.tellers)}",
    "refusal": lambda episode: f"{names(episode.tellers)} refuses {names(episode.subjects)}: {episode.note}",
    "connection": lambda episode: f"{names(episode.subjects)} {episode.note}",
    "other": lambda episode: episode.note,
}


# What came of it


def _outcome(episode: Episode) -> Iterator[str]:
    befalls = episode.kind in ("kill", "pause", "resume", "disconnection", "connection")
    if befalls and episode.observers:
        took = duration_text(max(episode.observers.values()) - episode.at_us)
        yield f"suspected by {len(episode.observers)} in {took}"
    elif befalls and episode.late_at and not episode.removed:
        yield f"no heartbeat at {len(episode.late_at)}"
    if befalls and episode.removed and episode.kind != "disconnection":
        yield _removal(episode)
    if episode.trusted_by and episode.kind in ("late", "suspicion", "pause"):
        yield f"heard again by {len(episode.trusted_by)}"
    if episode.claimant and episode.claimant not in episode.lists:
        if episode.claim_ended == "abandoned":
            yield f"{episode.claimant} gives up its claim"
        elif befalls or episode.claimant in episode.subjects:
            yield f"{episode.claimant} claims the mastership"
    if episode.lists:
        yield _arrivals(episode) if episode.kind in ("start", "watch", "join", "merge") else _lists(episode)
    if episode.held_back:
        yield f"{names(episode.held_back)} held back"
    yield from _data(episode)
    if episode.refusing:
        count = len(episode.refusing)
        yield f"{counted(count, 'member')} {'refuses' if count == 1 else 'refuse'} operations"
    if episode.failure and not (episode.kind == "merge" and not episode.target):
        yield f"{episode.failed_calls} failed: {episode.failure}" if episode.failed_calls else episode.failure


def _removal(episode: Episode) -> str:
    if not episode.removed.keys() <= episode.subjects.keys():
        return f"{episode.remover} removes {names(episode.removed)}"
    took = duration_text(max(episode.removed.values()) - episode.at_us)
    return f"{episode.remover} removes {'it' if len(episode.removed) == 1 else 'them'} after {took}"


def _lists(episode: Episode) -> str:
    """Return the lists that came of it, each with its master where the sentence has not named that one."""
    named = {episode.remover, episode.claimant if episode.claimant not in episode.subjects else ""} - {""}
    if episode.kind in ("kill", "pause", "resume"):
        named = {episode.remover} - {episode.claimant}
    said = []
    for master, (version, size) in episode.lists.items():
        led = "" if master in named or (episode.kind == "stop" and len(episode.lists) == 1) else f"{master} leads "
        said.append(f"{led}v{version} of {size}")
    return ", ".join(said)


def _arrivals(episode: Episode) -> str:
    master, (version, size) = next(reversed(episode.lists.items()))
    missing = len(episode.subjects) - len(episode.arrived)
    said = f"v{version} of {size}" + (f", master {master}" if episode.kind != "merge" else "")
    if missing > 0:
        return f"{said}, {missing} of {len(episode.subjects)} not there yet"
    return said if episode.progress.begun else f"{said} in {duration_text(episode.end_us - episode.at_us)}"


def _data(episode: Episode) -> Iterator[str]:
    progress = episode.progress
    if progress.planned or progress.begun:
        total = max(progress.planned, progress.begun)
        ended = progress.committed + progress.rolled_back
        size = f", {bytes_text(progress.bytes)}" if progress.bytes else ""
        if ended >= total and progress.from_us is not None:
            took = duration_text(progress.to_us - progress.from_us)
            yield f"{counted(progress.committed, 'migration')} in {took}{size}"
        else:
            yield f"{progress.committed} of {counted(total, 'migration')}{size}"
        if progress.rolled_back:
            yield f"{progress.rolled_back} rolled back"
    if episode.promoted:
        yield f"{counted(episode.promoted, 'backup')} {'takes' if episode.promoted == 1 else 'take'} over"
    if episode.lost:
        yield f"{counted(episode.lost, 'partition')} lost"
    if episode.in_step:
        yield f"{episode.in_step} copied anew"
    if episode.offered:
        yield f"{episode.taken} of {counted(episode.offered, 'entry', 'entries')} taken over"


def _tone(episode: Episode) -> Tone:
    kind = episode.kind
    if episode.lost or (episode.failure and kind in ("start", "merge", "state")):
        return "bad"
    if kind == "suspicion":
        settled = not episode.removed and not episode.claimant and episode.trusted_by
        return "good" if settled else "bad"
    if kind == "late":
        return "good" if episode.late_at.keys() <= episode.trusted_by.keys() else "warning"
    if kind == "not-merging" and (episode.since_us is not None or episode.target in NONE_FOUND):
        return "plain"
    if kind == "connection" and episode.target == "connected":
        return "good"
    if kind in ("pause", "connection") and episode.lists:
        return "bad"
    if kind == "links":
        return "good" if event_of(LinkChanged, episode.first).is_plain else "bad"
    if episode.failed_calls or episode.failure:
        return "warning"
    return TONES.get(kind, "plain")


TONES: Mapping[EpisodeKind, Tone] = {
    "start": "strong", "watch": "strong", "join": "strong", "stop": "strong", "state": "strong",
    "kill": "bad", "disconnection": "bad", "resume": "good", "merge": "good", "calls": "faint",
    "connection": "warning", "pause": "warning", "not-merging": "warning", "backups": "warning", "refusal": "warning",
}  # fmt: skip


def _verb(labels: Iterable[str], one: str, several: str) -> str:
    return one if len(list(labels)) == 1 else several
