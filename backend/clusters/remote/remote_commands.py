"""Which members a command concerns, and what each of them is asked over HTTP for it.

Conditions of links are applied by whoever sends, so every member is told of the links that begin at it and of no others; it
is told by addresses, for it does not know what we call the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from quarterdeck.backend.clusters.remote.member_client import HttpRequest, MemberClient
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.command_check import check
from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CallMap,
    ChangeState,
    Command,
    CommandRefused,
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
from quarterdeck.backend.core.join_list import BadJoinList, resolve_join_list
from quarterdeck.backend.core.links import LinkCommand

LinkOfOne = CutLink | DelayLink | LoseOnLink | DuplicateOnLink | DropMessages | HealLink


class CommandTarget(NamedTuple):
    """A member that commands may be for. `why` says why it cannot be asked now; empty when it can."""

    label: str
    address: Address
    url: str
    why: str = ""


class MemberRequest(NamedTuple):
    """`ask` the member called `label`."""

    label: str
    ask: HttpRequest


def requests_for(command: Command, members: Mapping[str, CommandTarget]) -> tuple[MemberRequest, ...]:
    """What to ask of whom. Raises `CommandRefused` when it cannot be done, or not wholly: then nothing is to be begun."""
    if isinstance(command, StartMember):
        raise CommandRefused(f"{command.member} is not started from here: a remote member is started where it lives")
    # Whether its process stands still is not known from here, so it is not the reason for a refusal.
    check(command, tuple(members), lambda label: "paused" if isinstance(command, ResumeMember) else "running")
    match command:
        case CallMap(member):
            raise CommandRefused(f"{member} is not commanded to do an operation, but called")
        case KillAt() | Operate():
            raise CommandRefused("remote members do not do this; it is for clusters on this machine")
        case SetJoinList(member, addresses):
            found = [
                MemberRequest(member, HttpRequest("PUT", "/join-list", {"addresses": _join_list(addresses, members)}))
            ]
        case ChangeState(member, state):
            found = [MemberRequest(member, HttpRequest("POST", "/state", {"state": state}))]
        case SetProperties(member, properties):
            found = [MemberRequest(member, HttpRequest("PATCH", "/properties", {"properties": properties}))]
        case StopMember(member):
            found = [MemberRequest(member, HttpRequest("POST", "/stop", {}, may_end=True))]
        case KillMember(member):
            found = [MemberRequest(member, HttpRequest("POST", "/faults/kill", may_end=True))]
        case PauseMember(member) | ResumeMember(member) | SearchClusters(member) | ArrangePartitions(member):
            found = [MemberRequest(member, HttpRequest("POST", PATHS[type(command)]))]
        case _:
            found = _link_requests(command, members)
    for request in found:
        if members[request.label].why:
            raise CommandRefused(f"{request.label} is not reached ({members[request.label].why}); nothing was done")
    return tuple(found)


PATHS: dict[type[Command], str] = {
    PauseMember: "/faults/pause",
    ResumeMember: "/faults/resume",
    SearchClusters: "/search",
    ArrangePartitions: "/arrange",
}


def _join_list(entries: Sequence[str], members: Mapping[str, CommandTarget]) -> tuple[Address, ...]:
    try:
        return resolve_join_list(entries, {label: one.address for label, one in members.items()})
    except BadJoinList as problem:
        raise CommandRefused(str(problem)) from problem


def _link_requests(command: LinkCommand, members: Mapping[str, CommandTarget]) -> list[MemberRequest]:
    """Each member at which links begin is told what becomes of those."""
    if isinstance(command, Heal):
        reached = [one.label for one in members.values() if not one.why]
        if not reached:
            raise CommandRefused("no member is reached")
        return [MemberRequest(label, HttpRequest("DELETE", "/faults")) for label in reached]
    found = []
    for part in _parts(command):
        one_way = {"one_way": True} if "one_way" in part.__struct_fields__ else {}
        for source, targets in _targets_by_source(part).items():
            ends = {"sources": (members[source].address,), "targets": tuple(members[one].address for one in targets)}
            body = msgspec.to_builtins(msgspec.structs.replace(part, **ends, **one_way))
            found.append(MemberRequest(source, HttpRequest("POST", "/faults", body)))
    return found


def _parts(command: Partition | LinkOfOne) -> list[LinkOfOne]:
    """The same in commands that name their links from each source to each target."""
    if not isinstance(command, Partition):
        return [command]
    groups = command.groups
    return [
        CutLink(group, tuple(one for other in groups if other is not group for one in other), True, command.mode)
        for group in groups
    ]


def _targets_by_source(part: LinkOfOne) -> dict[str, list[str]]:
    """Where the links lead that begin at each member; the ways back too, when they are meant."""
    match part:
        case DropMessages():
            one_way = True
        case HealLink():
            one_way = False
        case _:
            one_way = part.one_way
    links = [(source, target) for source in part.sources for target in part.targets if source != target]
    if not one_way:
        links += [(target, source) for source, target in links]
    found: dict[str, list[str]] = {}
    for source, target in dict.fromkeys(links):
        found.setdefault(source, []).append(target)
    return found


class PartlyDone(Exception):
    """A command that concerns several members was done by some of them and not by others; the message names both."""


async def carry_out(client: MemberClient, command: Command, members: Mapping[str, CommandTarget]) -> None:
    """Raises `CommandRefused` when nothing was done, `PartlyDone` when some members have done it and some have not."""
    to_do = requests_for(command, members)
    asked = (client.ask(members[request.label].url, request.ask) for request in to_do)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    outcomes = [(request.label, answer) for request, answer in zip(to_do, answers, strict=True)]
    failures = [(label, answer) for label, answer in outcomes if isinstance(answer, BaseException)]
    if len(failures) == len(outcomes):
        raise failures[0][1]
    if failures:
        done = ", ".join(label for label, answer in outcomes if isinstance(answer, bytes))
        raise PartlyDone(f"done by {done}; not by {'; '.join(f'{label}: {problem}' for label, problem in failures)}")
