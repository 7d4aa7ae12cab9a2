"""Commands in words: as the line of the prompt that does the same, and as the question before a destructive one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CallMap,
    ChangeState,
    Command,
    CutLink,
    DelayLink,
    DropMessages,
    DuplicateOnLink,
    Heal,
    HealLink,
    KillAt,
    KillMember,
    LoseOnLink,
    Operate,
    Partition,
    PauseMember,
    ResumeMember,
    SearchClusters,
    SetJoinList,
    SetProperties,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.data.calls.operations import Get, Operation, Put, Remove
from quarterdeck.backend.core.properties import MILLISECOND_US
from quarterdeck.backend.picture.text.formatting import one_line

ONE_WAY = "one-way"

AFTER = "after"

NO_KINDS = "none"


def describe(command: Command) -> str:
    """The line of the prompt that means `command`; `app.commands.grammar.parse_line` reads it back."""
    match command:
        case Heal():
            return "heal"
        case HealLink(sources, targets):
            return f"heal {_ends(sources, targets)}"
        case Partition(groups):
            return f"partition {'|'.join(','.join(group) for group in groups)}"
        case CutLink(sources, targets, one_way):
            return f"cut {_ends(sources, targets, one_way=one_way)}"
        case DelayLink(sources, targets, delay_us, one_way):
            return f"delay {_ends(sources, targets, _exactly(delay_us), one_way=one_way)}"
        case LoseOnLink(sources, targets, probability, one_way):
            return f"lose {_ends(sources, targets, str(probability), one_way=one_way)}"
        case DuplicateOnLink(sources, targets, probability, one_way):
            return f"duplicate {_ends(sources, targets, str(probability), one_way=one_way)}"
        case DropMessages(sources, targets, kinds):
            return f"drop-messages {_ends(sources, targets, ','.join(kinds) or NO_KINDS)}"
        case SetJoinList(member, addresses):
            return f"join-list {member} {','.join(addresses)}"
        case ChangeState(member, state):
            return f"state {member} {state}"
        case SetProperties(member, properties):
            return f"set {member} {' '.join(f'{name}={value}' for name, value in properties.items())}"
        case KillAt(member, event, after):
            return f"kill-at {member} {event}" + (f" {AFTER}" if after else "")
        case CallMap(member, operation):
            return shlex.join((*_call(operation), member))
        case (
            StartMember(member)
            | StopMember(member)
            | KillMember(member)
            | PauseMember(member)
            | ResumeMember(member)
            | SearchClusters(member)
            | Operate(member)
            | ArrangePartitions(member)
        ):
            return f"{command.__struct_config__.tag} {member}"


def question(commands: Sequence[Command]) -> tuple[str, str]:
    """What to ask before `commands` are done, and the word that does them."""
    on_links = not hasattr(commands[0], "member")
    if len({type(command) for command in commands}) > 1 or (on_links and len(commands) > 1):
        return "\n".join(("Do all of this?", *map(one_line, map(describe, commands)))), "Do"
    match commands[0]:
        case SetJoinList():
            return f"Edit the join list of {_members(commands)}'s cluster?", "Edit"
        case HealLink(sources, targets):
            return one_line(
                f"Make the links between {', '.join(sources)} and {', '.join(targets)} plain again?"
            ), "Heal"
        case ChangeState(member, state):
            return f"Change the cluster of {one_line(member)} to {state}?", "Change"
        case SearchClusters():
            return f"Let {_members(commands)} look for other clusters, and merge?", "Search"
        case first if on_links:
            return one_line(f"Do this: {describe(first)}?"), "Do"
        case first:
            verb = str(first.__struct_config__.tag).capitalize()
            return f"{verb} {_members(commands)}?", verb


def _call(operation: Operation) -> tuple[str, ...]:
    """The words of the prompt; those of operations that it has no words for are only for people."""
    match operation:
        case Put(map, key, value):
            return "put", map, key, value.decode(errors="replace")
        case Get(map, key):
            return "get", map, key
        case Remove(map, key):
            return "remove", map, key
        case _:
            return str(operation.__struct_config__.tag), operation.map


def _exactly(duration_us: int) -> str:
    """A length of time as the prompt reads it, to the microsecond."""
    milliseconds, rest_us = divmod(duration_us, MILLISECOND_US)
    return f"{duration_us}us" if rest_us else f"{milliseconds}ms"


def _members(commands: Sequence[Command]) -> str:
    return ", ".join(one_line(command.member) for command in commands if hasattr(command, "member"))


def _ends(sources: Sequence[str], targets: Sequence[str], *more: str, one_way: bool = False) -> str:
    return " ".join((",".join(sources), ",".join(targets), *more, *([ONE_WAY] if one_way else [])))
