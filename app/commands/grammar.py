"""The grammar of the ``:`` prompt: a line becomes a command, a request to the console, or an error.

The catalogue says which words make commands and what follows them; this file says how each kind of argument is read.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from quarterdeck.app.actions.action import EVERYTHING, READ_ONLY, Allowed, CommandWord
from quarterdeck.app.actions.registry import command_words
from quarterdeck.app.commands.command_text import NO_KINDS
from quarterdeck.backend.commands.catalogue import ArgumentKind, CommandDescription, commands_of_word
from quarterdeck.backend.core.address import SEPARATORS, BadJoinList, parse_join_list
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.core.commands import Command, LinkFault
from quarterdeck.backend.core.events import EVENT_KINDS
from quarterdeck.backend.core.messages import MESSAGE_KINDS
from quarterdeck.backend.core.properties import SECOND_US, PropertyValue
from quarterdeck.backend.picture.text.formatting import Refusal

DELAY_FORM = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s)")
UNIT_US = {"us": 1, "ms": 1_000, "s": SECOND_US}

MOST_NAMED = 8
"""A message names at most so many members."""

LISTS: tuple[ArgumentKind, ...] = ("groups", "join list", "message kinds", "link faults", "properties")
"""Kinds of arguments that take all words that follow."""


class BadLine(Refusal):
    """A line that is no command. The message says what is wrong and how to write it."""


@dataclass(frozen=True)
class ConsoleRequest:
    """Something that the console does itself: the action of this id. `text` is what follows the word."""

    action_id: str
    word: str
    text: str = ""


def parse_line(line: str, labels: Sequence[str], *, allowed: Allowed, selected: str = "") -> Command | ConsoleRequest:
    """Read one line of the prompt. Members must be among `labels`; `selected` stands in for one that may be left out.

    Raises:
        BadLine: The line is no command.
    """
    word, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    known = command_words(allowed)
    if word not in known:
        raise BadLine(_unknown_word(word, known, allowed))
    action, called = known[word]
    meanings = commands_of_word(word)
    if not meanings:
        return ConsoleRequest(action.id, word, _rest_of_request(called, rest, labels))
    description = next((command for command in meanings if bool(command.arguments) == bool(rest)), meanings[0])
    line_reader = _LineReader(description, labels, called.usage, selected)
    return description.make(line_reader.values(rest))


def _rest_of_request(called: CommandWord, rest: str, labels: Sequence[str]) -> str:
    """Return what follows a word of the console's own, checked as far as the grammar can."""
    if called.takes == "nothing" and rest:
        raise BadLine(f"{called.word} stands alone; {rest!r} is too much")
    if called.takes == "member":
        return _the_member(rest, labels, called.usage)
    return rest


def _unknown_word(word: str, known: Collection[str], allowed: Allowed) -> str:
    if not word:
        return "nothing to do; type a command, or help"
    if word in command_words(READ_ONLY) or (word in command_words(EVERYTHING) and allowed.writable):
        return f"{word} cannot be done by this cluster"
    if word in command_words(EVERYTHING):
        return f"{word} is refused: this cluster is read-only"
    close = difflib.get_close_matches(word, known, n=1)
    return f"there is no command {word!r}; " + (f"did you mean {close[0]}?" if close else "help lists all")


