"""The levels at which events are listed: as episodes, as decisions with a line a second for the rest, or each by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from quarterdeck.app.events.lines import EventLine, LineFormat
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.explain.episodes.decisions import BusySecond, Decisions
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.explain.episodes.episodes import Episodes
from quarterdeck.backend.picture.explain.episodes.sentences import Sentence, sentence_of
from quarterdeck.backend.picture.explain.event_filter import EventFilter
from quarterdeck.backend.picture.explain.event_index import identity
from quarterdeck.backend.picture.text.formatting import NameOf, counted
from quarterdeck.widgets.line_table import fit
from quarterdeck.widgets.tail_log import TailLine, TailLog

Level = Literal["episode", "decision", "everything"]

LEVELS: tuple[Level, ...] = get_args(Level)

HEADINGS: Mapping[Level, str] = {
    "episode": "what happened: episodes",
    "decision": "what happened: decisions",
    "everything": "events",
}

COUNT_WIDTH = len("(99999 events)")
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


class LevelFormat(LineFormat):
    """Writes lines of every level in the same columns."""

    def entry_line(self, entry: Entry) -> TailLine:
        if isinstance(entry, EventLine):
            return self.line(entry)
        if isinstance(entry, BusyLine):
            return TailLine(self.in_columns(entry.record, "", "in one second", entry.second.text), "faint")
        sentence, time = entry.sentence(), self.time_of(entry.record)
        room = self.width - len("• ") - len(time) - len("  ") - COUNT_WIDTH
        if room < NARROWEST - COUNT_WIDTH:
            return TailLine(f"{time}  {sentence.text}", sentence.tone)
        events = f"({counted(sentence.events, 'event')})"
        return TailLine(f"{time}  {fit(sentence.text, room)}{events:>{COUNT_WIDTH}}", sentence.tone)


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

    def level_named(self, text: str) -> Level | None:
        """Return the level of this name, the next one for an empty name; None if there is no such level."""
        if not text:
            return LEVELS[(LEVELS.index(self.level) + 1) % len(LEVELS)]
        return next((level for level in LEVELS if level == text), None)

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
    from quarterdeck.app.events.lines import exported  # not before the first picture is painted

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
