"""The levels at which events are told: as episodes, as decisions with a line a second for the rest, or each by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
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
    """A line for an episode; its sentence grows with it."""

    __slots__ = ("_said", "_said_of", "episode")

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self._said = Sentence("", "plain", 0)
        self._said_of = 0

    @property
    def record(self) -> Record:
        """The event that it began with."""
        return self.episode.first

    def sentence(self) -> Sentence:
        """What happened so far."""
        if self._said_of != self.episode.count:
            self._said, self._said_of = sentence_of(self.episode), self.episode.count
        return self._said

    def words(self, name_of: NameOf) -> str:
        return self.sentence().text

    def holds(self, record: Record) -> bool:
        """Whether `record` belongs to it, as far as it remembers."""
        wanted = identity(record)
        return any(identity(one) == wanted for one in self.episode.records)

    def matches(self, wanted: EventFilter, name_of: NameOf) -> bool:
        """Whether a filter selects the sentence, with all whom it tells of, or any event of it."""
        episode = self.episode
        said = " ".join((self.sentence().text, *episode.tellers, *episode.subjects, *sorted(episode.kinds))).casefold()
        if wanted.accepts(episode.first, lambda: said):
            return True
        told = (EventLine(record) for record in episode.records[:MOST_SEARCHED])
        return any(wanted.accepts(one.record, partial(one.folded, name_of)) for one in told)


class BusyLine:
    """A line for what came by the thousand in a second."""

    __slots__ = ("record", "second")

    def __init__(self, second: BusySecond) -> None:
        self.second = second
        self.record = second.first

    def words(self, name_of: NameOf) -> str:
        return self.second.text


Entry = EventLine | EpisodeLine | BusyLine


class LevelFormat(LineFormat):
    """Writes lines of every level in the same columns."""

    def entry_line(self, entry: Entry) -> TailLine:
        """The line of an entry."""
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

    def entry_matcher(self, text: str) -> EntryMatcher:
        """Whether an entry is selected by a filter's text."""
        return EntryMatcher(EventFilter.of(text), self._name_of)


class EntryMatcher:
    """Whether an entry is selected."""

    def __init__(self, wanted: EventFilter, name_of: NameOf) -> None:
        self._wanted, self._name_of = wanted, name_of

    def __call__(self, entry: Entry) -> bool:
        if isinstance(entry, EpisodeLine):
            return entry.matches(self._wanted, self._name_of)
        if isinstance(entry, BusyLine):
            return self._wanted.accepts(entry.record, entry.second.text.casefold)
        return self._wanted.accepts(entry.record, lambda: entry.folded(self._name_of))


class LevelFeed:
    """Gives a tail the lines of the level that is chosen."""

    def __init__(self, session: ConsoleSession, tail: TailLog[Entry]) -> None:
        self._session, self._tail = session, tail
        self.level: Level = LEVELS[0]
        self._decisions = Decisions()
        self._episodes: Episodes | None = None
        self._revision = 0
        self._told = 0
        """The number of the latest episode that was given."""

    def level_named(self, text: str) -> Level | None:
        """The level of this name, the next one when there is none; None for a name that is none."""
        if not text:
            return LEVELS[(LEVELS.index(self.level) + 1) % len(LEVELS)]
        return next((one for one in LEVELS if one == text), None)

    def choose(self, level: Level, records: Sequence[Record]) -> None:
        """Tell everything anew, at another level."""
        self.level = level
        self._tail.set_heading(HEADINGS[level])
        self.restart(records)

    def restart(self, records: Sequence[Record]) -> None:
        """Tell everything anew; `records` are the events that are at hand."""
        self._decisions = Decisions()
        self._episodes, self._told = self._session.episodes, 0
        self._tail.restart(self._new_episodes() if self.level == "episode" else self._lines(records))

    def extend(self, records: Sequence[Record]) -> None:
        """These have come since."""
        if self.level != "episode":
            self._tail.extend(self._lines(records))

    @property
    def stale(self) -> bool:
        """Whether there is more to tell of episodes than is told."""
        episodes = self._session.episodes
        told = episodes is self._episodes and episodes.revision == self._revision
        return self.level != "everything" and not told

    def grow(self, records: Sequence[Record]) -> None:
        """Tell of episodes that are new, and of lines that have grown: a filter may take them now."""
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
        picked = self._decisions.lines(records)
        return [BusyLine(one) if isinstance(one, BusySecond) else EventLine(one) for one in picked]

    def _new_episodes(self) -> list[Entry]:
        fresh = self._session.episodes.after(self._told)
        if fresh:
            self._told = fresh[-1].number
        return [EpisodeLine(one) for one in fresh]


def exported_entry(entry: Entry) -> dict[str, str]:
    """An entry as a row of a file."""
    from quarterdeck.app.events.fields import exported  # not before the first picture is painted

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