class _LineReader:
    """Reads what follows the word of one command."""

    def __init__(self, description: CommandDescription, labels: Sequence[str], usage: str, selected: str) -> None:
        self._description, self._labels, self._usage, self._selected = description, labels, usage, selected
        self._read: dict[ArgumentKind, Callable[[str], Any]] = {
            "member": self._member,
            "other member": self._member,
            "groups": self._groups,
            "duration": self._duration_us,
            "probability": self._probability,
            "message kinds": _message_kinds,
            "link faults": _link_faults,
            "join list": self._join_list,
            "cluster state": self._state,
            "properties": self._properties,
            "event kind": self._event,
            "flag": self._moment,
            "bytes": str.encode,
            "count": self._count,
        }

    def values(self, rest: str) -> dict[str, Any]:
        """Return the arguments by name. Raises `BadLine`."""
        if self._description.operation is not None:
            return self._of_call(rest)
        if self._description.target == "links":
            return self._of_links(rest.split())
        typed = self._description.typed
        found = {}
        for argument in typed[:-1]:
            word, _, rest = rest.partition(" ")
            found[argument.name] = self._read[argument.kind](word)
            rest = rest.strip()
        if typed:
            optional = typed[-1].kind == "member" and typed[-1].optional
            found[typed[-1].name] = self._read[typed[-1].kind](rest or (self._selected if optional else ""))
        return found

    def _of_links(self, words: list[str]) -> dict[str, Any]:
        word, (sources, targets, *more) = self._description.word, self._description.typed
        found: dict[str, Any] = {}
        if more and more[-1].kind == "flag":
            flag = more.pop()
            found[flag.name] = words[-1:] == [flag.key]
            if found[flag.name]:
                words.pop()
        if any(sign in end for end in words[:2] for sign in ",|"):
            raise BadLine(f"{word} is about one link; write {self._usage}, or for groups partition A,B|C,D")
        if len(words) < 2:
            raise BadLine(f"a link has two ends; write {self._usage}")
        source, target = map(self._member, words[:2])
        if source == target:
            raise BadLine(f"{source!r} needs another member at the other end of the link")
        needed = [argument for argument in more if not argument.optional]
        rest = words[2 + len(needed) :]
        given = list(zip(needed, words[2:], strict=False))
        for argument in more[len(needed) :]:  # a length of time is not the name of anything else
            if rest and (argument.kind == "duration") == bool(DELAY_FORM.fullmatch(rest[0])):
                given.append((argument, rest.pop(0)))
        if len(words) < 2 + len(needed) or rest:
            one_more = " and one word more" if needed else ""
            raise BadLine(f"{word} takes two members{one_more}; write {self._usage}")
        found |= {sources.name: (source,), targets.name: (target,)}
        return found | {argument.name: self._read[argument.kind](text) for argument, text in given}

    def _of_call(self, text: str) -> dict[str, Any]:
        """Words that contain blanks stand in quotes, as in a shell."""
        try:
            words = shlex.split(text)
        except ValueError:
            raise BadLine(f"a quote is not closed; write {self._usage}") from None
        *needed, member = self._description.typed
        if not len(needed) <= len(words) <= len(needed) + 1:
            takes = f"{self._description.word} takes {len(needed)} words, in quotes where they have blanks"
            raise BadLine(f"{takes}; write {self._usage}")
        label = self._member(words[-1] if len(words) > len(needed) else self._selected)
        read = (self._read.get(argument.kind, str)(word) for argument, word in zip(needed, words, strict=False))
        return {member.name: label, **dict(zip((argument.name for argument in needed), read, strict=True))}

    def _member(self, text: str) -> str:
        return _the_member(text, self._labels, self._usage)

    def _groups(self, text: str) -> tuple[tuple[str, ...], ...]:
        groups = tuple(tuple(self._member(name.strip()) for name in group.split(",")) for group in text.split("|"))
        if len(groups) < 2:
            others = [label for label in self._labels if label not in groups[0]]
            rest = ",".join(others[:MOST_NAMED]) + (",…" if len(others) > MOST_NAMED else "")
            link = f"; cut {' '.join(groups[0])} cuts their link" if len(groups[0]) == 2 else ""
            raise BadLine(f"one group is no partition; write partition {','.join(groups[0])}|{rest}{link}")
        seen: set[str] = set()
        for name in (name for group in groups for name in group):
            if name in seen:
                raise BadLine(f"{name!r} is named twice; a member is on one side only")
            seen.add(name)
        return groups

    def _probability(self, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise BadLine(f"{text!r} is not a number; write {self._usage}") from None
        if not 0 <= number <= 1:
            raise BadLine(f"{text!r} is not a probability; it lies from 0 to 1")
        return number

    def _duration_us(self, text: str) -> int:
        fit = DELAY_FORM.fullmatch(text)
        if fit is None:
            raise BadLine(f"{text!r} is not a length of time; write a number and us, ms or s: {self._usage}")
        return round(float(fit[1]) * UNIT_US[fit[2]])

    def _count(self, text: str) -> int:
        if not text.isdecimal() or not int(text):
            raise BadLine(f"{text!r} is not a number of members; write {self._usage}")
        return int(text)

    def _state(self, wanted: str) -> str:
        for state in CLUSTER_STATES:
            if state == wanted.upper():
                return state
        if not wanted:
            raise BadLine(f"which state? write {self._usage}, of {', '.join(CLUSTER_STATES)}")
        raise BadLine(f"there is no state {wanted!r}; {_hint(wanted.upper(), CLUSTER_STATES, 'states')}")

    def _properties(self, rest: str) -> dict[str, PropertyValue]:
        """Read names and values; the member itself judges them."""
        found: dict[str, PropertyValue] = {}
        for word in rest.split():
            name, equals, value = word.partition("=")
            if not (name and equals):
                raise BadLine(f"{word!r} gives no property a value; write {self._usage}")
            found[name] = value
        if not found:
            raise BadLine(f"which properties? write {self._usage}")
        return found

    def _event(self, event: str) -> str:
        if not event:
            raise BadLine(f"at which event? write {self._usage}")
        return _known(event, tuple(EVENT_KINDS), "event")

    def _moment(self, moment: str) -> bool:
        flag = self._description.typed[-1].key
        if moment not in ("", flag):
            raise BadLine(f"{moment!r} is not a moment; write {self._usage}")
        return moment == flag

    def _join_list(self, rest: str) -> tuple[str, ...]:
        """Read members by their labels; everything else has to be an address."""
        entries = tuple(word for word in SEPARATORS.split(rest) if word)
        if not entries:
            raise BadLine(f"which addresses? an empty join list leads to no member; write {self._usage}")
        labels = self._labels
        for entry in entries:
            if ":" not in entry and entry not in labels and difflib.get_close_matches(entry, labels, n=1):
                raise BadLine(f"there is no member {entry!r}; {_hint(entry, labels, 'members')} A host needs its port.")
            try:
                parse_join_list([entry] if entry not in labels else [])
            except BadJoinList as problem:
                raise BadLine(f"{entry!r} is neither a member nor an address: {problem}") from problem
        return entries


def _link_faults(text: str) -> tuple[str, ...]:
    return tuple(_known(fault, get_args(LinkFault), "fault") for fault in text.split(",") if fault)


def _message_kinds(text: str) -> tuple[str, ...]:
    if text == NO_KINDS:
        return ()
    kinds = tuple(_known(kind, tuple(MESSAGE_KINDS), "message") for kind in text.split(",") if kind)
    if not kinds:
        raise BadLine(f"which messages? write their kinds, or {NO_KINDS}")
    return kinds


def _the_member(text: str, labels: Sequence[str], usage: str) -> str:
    if not text:
        raise BadLine(f"which member? write {usage}")
    return _known(text, labels, "member")


def _known(name: str, known: Sequence[str], what: str) -> str:
    if name not in known:
        raise BadLine(f"there is no {what} {name!r}; {_hint(name, known, f'{what}s')}")
    return name


def _hint(word: str, known: Sequence[str], what: str) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]}?" if close else f"{what} are {', '.join(known[:7])}"
