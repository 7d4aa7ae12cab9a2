"""What a member says of itself over HTTP, and the other members that it knows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from msgspec import convert

from quarterdeck.backend.clusters.remote.access import url_of_other
from quarterdeck.backend.clusters.remote.member_client import MemberClient
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import TableChanged
from quarterdeck.backend.member_api.beliefs import ThisMember
from quarterdeck.backend.member_api.partitions import Table


def urls_known_of(facts: ThisMember, url: str) -> Iterable[str]:
    """Where a member thinks that others of its cluster may be, apart from those on its list."""
    listed = {member.address for member in facts.members}
    known_of = dict.fromkeys((*facts.join_list, *facts.remembered))
    return [url_of_other(address, url, facts.address) for address in known_of if address not in listed]


async def present_state(client: MemberClient, url: str, *, started: bool, rows: bool) -> list[Record]:
    """Ask the member at `url` for its state now, and return it as records.

    With `started` they begin with the start of its incarnation, for a reader that knows nothing of it. Without `rows` its table
    is a version and a digest.

    Raises:
        CommandRefused: It does not answer.
    """
    facts = await client.facts(url)
    found: list[Event] = []
    if started:
        lite = any(member.lite for member in facts.members if member.uuid == facts.uuid)
        found.append(events.MemberStarted(facts.address, lite, facts.join_list))
    if facts.members and facts.master is not None:
        listed = tuple(convert(member, Member, from_attributes=True) for member in facts.members)
        found.append(
            events.ListInstalled(facts.list_version, facts.lineage, facts.master, listed, facts.master, "unknown")
        )
    elif facts.master is not None:
        found.append(events.MasterChanged(facts.master, ""))
    if facts.master == facts.address and not facts.is_master:
        found.append(events.ClaimStarted(facts.list_version, (), ()))
    found += (
        events.JoinListChanged(facts.join_list, 0, facts.address),
        events.ClusterStateChanged(facts.cluster_state, ""),
    )
    if facts.table_version and rows:
        async for page in table_pages(client, url):
            changed = (page.table_version, page.digest, page.partitions, page.holders, page.rows)
            found.append(TableChanged(*changed, facts.uuid, "published"))
    elif facts.table_version:
        found.append(TableChanged(facts.table_version, facts.table_digest, 0, (), (), facts.uuid, "published"))
    return [Record(facts.run, facts.label, facts.uuid, 0, facts.now_us, facts.utc_us, event) for event in found]


async def table_pages(client: MemberClient, url: str) -> AsyncIterator[Table]:
    """Yield the table of the member at `url`, some thousand rows at a time."""
    start: int | None = 0
    while start is not None:
        page = await client.get(url, f"/table?from={start}", Table)
        yield page
        start = page.next
