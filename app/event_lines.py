"""Events as lines of the tail: in columns, with the run's clock or UTC, searched by words and fields; and one event in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

import msgspec
from rich.cells import cell_len

from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.shown_clock import ShownClock
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import MemberStarted
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.events.catalogue import kind_of, record_words, tone_of
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.explain.episodes.episodes import BusySecond, Decisions, Episodes
from quarterdeck.backend.picture.explain.episodes.sentences import Sentence, sentence_of
from quarterdeck.backend.picture.explain.event_index import identity
from quarterdeck.backend.picture.explain.event_trace import EventFilter
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import (
    NAMES_SPELT_OUT,
    NameOf,
    counted,
    duration_text,
    listed,
    one_line,
    with_names,
)
from quarterdeck.widgets.component_styles import fit
from quarterdeck.widgets.tail_log import TailLine, TailLog

KIND_WIDTH = len("explicit-suspicion-received") + 1
NARROW = 110
"""Below this width the column of kinds, which the words imply, is not shown."""

LONGEST_NAME = len("255.255.255.255:65535")
LONGEST_NAME_NARROW = 16
"""The greatest width of names where kinds are not shown."""


class EventLine:
    """The line of a record. Its words are made when they are first asked for."""

    __slots__ = ("_folded", "_words", "record")

    def __init__(self, record: Record) -> None:
        self.record = record
        self._words = ""
        self._folded = ""

    def words(self, name_of: NameOf) -> str:
        """Return what happened, without when and to whom."""
        if not self._words:
            self._words = record_words(self.record, name_of)
        return self._words

    def matches(self, selection: EventFilter, name_of: NameOf) -> bool:
        return selection.accepts(self.record, lambda: self._searched(name_of))

    def _searched(self, name_of: NameOf) -> str:
        if not self._folded:
            self._folded = f"{self.record.member} {kind_of(self.record)} {self.words(name_of)}".casefold()
        return self._folded


class LineFormat:
    """Writes lines of every level in the same columns; the width where they stand decides whether kinds have room."""

    def __init__(self, name_of: NameOf, width_now: Callable[[], int], clock: ShownClock) -> None:
        self._name_of, self._width_now = name_of, width_now
        self.time_of = clock.of_record
        self._longest_name = len("member")

    @property
    def width(self) -> int:
        return self._width_now() or NARROW

    def entry_line(self, entry: Entry) -> TailLine:
        """Return the line of an entry, whichever its level."""
        record = entry.record
        if isinstance(entry, EventLine):
            words = self._in_columns(record, one_line(record.member), kind_of(record), entry.words(self._name_of))
            return TailLine(words, tone_of(record.event))
        if isinstance(entry, BusyLine):
            return TailLine(self._in_columns(record, "", "in one second", entry.second.text), "faint")
        sentence, time = entry.sentence(), self.time_of(record)
        room = self.width - len("• ") - len(time) - len("  ")
        events = f"({counted(sentence.events, 'event')})"
        if self.width < NARROW or cell_len(sentence.text) + len(events) >= room:  # the sentence needs the cells
            events = f"({sentence.events})"
        if self.width < NARROWEST:
            return TailLine(f"{time}  {sentence.text}", sentence.tone)
        return TailLine(f"{time}  {fit(sentence.text, room - len(events))}{events}", sentence.tone)

    def _in_columns(self, record: Record, name: str, kind: str, words: str) -> str:
        wide = self.width >= NARROW
        kinds = fit(kind, KIND_WIDTH) if wide else ""
        longest = LONGEST_NAME if wide else LONGEST_NAME_NARROW
        return f"{self.time_of(record)}  {fit(name, min(self._longest_name, longest) + 1)}{kinds}{words}"

    def reserve(self, names: Iterable[str]) -> bool:
        """Widen the column of names for these, up to a limit. Return whether lines have to be painted anew."""
        before = self._longest_name
        if before < LONGEST_NAME:
            longest = max((cell_len(one_line(name)) for name in names), default=0)
            self._longest_name = max(before, min(longest, LONGEST_NAME))
        return self._longest_name != before

    def matcher(self, text: str) -> Callable[[Entry], bool]:
        """Return the test whether a filter of this text selects a line."""
        selection = EventFilter.of(text)
        return lambda line: line.matches(selection, self._name_of)


MOST_EVENTS = 40
"""How many events of an episode are listed beside it."""


def facts_of(record: Record, words: str, name_of: NameOf) -> tuple[Fact, ...]:
    """Return the words of a record, its envelope and every field of its event that says anything."""
    fields = msgspec.to_builtins(record.event, enc_hook=str)
    del fields["kind"]
    starts = isinstance(record.event, MemberStarted)  # the only one that says at which address a member is

    def named(text: str) -> str:
        return text if starts else with_names(text, name_of)

    return (
        Fact("event", words, "strong"),
        Fact("member", one_line(record.member)),
        Fact("incarnation", f"{one_line(record.uuid)}, event {record.seq} of it"),
        Fact("run", one_line(record.run)),
        Fact("at", f"{record.at / SECOND_US:.6f} s on the run's clock"),
        *(Fact(name, one_line(named(text))) for name, text in _in_words(fields)),
    )


def episode_facts(
    episode: Episode, sentence: Sentence, time_of: Callable[[Record], str], name_of: NameOf
) -> tuple[Fact, ...]:
    """Return the sentence of an episode, and the first of its events."""
    events = (
        Fact(
            "" if place else "events",
            f"{time_of(record).strip()} {one_line(record.member)}: {record_words(record, name_of)}",
        )
        for place, record in enumerate(episode.records[:MOST_EVENTS])
    )
    lasted = episode.end_us - episode.at_us
    members = listed(list(map(one_line, episode.subjects)), NAMES_SPELT_OUT)
    more = sentence.events - MOST_EVENTS
    return (
        Fact("what", sentence.text, "strong"),
        Fact("at", f"{time_of(episode.first).strip()}{f', for {duration_text(lasted)}' if lasted else ''}"),
        *([Fact("members", members)] if members else []),
        *events,
        *([Fact("", f"and {counted(more, 'event')} more; enter unfolds them", "faint")] if more > 0 else []),
    )


def exported(record: Record) -> dict[str, str]:
    """Return a record as a row of a file: the envelope, and the event as JSON."""
    return {
        "at_us": str(record.at),
        "utc_us": str(record.utc),
        "member": record.member,
        "uuid": record.uuid,
        "seq": str(record.seq),
        "kind": kind_of(record),
        "event": msgspec.json.encode(record.event, enc_hook=str).decode(),
    }


def _in_words(fields: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each field that is not empty or unknown."""
    for name, value in fields.items():
        if value is None or value == "unknown":
            continue
        if name.endswith("_us") and isinstance(value, int):
            name, value = name.removesuffix("_us"), duration_text(value)
        if text := _field_text(value):
            yield name.replace("_", " "), text


