"""The command line that does what a key or a line of the prompt does: for scripts, for runbooks, and to learn it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from quarterdeck.app.actions.action import Action
from quarterdeck.app.commands.command_text import describe
from quarterdeck.backend.clusters.cluster import Cluster
from quarterdeck.backend.clusters.connection_status import ConnectionStatusSource
from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CallMap,
    ChangeState,
    Command,
    KillAt,
    KillMember,
    Operate,
    SearchClusters,
    SetJoinList,
    SetProperties,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.data.calls.operations import Get, Keys, Operation, Put, Remove, Size

PROGRAM = "quarterdeck"

CONNECT_PLACEHOLDER = "--connect URL"
"""How to reach a cluster that no profile and no URL led to: the reader fills in the URL of a member."""

CLUSTER_COMMANDS = ("cluster", "map")
"""Commands that have to be told which cluster they are for."""


def connect_options(cluster: Cluster) -> str:
    """The options that lead to `cluster` from elsewhere: a member that answers; empty when only this console reaches it."""
    if not isinstance(cluster, ConnectionStatusSource):
        return ""
    reach = sorted(cluster.connection_status().values(), key=lambda one: one.contact != "connected")
    return f"--connect {shlex.quote(reach[0].url)}" if reach else ""


def lines_of(commands: Iterable[Command], reach: str = "") -> list[str]:
    """The command lines that do `commands`, those left out that only the console does.

    `reach` are the options that lead to the cluster, such as ``--cluster orders``.
    """
    return [line for command in commands if (line := line_of(command, reach))]


def line_of(command: Command, reach: str = "") -> str:
    """The command line that does `command`; empty when the command line has no words for it."""
    command_words, given = _words(command)
    if not command_words:
        return ""
    parts = [PROGRAM, *command_words]
    if command_words[0] in CLUSTER_COMMANDS:
        parts.append(reach or CONNECT_PLACEHOLDER)
    if any(one.startswith("-") for one in given):
        parts.append("--")
    return " ".join((*parts, *map(shlex.quote, given)))


def line_of_action(action: Action, reach: str = "", *, export: str = "") -> str:
    """The command line that shows what `action` shows; empty when only the console does this.

    With `export`, a file, the line that writes it: its suffix names the format.
    """
    if not action.cli:
        return ""
    words = action.cli.split()
    line = " ".join((PROGRAM, *words, *([reach or CONNECT_PLACEHOLDER] if words[0] in CLUSTER_COMMANDS else [])))
    return f"{line} -o {export.rpartition('.')[2].lower()} > {shlex.quote(export)}" if export else line


def _words(command: Command) -> tuple[Sequence[str], Sequence[str]]:
    """The command with its options, and what it is given; both empty when there is none."""
    match command:
        case KillAt() | Operate() | SetProperties():
            return (), ()
        case StartMember(member):
            return ("member", "start", _option("--name", member)), ()
        case KillMember(member):
            return ("cluster", "kill"), (member,)
        case ChangeState(member, state):
            return ("cluster", "state", _option("--member", member)), (state,)
        case SetJoinList(member, addresses):
            return ("cluster", "join-list", "set", _option("--member", member)), addresses
        case CallMap(_, operation):
            return _map_words(operation)
        case StopMember() | SearchClusters() | ArrangePartitions():
            return ("cluster", "do"), describe(command).split()
        case _:
            return ("cluster", "fault"), describe(command).split()


def _map_words(operation: Operation) -> tuple[Sequence[str], Sequence[str]]:
    match operation:
        case Put(map, key, value):
            return ("map", "put", _option("--map", map)), (key, value.decode(errors="replace"))
        case Get(map, key):
            return ("map", "get", _option("--map", map)), (key,)
        case Remove(map, key):
            return ("map", "remove", _option("--map", map)), (key,)
        case Size(map):
            return ("map", "size", _option("--map", map)), ()
        case Keys(map):
            return ("map", "keys", _option("--map", map)), ()
        case _:
            return (), ()


def _option(name: str, value: str) -> str:
    """An option with its value, whatever letters the value begins with."""
    return f"{name}={shlex.quote(value)}"
