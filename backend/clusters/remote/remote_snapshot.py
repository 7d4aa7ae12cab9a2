"""A snapshot of members that run elsewhere: each is asked for all that it knows, and clocks are brought together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from quarterdeck.backend.clusters.remote.member_client import MemberClient
from quarterdeck.backend.clusters.remote.remote_commands import CommandTarget
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_snapshot import (
    ClusterSnapshot,
    InFlight,
    MemberReport,
    MemberSnapshot,
    SilentMember,
)
from quarterdeck.backend.core.commands.commands import CommandRefused
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.snapshots import BadSnapshot
from quarterdeck.backend.member_api.answers import Snapshot

_REPORT = msgspec.msgpack.Decoder(MemberReport)


async def remote_snapshot(
    client: MemberClient, name: str, targets: Mapping[str, CommandTarget], on_our_clock: Callable[[int], int]
) -> ClusterSnapshot:
    """Return what the members behind `targets` know, by label. `on_our_clock` turns UTC into the time of the cluster's records.

    Raises:
        CommandRefused: No member reports anything.
    """
    answers = await asyncio.gather(*(_asked(client, target) for target in targets.values()))
    reports: dict[str, MemberReport] = {}
    silent: dict[str, str] = {}
    for label, answer in zip(targets, answers, strict=True):
        if isinstance(answer, str):
            silent[label] = answer
        else:
            reports[label] = answer
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
    in_flight = tuple(_in_flight(reports.values(), on_our_clock))
    return ClusterSnapshot(name, at_us, utc_us, members, not_reached, links=links, in_flight=in_flight)


async def _asked(client: MemberClient, target: CommandTarget) -> MemberReport | str:
    """Return what the member reports, or why it has reported nothing. What cannot be read was not reported either."""
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


def _in_flight(reports: Iterable[MemberReport], on_our_clock: Callable[[int], int]) -> Iterator[InFlight]:
    for report in reports:
        ahead_us = on_our_clock(report.utc_us) - report.captured.clock_us
        for message in report.captured.waiting:
            yield msgspec.structs.replace(message, due_us=message.due_us + ahead_us)
