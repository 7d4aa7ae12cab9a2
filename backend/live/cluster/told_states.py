"""What all members of a live cluster know at one moment, each asked at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from quarterdeck.backend.core.cluster_snapshot import CapturedMember, InFlight, MemberSnapshot, UntoldMember
from quarterdeck.backend.core.commands.commands import CommandRefused
from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.live.member.host import Host
from quarterdeck.backend.live.member.run_clock import RunClock

Told = tuple[int, tuple[MemberSnapshot, ...], tuple[UntoldMember, ...], tuple[InFlight, ...]]
"""The time, who told what they know, who did not, and what was on its way."""


async def told_states(
    hosts: Mapping[str, Host],
    configurations: Mapping[str, MemberConfiguration],
    lives: Mapping[str, int],
    clock: RunClock,
) -> Told:
    """Return what the members behind `hosts` report, by label; `lives` counts the processes of each.

    All share the `clock` of the run.
    """
    members: list[MemberSnapshot] = []
    untold: list[UntoldMember] = []
    in_flight: list[InFlight] = []
    answers = await asyncio.gather(*(_asked(host) for host in hosts.values()))
    at_us = clock.now_us()
    for (label, host), answer in zip(hosts.items(), answers, strict=True):
        if isinstance(answer, str):
            untold.append(UntoldMember(configurations[label], answer))
        else:
            members.append(MemberSnapshot(configurations[label], answer.state, at_us, host.paused, lives[label]))
            in_flight += answer.waiting
    return at_us, tuple(members), tuple(untold), tuple(in_flight)


async def _asked(host: Host) -> CapturedMember | str:
    """Return what the member reports, or why it reports nothing."""
    try:
        return await host.told_state()
    except (CommandRefused, TimeoutError) as silence:
        return str(silence)
