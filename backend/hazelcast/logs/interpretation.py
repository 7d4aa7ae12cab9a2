"""What the members of a run logged, in the order of time: what each message means and the records that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, TypeVar

from msgspec import Struct

from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership.events import MemberMerging, MemberStopped
from quarterdeck.backend.hazelcast.last_words import LastWords, after_log
from quarterdeck.backend.hazelcast.logs.event_reconstruction import EventReconstruction
from quarterdeck.backend.hazelcast.logs.log_set import LogSet, MemberMessage
from quarterdeck.backend.hazelcast.logs.parsed_messages import NoEvent, ParsedMessage
from quarterdeck.backend.hazelcast.logs.patterns.matching import match_message

_Kind = TypeVar("_Kind", bound=Event)
_NONE: list[Any] = []


class InterpretedMessage(Struct, frozen=True, gc=False):
    """A message of a member with its place, what it means, and the records that became known with it."""

    place: MemberMessage
    at: int
    """Microseconds on the run's clock."""
    parsed: ParsedMessage
    records: tuple[Record, ...]
    kinds: dict[type, list[Any]]
    """The events of the records, by class: each of many observers asks for a few."""

    @classmethod
    def of(
        cls, place: MemberMessage, at: int, parsed: ParsedMessage, records: tuple[Record, ...]
    ) -> InterpretedMessage:
        kinds: dict[type, list[Any]] = {}
        for record in records:
            kinds.setdefault(type(record.event), []).append(record.event)
        return cls(place, at, parsed, records, kinds)

    @property
    def member(self) -> str:
        """The address of the member that logged it."""
        return self.place.member

    def events(self, kind: type[_Kind]) -> list[_Kind]:
        found: list[_Kind] = self.kinds.get(kind, _NONE)
        return found

    @property
    def ends_incarnation(self) -> bool:
        """Whether the member stops here, or goes on as another incarnation after a merge."""
        return MemberMerging in self.kinds or MemberStopped in self.kinds


def log_order(placed: MemberMessage) -> tuple[str, int, int, str, int]:
    """Sort by run, then by time; at the same time older files come first, and each file keeps its order."""
    return placed.run, placed.at_us, placed.file_us, placed.file, placed.offset


def interpret_messages(placed: Iterable[MemberMessage], whole: LogSet) -> Iterator[InterpretedMessage]:
    """Interpret messages that are in `log_order`. Those of one member are in the order in which it logged them."""
    for run, messages in groupby(placed, key=lambda message: message.run):
        interpreter = MessageInterpreter(run, whole.run_began_us(run))
        for message in messages:
            yield from interpreter.interpret(message)
        yield from interpreter.end(whole.last_logged_us(run))


class MessageInterpreter:
    """Interprets what the members of one run logged, in order. Call `end` when no more messages come.

    Logs that were copied, or written to two files at once, repeat everything: a repeated message counts once.
    """

    def __init__(self, run: str, began_us: int) -> None:
        self._run = run
        self._began_us = began_us
        self._members: dict[str, EventReconstruction] = {}
        self._lasts: dict[str, MemberMessage] = {}
        self._last_words = LastWords()
        self._at_us: int | None = None
        self._files: dict[tuple[str, str], dict[str, int]] = {}
        """By member and text of messages at `_at_us`: how often each file has it."""

    def interpret(self, message: MemberMessage) -> Iterator[InterpretedMessage]:
        """Yield the message with its records, or nothing when another file had it already or no pattern fits."""
        if self._is_repeated(message):
            return
        parsed = message.parsed
        if parsed is None:
            matched = match_message(message.text, message.logger)
            if matched is None:
                return
            parsed = matched.parsed
        member = self._members.get(message.member)
        if member is None:
            member = self._members[message.member] = EventReconstruction(self._run, message.member, self._began_us)
        records = tuple(member.apply(message.at_us, message.utc, parsed, message.thread))
        for record in records:
            self._last_words.add(record)
        self._lasts[message.member] = message
        yield InterpretedMessage.of(message, message.at_us - self._began_us, parsed, records)

    def end(self, last_logged_us: Mapping[str, int]) -> Iterator[InterpretedMessage]:
        """Yield what is known of each member when no more messages come. `last_logged_us`: when it logged last."""
        for name, member in self._members.items():
            last = self._lasts[name]
            at_us = last.at_us - self._began_us
            until_us = max(last_logged_us.get(name, 0), at_us)
            known = after_log(self._last_words.standing(name, member.uuid, last_logged_us), until_us)
            yield InterpretedMessage.of(last, at_us, NoEvent(), tuple(member.end(self._began_us + until_us, known)))

    def _is_repeated(self, message: MemberMessage) -> bool:
        if message.at_us != self._at_us:
            self._at_us = message.at_us
            self._files.clear()
        files = self._files.setdefault((message.member, message.text), {})
        files[message.file] = times = files.get(message.file, 0) + 1
        return not all(times > others for file, others in files.items() if file != message.file)
