"""The lines of `quarterdeck map run`: what each asks for, read and checked before anything is done."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quarterdeck.cli.exits import CommandFailed, ExitCode

if TYPE_CHECKING:
    from quarterdeck.backend.core.commands import KillMember, StartMember, StopMember
    from quarterdeck.backend.core.data.calls.operations import Operation

DEFAULT_VALUE_BYTES = 100


@dataclass(frozen=True)
class Load:
    """Put so many entries of this size into the map."""

    map: str
    entries: int
    value_bytes: int = DEFAULT_VALUE_BYTES


@dataclass(frozen=True)
class Line:
    """One line of a script: its number, and what it asks for."""

    number: int
    wanted: Operation | Load | StartMember | StopMember | KillMember


def read_script(text: str, source: str) -> list[Line]:
    """The lines of `text`, without empty ones and comments (``#``). Raises `CommandFailed`, which names `source` and the line."""
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            words = shlex.split(line, comments=True)
            if words:
                lines.append(Line(number, _wanted(words)))
        except ValueError as problem:
            raise CommandFailed(ExitCode.BAD_INPUT, f"{source}:{number}: {problem}") from problem
    return lines


def _wanted(words: Sequence[str]) -> Operation | Load | StartMember | StopMember | KillMember:
    """What these words ask for. Raises ValueError."""
    from quarterdeck.backend.core.commands import KillMember, StartMember, StopMember
    from quarterdeck.backend.core.data.calls.operations import Get, Keys, Put, Remove, Size

    usages: dict[str, tuple[str, Callable[..., Operation | Load | StartMember | StopMember | KillMember]]] = {
        "put": ("MAP KEY VALUE", lambda name, key, value: Put(name, key, value.encode())),
        "get": ("MAP KEY", Get),
        "remove": ("MAP KEY", Remove),
        "size": ("MAP", Size),
        "keys": ("MAP", Keys),
        "load": ("MAP COUNT [VALUE_BYTES]", _load),
        "start": ("MEMBER", StartMember),
        "stop": ("MEMBER", StopMember),
        "kill": ("MEMBER", KillMember),
    }
    verb, *rest = words
    if verb not in usages:
        raise ValueError(f"{verb!r} is not known; write one of {', '.join(usages)}")
    usage, make = usages[verb]
    most = len(usage.split())
    least = most - usage.count("[")
    if not least <= len(rest) <= most:
        raise ValueError(f"{verb} takes {usage}, not {len(rest)} words; put quotes around words with blanks")
    return make(*rest)


def _load(name: str, count: str, value_bytes: str = str(DEFAULT_VALUE_BYTES)) -> Load:
    for field, given in (("COUNT", count), ("VALUE_BYTES", value_bytes)):
        if not given.isdecimal():
            raise ValueError(f"{field}: {given!r} is not a whole number")
    return Load(name, int(count), int(value_bytes))
