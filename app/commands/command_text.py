"""Writes commands as text: as a line of the prompt, as a command line for runbooks, and as a question; and reads command lines.

All of it follows from the catalogue of commands and from how each kind of argument is written. A command line of the shell that
is copied from a page or a runbook to the prompt does the same there.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quarterdeck.app.actions.action import Action
from quarterdeck.backend.clusters.cluster import Cluster, ConnectionStatusSource, ReachedByOptions
from quarterdeck.backend.commands.catalogue import (
    BY_PROMPT,
    CATALOGUE,
    FAULT,
    Argument,
    ArgumentKind,
    CommandDescription,
    description_of,
)
from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US
from quarterdeck.backend.picture.text.formatting import one_line

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.traffic import Traffic

PROGRAM = "quarterdeck"

CONNECT_PLACEHOLDER = "--connect URL"
"""How to reach a cluster without profile and URL: the reader fills in the URL of a member."""

CLUSTER_COMMANDS = ("cluster", "map")
"""Commands that need to know their cluster."""

NO_KINDS = "none"


def _exactly(duration_us: int) -> str:
    """Return a duration as the prompt reads it, to the microsecond."""
    milliseconds, rest_us = divmod(duration_us, MILLISECOND_US)
    return f"{duration_us}us" if rest_us else f"{milliseconds}ms"


ARGUMENT_TEXTS: dict[ArgumentKind, Callable[[Any], str]] = {
    "members": ",".join,
    "groups": lambda groups: "|".join(map(",".join, groups)),
    "duration": _exactly,
    "message kinds": lambda kinds: ",".join(kinds) or NO_KINDS,
    "link faults": ",".join,
    "join list": ",".join,
    "properties": lambda properties: " ".join(f"{name}={value}" for name, value in properties.items()),
    "bytes": lambda value: value.decode(errors="replace"),
}
"""How the prompt writes arguments that are not written as they are; `app.commands.grammar` reads them back."""


def argument_text(argument: Argument, value: object) -> str:
    """Return an argument as the prompt writes it; empty for a flag that is not set, and for one without a value."""
    if not value and argument.optional:
        return ""
    if argument.kind == "flag":
        return argument.key if value else ""
    return ARGUMENT_TEXTS.get(argument.kind, str)(value)


def describe(command: Command) -> str:
    """Return the line of the prompt that means `command`; `app.commands.grammar.parse_line` reads it back."""
    description = description_of(command)
    values = description.values(command)
    words = [argument_text(argument, values[argument.name]) for argument in description.typed]
    if description.operation is not None:
        return shlex.join((description.word, *words))
    return " ".join((description.word, *filter(None, words)))


def question(commands: Sequence[Command]) -> tuple[str, str]:
    """Return the question to ask before `commands` are done, and the verb for the button."""
    first = description_of(commands[0])
    if len({type(command) for command in commands}) > 1 or (first.target != "member" and len(commands) > 1):
        return "\n".join(("Do all of this?", *map(one_line, map(describe, commands)))), "Do"
    if first.target != "member" and not first.question:
        return one_line(f"Do this: {describe(commands[0])}?"), "Do"
    values = {name: _in_question(value) for name, value in first.values(commands[0]).items()}
    if first.target == "member":
        values["member"] = ", ".join(one_line(command.member) for command in commands if hasattr(command, "member"))
    verb = first.verb or str(commands[0].__struct_config__.tag).capitalize()
    return (first.question or f"{verb} {{member}}?").format(**values), verb


def _in_question(value: object) -> str:
    return one_line(", ".join(map(str, value)) if isinstance(value, tuple) else str(value))


def connect_options(cluster: Cluster) -> str | None:
    """Return the options that reach `cluster` from elsewhere, or None if only this console reaches it."""
    if isinstance(cluster, ReachedByOptions):
        return shlex.join(cluster.connect_options())
    if not isinstance(cluster, ConnectionStatusSource):
        return None
    reach = sorted(cluster.connection_status().values(), key=lambda one: one.contact != "connected")
    return f"--connect {shlex.quote(reach[0].url)}" if reach else ""


def lines_of(commands: Iterable[Command], connection: str | None = "") -> list[str]:
    """Return the command lines that do `commands`, except those that only the console can do.

    `connection` has the options that reach the cluster, such as ``--cluster orders``; None if it cannot be reached from
    elsewhere.
    """
    return [line for command in commands if (line := line_of(command, connection))]


def line_of(command: Command, connection: str | None = "") -> str:
    """Return the command line that does `command`; empty if there is none, or if it cannot reach the cluster."""
    description = description_of(command)
    if not description.cli or (connection is None and description.cli.split()[0] in CLUSTER_COMMANDS):
        return ""
    values = description.values(command)
    texts: dict[str, Sequence[str]] = {
        argument.name: values[argument.name]
        if argument.kind == "join list"
        else (argument_text(argument, values[argument.name]),)
        for argument in description.arguments
    }
    texts["line"] = describe(command).split()
    words, given = [PROGRAM], list[str]()
    for part in description.cli.split():
        option, _, name = part.partition("{")
        if not name:
            words.append(part)
        elif option:
            words.append(option + shlex.quote(texts[name.rstrip("}")][0]))
        else:
            given += texts[name.rstrip("}")]
    if words[1] in CLUSTER_COMMANDS:
        words.append(connection or CONNECT_PLACEHOLDER)
    if any(argument.startswith("-") for argument in given):
        words.append("--")
    return " ".join((*words, *map(shlex.quote, given)))


def line_of_load(traffic: Traffic, connection: str | None = "") -> str:
    """Return the command line that makes this traffic; empty if it cannot reach the cluster."""
    load = traffic.load
    if connection is None:
        return ""
    words = [PROGRAM, "map", "load", connection or CONNECT_PLACEHOLDER, f"--rate {load.rate:.12g} --keys {load.keys}"]
    words += [f"--value-bytes {load.value_bytes} --skew {load.skew:g} --reads {load.reads:g}"]
    words += [f"--map={shlex.quote(load.map)}", f"--for {load.lasting_us / SECOND_US:g}"]
    return " ".join(words)


def line_of_action(action: Action, connection: str | None = "", *, export: str = "") -> str:
    """Return the command line that shows what `action` shows; empty if only the console can show it.

    With `export`, a file, return the line that writes it: its suffix names the format.
    """
    if not action.cli:
        return ""
    words = action.cli.split()
    if connection is None and words[0] in CLUSTER_COMMANDS:
        return ""
    options = [connection or CONNECT_PLACEHOLDER] if words[0] in CLUSTER_COMMANDS else []
    line = " ".join((PROGRAM, *words, *options))
    return f"{line} -o {export.rpartition('.')[2].lower()} > {shlex.quote(export)}" if export else line


FLAGS = ("--tls", "--")
"""Options without a value. All other options of lines that act have one."""

LOAD_OPTIONS = {
    "--keys": "keys", "--value-bytes": "bytes", "--skew": "skew", "--reads": "reads", "--map": "map", "--for": "for",
}  # fmt: skip
"""The options of `map load` as the prompt has them."""

DEFAULT_MAP = "default"


def as_prompt_line(line: str) -> str:
    """Return a command line of the shell as the prompt writes it, and any other line as it is.

    Which cluster is meant, and as whom it is spoken to, is left out: the prompt acts on the cluster in sight.
    """
    try:
        words, options = _divided(shlex.split(line))
    except ValueError:
        return line
    if words[:1] == [PROGRAM]:
        words = words[1:]
    if words[:2] == ["map", "load"]:
        rate = [options["--rate"]] if "--rate" in options else words[2:]
        said = (f"{word}={options[option]}" for option, word in LOAD_OPTIONS.items() if option in options)
        return " ".join(("load", *rate, *said))
    for group in (BY_PROMPT, FAULT):
        literals = group.split()[:-1]
        if words[: len(literals)] == literals and len(words) > len(literals):
            return " ".join(words[len(literals) :])
    return next((found for command in CATALOGUE if (found := _as_prompt_line(command, words, options))), line)


def _divided(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    plain, options = list[str](), dict[str, str]()
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            plain.append(word)
        elif word not in FLAGS:
            option, given, value = word.partition("=")
            options[option] = value if given else next(rest, "")
    return plain, options


def _as_prompt_line(description: CommandDescription, words: Sequence[str], options: Mapping[str, str]) -> str:
    if not description.cli or description.cli in (BY_PROMPT, FAULT):
        return ""
    parts = description.cli.split()
    literals = [part for part in parts if "{" not in part]
    if list(words[: len(literals)]) != literals:
        return ""
    values, free = dict[str, str](), list(words[len(literals) :])
    for part in (part for part in parts if "{" in part):
        option, _, name = part.rstrip("}").partition("{")
        if option:
            values[name] = options.get(option.rstrip("="), DEFAULT_MAP if name == "map" else "")
        elif free:
            values[name] = free.pop(0)
    given = [values[argument.name] for argument in description.typed if values.get(argument.name)]
    return " ".join((description.word, *map(shlex.quote, given), *free))
