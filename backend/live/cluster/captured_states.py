"""What all members of a live cluster know at one moment, each asked at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from quarterdeck.backend.core.cluster_snapshot import CapturedMember, InFlight, MemberSnapshot, SilentMember
from quarterdeck.backend.core.commands.commands import CommandRefused
from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.live.member.member_host import Host
from quarterdeck.backend.live.member.run_clock import RunClock

Captured = tuple[int, tuple[MemberSnapshot, ...], tuple[SilentMember, ...], tuple[InFlight, ...]]
"""The time, the members that reported, those that did not, and what was on its way."""


async def captures(
    hosts: Mapping[str, Host],
    configurations: Mapping[str, MemberConfiguration],
    starts: Mapping[str, int],
    clock: RunClock,
) -> Captured:
    """Return what the members behind `hosts` report, by label; `incarnations` counts the processes of each.

    All share the `clock` of the run.
    """
    members: list[MemberSnapshot] = []
    untold: list[SilentMember] = []
    in_flight: list[InFlight] = []
    answers = await asyncio.gather(*(_asked(host) for host in hosts.values()))
    at_us = clock.now_us()
    for (label, host), answer in zip(hosts.items(), answers, strict=True):
        if isinstance(answer, str):
            untold.append(SilentMember(configurations[label], answer))
        else:
            members.append(MemberSnapshot(configurations[label], answer.state, at_us, host.paused, starts[label]))
            in_flight += answer.waiting
    return at_us, tuple(members), tuple(untold), tuple(in_flight)


async def _asked(host: Host) -> CapturedMember | str:
    try:
        return await host.captured_state()
    except (CommandRefused, TimeoutError) as silence:
        return str(silence)
