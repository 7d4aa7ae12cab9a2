"""Whether a command can be done as things stand. Refusals are made here, before anything has changed.

Every kind of cluster asks this first, so all refuse the same commands in the same words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast

import msgspec

from quarterdeck.backend.commands.catalogue import CATALOGUE, ArgumentKind, CommandDescription, description_of
from quarterdeck.backend.core.address import (
    DEFAULT_PORT_TRY_COUNT,
    Address,
    BadAddress,
    BadJoinList,
    parse_address,
    resolve_join_list,
)
from quarterdeck.backend.core.commands import Command, CommandRefused, DelayLink
from quarterdeck.backend.core.events import EVENT_KINDS
from quarterdeck.backend.core.messages import MESSAGE_KINDS

Condition = Literal["down", "running", "paused"]
"""The state of a member's process."""


def refuse_outside_simulation(command: Command) -> None:
    """Raise `CommandRefused` for a command that only a simulated cluster can do."""
    description = description_of(command)
    if description.ability == "simulation":
        raise CommandRefused(f"{description.tag} is for simulated clusters only: no real member or network can do that")


def check(command: Command, labels: Sequence[str], condition_of: Callable[[str], Condition]) -> None:
    """Raise `CommandRefused`, with the reason for people, unless `command` can be done to the members `labels`."""
    description, arguments = description_of(command), cast("Any", command)
    if description.ability == "diagnostics":
        raise CommandRefused(f"{description.tag}: these members write no diagnostics; those of Hazelcast do")
    member: str | None = getattr(command, "member", None)
    if member is not None:
        _check_member(member, description, labels, condition_of)
    elif description.target == "links":
        _check_links(arguments.sources, arguments.targets, labels)
    elif description.target == "groups":
        _check_groups(arguments.groups, labels)
    for name, problem_of in _VALUE_CHECKS[type(command)]:
        if problem := problem_of(getattr(command, name)):
            raise CommandRefused(problem)
    if isinstance(command, DelayLink) and 0 < command.up_to_us < command.delay_us:
        raise CommandRefused(
            f"a range from {command.delay_us} down to {command.up_to_us} microseconds has nothing in it"
        )


AnyCommand = TypeVar("AnyCommand", bound=Command)
Names = tuple[str, ...]


def with_addresses(
    command: AnyCommand, known: Mapping[str, Address], port_try_count: int = DEFAULT_PORT_TRY_COUNT
) -> AnyCommand:
    """Return the same command with addresses where it names other members. Those of labels are `known`.

    Raises:
        CommandRefused: It names a member that is not known.
    """

    def address_of(name: str) -> str:
        try:
            return known.get(name) or parse_address(name)
        except BadAddress as problem:
            raise CommandRefused(f'unknown label "{name}"; known: {", ".join(known)}') from problem

    def addresses_of(entries: Names) -> Names:
        try:
            return resolve_join_list(entries, known, port_try_count=port_try_count)
        except BadJoinList as problem:
            raise CommandRefused(str(problem)) from problem

    return with_names(command, address_of, addresses_of)


def with_names(
    command: AnyCommand, name: Callable[[str], str], entries: Callable[[Names], Names] = lambda entries: entries
) -> AnyCommand:
    """Return the same command with other names for the members that it names besides its own, as their kinds declare."""

    def names(members: Names) -> Names:
        return tuple(map(name, members))

    by_kind: dict[str, Callable[[Any], Any]] = {
        "other member": name, "members": names, "groups": lambda groups: tuple(map(names, groups)), "join list": entries
    }  # fmt: skip
    named = ((each.name, by_kind[each.kind]) for each in description_of(command).arguments if each.kind in by_kind)
    return msgspec.structs.replace(command, **{field: of_kind(getattr(command, field)) for field, of_kind in named})


def _check_member(
    member: str, description: CommandDescription, labels: Sequence[str], condition_of: Callable[[str], Condition]
) -> None:
    _known([member], labels)
    if not description.needs:
        return
    condition = condition_of(member)
    if description.needs == "down":
        if condition != "down":
            raise CommandRefused(f"{member} is already running")
    elif condition == "down":
        raise CommandRefused(f"{member} is not running")
    elif description.needs == "paused" and condition != "paused":
        raise CommandRefused(f"{member} is not paused")
    elif description.needs in ("not paused", "master") and condition == "paused":
        raise CommandRefused(f"{member} {description.when_paused}")


def _known(members: Iterable[str], labels: Sequence[str]) -> None:
    for member in members:
        if member not in labels:
            raise CommandRefused(f'unknown label "{member}"; known: {", ".join(labels)}')


def _check_groups(groups: Sequence[Sequence[str]], labels: Sequence[str]) -> None:
    named = [member for group in groups for member in group]
    _known(named, labels)
    if len(groups) < 2 or not all(groups):
        raise CommandRefused("a partition needs two groups or more, and a member in each")
    twice = [member for member, times in Counter(named).items() if times > 1]
    if twice:
        raise CommandRefused(f"{twice[0]} stands in the partition twice")


def _check_links(sources: Sequence[str], targets: Sequence[str], labels: Sequence[str]) -> None:
    _known((*sources, *targets), labels)
    if not any(source != target for source in sources for target in targets):
        raise CommandRefused("there is no link between these; name a source and another member as target")


def _unknown(what: str, kinds: Iterable[str], known: Iterable[str]) -> str:
    strange = next((kind for kind in kinds if kind not in known), None)
    return "" if strange is None else f"there is no kind of {what} {strange!r}; known: {', '.join(known)}"


def _address_problem(address: str) -> str:
    try:
        parse_address(address)
    except BadAddress as problem:
        return str(problem)
    return ""


def _duration_problem(us: int) -> str:
    if us < 0:
        return f"a delay of {us} microseconds is negative"
    return f"a delay of {us} microseconds is longer than a record can say" if us >= 1 << 63 else ""


_CHECKS: dict[ArgumentKind, Callable[[Any], str]] = {
    "duration": _duration_problem,
    "probability": lambda chance: "" if 0 <= chance <= 1 else f"{chance:g} is not a probability; it lies from 0 to 1",
    "message kinds": lambda kinds: _unknown("message", kinds, MESSAGE_KINDS),
    "event kind": lambda kind: _unknown("event", (kind,), EVENT_KINDS),
    "address": _address_problem,
    "count": lambda count: "" if 0 < count < 1 << 63 else f"{count} is not a number of members; write 1 or more",
}
"""The checks of each kind of argument: the mistake, empty when the argument is valid."""
_VALUE_CHECKS = {
    command.command: tuple(
        (argument.name, _CHECKS[argument.kind]) for argument in command.arguments if argument.kind in _CHECKS
    )
    for command in CATALOGUE
}
