"""One look at all members of a cluster that can be found from some of them, over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quarterdeck.backend.clusters.remote.access import address_in, url_of_other
from quarterdeck.backend.clusters.remote.member_client import MemberClient, RequestRefused
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands.commands import CommandRefused
from quarterdeck.backend.member_api.beliefs import ThisMember

MAX_PROBED = 1_000
"""However many a list names: no more are asked."""


@dataclass(frozen=True)
class DiscoveredMember:
    """A member that was looked for: what it says of itself, or `why` it says nothing."""

    url: str
    facts: ThisMember | None = None
    why: str = ""
    refused: bool = False
    """It did answer, but does not tell us."""
    clock_ahead_us: int = 0
    """By how much its clock shows more than this machine's."""

    @property
    def address(self) -> Address:
        return self.facts.address if self.facts is not None else address_in(self.url)

    @property
    def label(self) -> str:
        return self.facts.label if self.facts is not None else self.address


async def probe_member(client: MemberClient, url: str) -> DiscoveredMember:
    """Ask one member who it is. Raises nothing but what cancels it."""
    before_us = time.time_ns() // 1_000
    try:
        facts = await client.facts(url)
    except CommandRefused as problem:
        return DiscoveredMember(url, why=str(problem), refused=isinstance(problem, RequestRefused))
    middle_us = (before_us + time.time_ns() // 1_000) // 2
    return DiscoveredMember(url, facts, clock_ahead_us=facts.utc_us - middle_us)


async def discover(client: MemberClient, urls: Sequence[str]) -> list[DiscoveredMember]:
    """All members at `urls`, those on their lists, and those of the same cluster that they only know of, such as another half.

    Who is on a list and does not answer is there with the reason; of those who are only known of nothing is said then.
    """
    found: dict[Address, DiscoveredMember] = {}
    asked: set[str] = set()
    frontier = list(dict.fromkeys(urls))
    expected = set(frontier)
    while frontier:
        asked.update(frontier)
        discovered_members = await asyncio.gather(*(probe_member(client, url) for url in frontier))
        frontier = []
        names = {
            one.facts.cluster_name
            for one in (*found.values(), *discovered_members)
            if one.facts and one.url in expected
        }
        for discovered_member in discovered_members:
            is_ours = discovered_member.facts is not None and discovered_member.facts.cluster_name in names
            if discovered_member.url not in expected and not is_ours:
                continue
            if discovered_member.facts is not None or discovered_member.address not in found:
                found[discovered_member.address] = discovered_member
            if discovered_member.facts is None:
                continue
            listed = [
                url_of_other(member.address, discovered_member.url, discovered_member.address)
                for member in discovered_member.facts.members
            ]
            expected.update(listed)
            frontier += [*listed, *urls_known_of(discovered_member.facts, discovered_member.url)]
        frontier = [url for url in dict.fromkeys(frontier) if url not in asked and address_in(url) not in found]
        del frontier[max(MAX_PROBED - len(asked), 0) :]
    return list(found.values())


def urls_known_of(facts: ThisMember, url: str) -> Iterable[str]:
    """Where a member thinks that others of its cluster may be, apart from those on its list."""
    listed = {member.address for member in facts.members}
    known_of = dict.fromkeys((*facts.join_list, *facts.remembered))
    return [url_of_other(address, url, facts.address) for address in known_of if address not in listed]
