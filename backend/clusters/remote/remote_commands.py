"""Which members a command concerns and what each is asked over HTTP; operations on maps; what members know, for a snapshot.

Conditions of links are applied by the sender, so every member learns of the links that begin at it and of no others; it
learns them by addresses, for it does not know what we call the others.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec
from msgspec.json import Decoder

from quarterdeck.backend.clusters.remote.member_client import HttpRequest, MemberClient, Method, RequestRefused, decoded
from quarterdeck.backend.commands.catalogue import HttpForm, description_of
from quarterdeck.backend.commands.check import check, refuse_outside_simulation, with_addresses
from quarterdeck.backend.commands.links import links_of
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot, MemberReport, MemberSnapshot, SilentMember
from quarterdeck.backend.core.commands import CallMap, Command, CommandRefused, CutLink, Heal, Partition
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.operations import Answer, Get, Keys, Operation, Put, PutAll, Remove, Size
from quarterdeck.backend.core.snapshots import BadSnapshot
from quarterdeck.backend.member_api.answers import EntriesStored, Entry, ExportedEntry, MapKeys, MapSize, Snapshot


class CommandTarget(NamedTuple):
    """A member that commands may be for. `why` says why it cannot be asked now; empty when it can."""

    label: str
    address: Address
    url: str
    why: str = ""


class MemberRequest(NamedTuple):
    """The request over HTTP to the member called `label`."""

    label: str
    http: HttpRequest


def requests_for(command: Command, members: Mapping[str, CommandTarget]) -> tuple[MemberRequest, ...]:
    """Return the request to each member. Raises `CommandRefused` when not all can be sent: then none is to be sent."""
    description = description_of(command)
    member = getattr(command, "member", "")
    refuse_outside_simulation(command)
    if description.needs == "down":
        raise CommandRefused(f"{member} is not started from here: a remote member is started on its own machine")
    # Whether its process stands still is not known from here, so it is not the reason for a refusal.
    check(command, tuple(members), lambda label: "paused" if description.needs == "paused" else "running")
    if isinstance(command, CallMap):
        raise CommandRefused(f"{member} is asked for an operation by a call, not by a command")
    if description.http is None:
        raise CommandRefused("remote members do not do this; it is for clusters on this machine")
    if member:
        may_end = description.ending in ("stopped", "killed")
        body = _body(command, description.http, members)
        found = [MemberRequest(member, HttpRequest(description.http.method, description.http.path, body, may_end))]
    else:
        found = _link_requests(command, description.http, members)
    for request in found:
        if members[request.label].why:
            raise CommandRefused(f"{request.label} is not reached ({members[request.label].why}); nothing was done")
    return tuple(found)


def _body(command: Command, form: HttpForm, members: Mapping[str, CommandTarget]) -> dict[str, object] | None:
    """Return the arguments that are sent along, other members as addresses; None without any."""
    command = with_addresses(command, {label: target.address for label, target in members.items()})
    return {name: getattr(command, name) for name in form.body} or None


def _link_requests(command: Command, form: HttpForm, members: Mapping[str, CommandTarget]) -> list[MemberRequest]:
    if isinstance(command, Heal):
        reached = [member.label for member in members.values() if not member.why]
        if not reached:
            raise CommandRefused("no member is reached")
        return [MemberRequest(label, HttpRequest(form.method, form.path)) for label in reached]
    found = []
    addresses = {label: member.address for label, member in members.items()}
    for part in _parts(command):
        one_way = {"one_way": True} if hasattr(part, "one_way") else {}
        targets_of: dict[str, list[str]] = {}
        for source, target in dict.fromkeys(links_of(part)):  # the ways back too, when they are meant
            targets_of.setdefault(source, []).append(target)
        for source, targets in targets_of.items():
            from_here = msgspec.structs.replace(part, sources=(source,), targets=tuple(targets), **one_way)
            body = msgspec.to_builtins(with_addresses(from_here, addresses))
            found.append(MemberRequest(source, HttpRequest(form.method, form.path, body)))
    return found


def _parts(command: Command) -> Sequence[Any]:
    """Return the same in commands that name their links from each source to each target."""
    if not isinstance(command, Partition):
        return [command]
    groups = command.groups
    return [
        CutLink(group, tuple(label for other in groups if other is not group for label in other), True, command.mode)
        for group in groups
    ]


class PartiallyDone(Exception):
    """A command that concerns several members was done by some of them and not by others; the message names both."""


async def execute_command(client: MemberClient, command: Command, members: Mapping[str, CommandTarget]) -> None:
    """Carry out the command over HTTP.

    Raises `CommandRefused` when nothing was done, `PartiallyDone` when some members have done it and some have not.
    """
    to_do = requests_for(command, members)
    asked = (client.send(members[request.label].url, request.http) for request in to_do)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    outcomes = [(request.label, answer) for request, answer in zip(to_do, answers, strict=True)]
    failures = [(label, answer) for label, answer in outcomes if isinstance(answer, BaseException)]
    if len(failures) == len(outcomes):
        raise failures[0][1]
    if failures:
        done = ", ".join(label for label, answer in outcomes if isinstance(answer, bytes))
        raise PartiallyDone(f"done by {done}; not by {'; '.join(f'{label}: {problem}' for label, problem in failures)}")


_REPORT = msgspec.msgpack.Decoder(MemberReport)


async def remote_snapshot(
    client: MemberClient, name: str, targets: Mapping[str, CommandTarget], on_our_clock: Callable[[int], int]
) -> ClusterSnapshot:
    """Return what the members behind `targets` know, by label. `on_our_clock` turns UTC into the time of the cluster's records.

    Raises `CommandRefused` when no member reports anything.
    """
    answers = await asyncio.gather(*(_asked(client, target) for target in targets.values()))
    known = dict(zip(targets, answers, strict=True))
    reports = {label: answer for label, answer in known.items() if isinstance(answer, MemberReport)}
    silent = {label: answer for label, answer in known.items() if isinstance(answer, str)}
    if not reports:
        raise CommandRefused("; ".join(dict.fromkeys(silent.values())) or "no member was met yet")
    utc_us = max(report.utc_us for report in reports.values())
    at_us = on_our_clock(utc_us)
    pattern = next(iter(reports.values())).configuration
    members = tuple(
        MemberSnapshot(
            msgspec.structs.replace(report.configuration, label=label),
            report.captured.state,
            report.captured.clock_us + at_us - on_our_clock(report.utc_us),
        )
        for label, report in reports.items()
    )
    not_reached = tuple(
        SilentMember(msgspec.structs.replace(pattern, label=label, address=targets[label].address), why)
        for label, why in silent.items()
    )
    links = tuple(_links(reports.values(), {target.address: label for label, target in targets.items()}))
    in_flight = tuple(
        msgspec.structs.replace(sent, due_us=sent.due_us + on_our_clock(report.utc_us) - report.captured.clock_us)
        for report in reports.values()
        for sent in report.captured.waiting
    )
    return ClusterSnapshot(name, at_us, utc_us, members, not_reached, links=links, in_flight=in_flight)


async def _asked(client: MemberClient, target: CommandTarget) -> MemberReport | str:
    """Return the member's report, or why it has given none. A report that cannot be read was not given either."""
    if target.why:
        return f"it is not reached: {target.why}"
    try:
        answer = await client.get(target.url, "/snapshot", Snapshot)
        report = _REPORT.decode(answer.content)
        MemberMachine.restored(report.captured.state, report.configuration)
    except (BadSnapshot, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        return f"what it reported cannot be read here: {problem}"
    except CommandRefused as refusal:
        return str(refusal)
    if report.configuration.address != target.address:
        return f"it says that it is at {report.configuration.address}"
    return report


def _links(reports: Iterable[MemberReport], label_of: Mapping[Address, str]) -> Iterator[LinkChanged]:
    """Yield the conditions of all links under the labels by which members go here."""
    for report in reports:
        source = label_of.get(report.configuration.address, report.configuration.label)
        for link in report.links:
            yield msgspec.structs.replace(link, source=source, target=label_of.get(Address(link.target), link.target))


Answered = TypeVar("Answered")

BODY_BYTES = 2 * 1024 * 1024
"""The largest number of bytes of keys and values in one request of many entries; one entry may be longer."""

LENGTH_IN_JSON = 2
"""The largest number of bytes in JSON or base64 of a byte that is no plain letter."""

PROBLEMS = (HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)
"""The answer of a member when an operation has failed, not the request for it."""

RESERVED_KEYS = ("size", "keys")
"""The placeholder for a key in paths of requests about the whole map."""


async def call_map(client: MemberClient, url: str, operation: Operation) -> Answer:
    """Return the answer of the member at `url`. Raises `CommandRefused` when it may not be asked, or gives no answer."""

    async def ask(method: Method, path: str, answer: type[Answered], body: object = None) -> Answered:
        content = await client.send(url, HttpRequest(method, path, body, may_take_long=True))
        return decoded(Decoder(answer), content, url)

    of_map = f"/maps/{segment(operation.map)}"
    try:
        match operation:
            case Put(_, key, value):
                return Answer(value=value_of(await ask("PUT", f"{of_map}/{segment(key)}", Entry, _body_of(value))))
            case Get(_, key) if key in RESERVED_KEYS:
                why = f"its path asks for the {key} of the map"
                raise CommandRefused(f"the key {key!r} cannot be read over HTTP: {why}")
            case Get(_, key):
                return Answer(value=value_of(await ask("GET", f"{of_map}/{segment(key)}", Entry)))
            case Remove(_, key):
                return Answer(value=value_of(await ask("DELETE", f"{of_map}/{segment(key)}", Entry)))
            case PutAll(name, entries):  # no more after the first request that fails
                for some in in_batches(entries):
                    given = [{"key": key, **_body_of(value)} for key, value in some]
                    await ask("POST", "/entries", EntriesStored, {"map": name, "entries": given})
                return Answer()
            case Size():
                return Answer(size=(await ask("GET", f"{of_map}/size", MapSize)).size)
            case Keys():
                return Answer(keys=(await ask("GET", f"{of_map}/keys", MapKeys)).keys)
    except RequestRefused as refusal:
        if isinstance(operation, Get) and refusal.status == HTTPStatus.NOT_FOUND:
            return Answer()  # a missing key is an answer, as it is for a member that is asked without HTTP
        if refusal.status not in PROBLEMS:
            raise
        return Answer(problem=str(refusal), untouched=refusal.status != HTTPStatus.GATEWAY_TIMEOUT)


def in_batches(entries: Iterable[tuple[str, bytes]], most: int = sys.maxsize) -> Iterator[list[tuple[str, bytes]]]:
    """Yield the entries, at most this number at a time, and not more than fit into one request."""
    batch: list[tuple[str, bytes]] = []
    size = 0
    for key, value in entries:
        length = LENGTH_IN_JSON * (len(key) + len(value))
        if batch and (len(batch) >= most or size + length > BODY_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((key, value))
        size += length
    if batch:
        yield batch


def _body_of(value: bytes) -> dict[str, str]:
    try:
        return {"value": value.decode()}
    except UnicodeDecodeError:
        return {"value_base64": base64.b64encode(value).decode()}


def value_of(entry: Entry | ExportedEntry) -> bytes | None:
    """Return the value of an entry as it is stored; None without one."""
    if entry.value_base64 is not None:
        return base64.b64decode(entry.value_base64)
    return None if entry.value is None else entry.value.encode()


def segment(text: str) -> str:
    """Return `text` as one part of a path or a query."""
    return quote(text, safe="")