def _field_text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(" ".join(part) for part in _in_words(value))
    if isinstance(value, list | tuple):
        return ("; " if any(isinstance(part, Mapping) for part in value) else ", ").join(map(_field_text, value))
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


Level = Literal["episode", "decision", "everything"]

LEVELS: tuple[Level, ...] = get_args(Level)

HEADINGS: Mapping[Level, str] = {
    "episode": "what happened: episodes",
    "decision": "what happened: decisions",
    "everything": "events",
}

NARROWEST = 60
"""Below this width a line does not say of how many events it is made."""

MOST_SEARCHED = 200
"""Events of an episode in which a filter looks for its words."""


class EpisodeLine:
    """The line of an episode; its sentence grows with it."""

    __slots__ = ("_count", "_sentence", "episode")

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self._sentence = Sentence("", "plain", 0)
        self._count = 0

    @property
    def record(self) -> Record:
        """The record that the episode began with."""
        return self.episode.first

    def sentence(self) -> Sentence:
        if self._count != self.episode.count:
            self._sentence, self._count = sentence_of(self.episode), self.episode.count
        return self._sentence

    def words(self, name_of: NameOf) -> str:
        return self.sentence().text

    def holds(self, record: Record) -> bool:
        """Return whether `record` is among those that the episode remembers."""
        wanted = identity(record)
        return any(identity(remembered) == wanted for remembered in self.episode.records)

    def matches(self, selection: EventFilter, name_of: NameOf) -> bool:
        """Return whether a filter selects the sentence, with all members that it is about, or any event of it."""
        episode = self.episode
        words = " ".join((self.sentence().text, *episode.tellers, *episode.subjects, *sorted(episode.kinds))).casefold()
        if selection.accepts(episode.first, lambda: words):
            return True
        return any(EventLine(record).matches(selection, name_of) for record in episode.records[:MOST_SEARCHED])


