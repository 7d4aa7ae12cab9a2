"""The lines of `quarterdeck map run`: what each asks for, read and checked before anything is done."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from quarterdeck.backend.core.commands.catalogue import CATALOGUE
from quarterdeck.backend.core.commands.commands import Command
from quarterdeck.cli.exits import BadUsage

MAP_WORDS = ("put", "get", "remove", "size", "keys")
MEMBER_WORDS = ("start", "stop", "kill")
DESCRIPTIONS = {word: next(row for row in CATALOGUE if row.word == word) for word in (*MAP_WORDS, *MEMBER_WORDS)}

LOAD = "load"
LOAD_USAGE = "MAP COUNT [VALUE_BYTES]"

DEFAULT_VALUE_BYTES = 100


@dataclass(frozen=True)
class ScriptLoad:
    """Put so many entries of this size into the map."""

    map: str
    entries: int
    value_bytes: int = DEFAULT_VALUE_BYTES


@dataclass(frozen=True)
class ScriptLine:
    """One line of a script: its number, and what it asks for."""

    number: int
    wanted: Command | ScriptLoad
    """A call is for whichever member the session asks."""


def read_script(text: str, source: str) -> list[ScriptLine]:
    """Return the lines of `text`, without empty ones and comments (``#``).

    Raises:
        CommandFailed: A line is wrong; the message names `source` and the line.
    """
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            words = shlex.split(line, comments=True)
            if words:
                lines.append(ScriptLine(number, _wanted(words)))
        except ValueError as problem:
            raise BadUsage(f"{source}:{number}: {problem}") from problem
    return lines


def _wanted(words: Sequence[str]) -> Command | ScriptLoad:
    """Return what these words ask for.

    Raises:
        ValueError: They ask for nothing that there is.
    """
    verb, *rest = words
    if verb not in (*DESCRIPTIONS, LOAD):
        raise ValueError(f"{verb!r} is not known; write one of {', '.join((*MAP_WORDS, LOAD, *MEMBER_WORDS))}")
    if verb == LOAD:
        _check_count(verb, LOAD_USAGE, rest)
        return _load(*rest)
    description = DESCRIPTIONS[verb]
    arguments = description.details or description.arguments
    _check_count(verb, " ".join(argument.usage for argument in arguments), rest)
    pairs = zip(arguments, rest, strict=True)
    values = {known.name: word.encode() if known.kind == "bytes" else word for known, word in pairs}
    return description.make({"member": "", **values})


def _check_count(verb: str, usage: str, rest: Sequence[str]) -> None:
    most = len(usage.split())
    if not most - usage.count("[") <= len(rest) <= most:
        raise ValueError(f"{verb} takes {usage}, not {len(rest)} words; put quotes around words with blanks")


def _load(name: str, count: str, value_bytes: str = str(DEFAULT_VALUE_BYTES)) -> ScriptLoad:
    for field, given in (("COUNT", count), ("VALUE_BYTES", value_bytes)):
        if not given.isdecimal():
            raise ValueError(f"{field}: {given!r} is not a whole number")
    return ScriptLoad(name, int(count), int(value_bytes))