class BusyLine:
    """A line for what came by the thousand in a second."""

    __slots__ = ("record", "second")

    def __init__(self, second: BusySecond) -> None:
        self.second = second
        self.record = second.first

    def words(self, name_of: NameOf) -> str:
        return self.second.text

    def matches(self, selection: EventFilter, name_of: NameOf) -> bool:
        return selection.accepts(self.record, self.second.text.casefold)


Entry = EventLine | EpisodeLine | BusyLine


class LevelFeed:
    """Feeds a tail with the lines of the chosen level."""

    def __init__(self, session: ConsoleSession, tail: TailLog[Entry]) -> None:
        self._session, self._tail = session, tail
        self.level: Level = LEVELS[0]
        self._decisions = Decisions()
        self._episodes: Episodes | None = None
        self._revision = 0
        self._latest = 0
        """The number of the latest episode that the tail got."""

    def choose(self, level: Level, records: Sequence[Record]) -> None:
        """List everything anew, at another level."""
        self.level = level
        self._tail.set_heading(HEADINGS[level])
        self.restart(records)

    def restart(self, records: Sequence[Record]) -> None:
        """List everything anew; `records` are those at hand."""
        self._decisions = Decisions()
        self._episodes, self._latest = self._session.episodes, 0
        self._tail.restart(self._new_episodes() if self.level == "episode" else self._lines(records))

    def extend(self, records: Sequence[Record]) -> None:
        if self.level != "episode":
            self._tail.extend(self._lines(records))

    @property
    def stale(self) -> bool:
        """Whether episodes have changed since the tail was last fed."""
        episodes = self._session.episodes
        is_current = episodes is self._episodes and episodes.revision == self._revision
        return self.level != "everything" and not is_current

    def grow(self, records: Sequence[Record]) -> None:
        """Add episodes that are new, and lines that have grown so that a filter selects them now."""
        episodes = self._session.episodes
        if not self.stale:
            return
        self._revision = episodes.revision
        replaced = self.level == "episode" and episodes is not self._episodes
        if replaced or (self._tail.filter_text.strip() and self._tail.following):
            self.restart(records)
        elif self.level == "episode":
            self._tail.extend(self._new_episodes())
        self._episodes = episodes
        self._tail.refresh()

    def _lines(self, records: Sequence[Record]) -> list[Entry]:
        if self.level == "everything":
            return [EventLine(record) for record in records]
        shown = self._decisions.lines(records)
        return [BusyLine(line) if isinstance(line, BusySecond) else EventLine(line) for line in shown]

    def _new_episodes(self) -> list[Entry]:
        fresh = self._session.episodes.after(self._latest)
        if fresh:
            self._latest = fresh[-1].number
        return [EpisodeLine(episode) for episode in fresh]


def exported_entry(entry: Entry) -> dict[str, str]:
    if isinstance(entry, EventLine):
        return exported(entry.record)
    if isinstance(entry, BusyLine):
        second = entry.second
        return {**dict.fromkeys(exported(entry.record), ""), "at_us": str(second.at_us), "utc_us": str(second.utc_us),
                "kind": "busy-second", "event": second.text}  # fmt: skip
    episode, sentence = entry.episode, entry.sentence()
    return {
        "at_us": str(episode.at_us),
        "until_us": str(episode.end_us),
        "utc_us": str(episode.utc_us),
        "kind": episode.kind,
        "members": " ".join(episode.subjects),
        "text": sentence.text,
        "events": str(sentence.events),
    }
