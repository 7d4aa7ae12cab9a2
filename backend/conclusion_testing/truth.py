"""The truth at one moment of a simulated run, read from the members: who runs, holds which list, leads and stores data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from quarterdeck.backend.conclusion_testing.entries import EntryLedger
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.simulation.virtual_time.world import World

ListName = tuple[str, int, frozenset[str]]
"""A member list, by lineage, version and the incarnations on it."""


class TrueMember(NamedTuple):
    """A process that runs, frozen or not."""

    label: str
    state: MemberState
    is_paused: bool

    @property
    def list(self) -> ListName | None:
        """Return the member list that it holds; None before it has joined."""
        members = self.state.members
        return None if members is None else (members.lineage, members.version, members.uuids)

    @property
    def leads(self) -> bool:
        return self.state.is_master and not self.is_paused


class Truth(Struct, frozen=True):
    """What is so at one moment."""

    at_us: int
    running: frozenset[str]
    """The members whose process runs, frozen ones included."""
    frozen: frozenset[str]
    joined: frozenset[str]
    """The members that are awake and hold a list."""
    is_whole: bool
    """Whether all who have joined hold one list with one master, on which every member runs and is not frozen."""
    is_troubled: bool
    """Whether a member suspects another one, or claims the mastership."""
    is_cut: bool
    """Whether a link between two members that run is blocked."""
    ghosts: frozenset[str]
    """The members of which a list has an incarnation that does not run."""
    masters: frozenset[str]
    lists: dict[str, ListName]
    """By member that has joined."""
    tables: dict[str, int]
    """The digest of the partition table of each member that has joined and has one."""
    owners: dict[str, int]
    """The same of the owners alone."""
    unowned: int
    """Partitions of the tables of masters, else of all, whose owner does not run, or is not on the list of that member."""
    is_passive: bool
    """Whether a member refuses writes by the state of the cluster."""
    is_short: bool
    """Whether a member refuses calls as it sees too few members. Hazelcast has no such rule for whole clusters."""
    states: frozenset[str]
    data_members: frozenset[str]
    owned: dict[str, dict[str, int]]
    """By map and owner, the entries at owners that are awake."""
    fewest_copies: int | None
    """Of a promised entry that a member on a list holds; None where there is none."""


def running_members(world: World) -> list[TrueMember]:
    """Return all members that run."""
    return [
        TrueMember(label, node.machine.inspect(), node.paused)
        for label, node in world.nodes.items()
        if node.machine is not None
    ]


def truth_of(world: World, ledger: EntryLedger) -> Truth:
    """Return what is so now."""
    members = running_members(world)
    joined = [member for member in members if member.list is not None and not member.is_paused]
    lists = {member.label: member.list for member in joined if member.list is not None}
    different = frozenset(lists.values())
    masters = [member for member in members if member.leads]
    tables = {member.label: table for member in joined if (table := member.state.partitions.table) is not None}
    running = frozenset(member.state.uuid for member in members)
    awake = frozenset(member.state.uuid for member in joined)
    return Truth(
        at_us=world.now_us,
        running=frozenset(member.label for member in members),
        frozen=frozenset(member.label for member in members if member.is_paused),
        joined=frozenset(member.label for member in joined),
        is_whole=len(different) == 1 == len(masters) and next(iter(different))[2] == awake,
        is_troubled=any(member.state.suspicions or member.state.claim is not None for member in joined),
        is_cut=_is_cut(world, [member.label for member in members]),
        ghosts=_ghosts(world, joined, running),
        masters=frozenset(member.label for member in masters),
        lists=lists,
        tables={label: table.digest for label, table in tables.items()},
        owners={label: hash(tuple(row[0] and row[0].uuid for row in table.rows)) for label, table in tables.items()},
        unowned=_unowned(masters or joined, running),
        is_passive=any(member.state.cluster_state == "PASSIVE" for member in joined),
        is_short=not all(member.state.operating for member in joined),
        states=frozenset(member.state.cluster_state for member in joined),
        data_members=frozenset(member.label for member in joined if not member.state.lite),
        owned=_owned(joined),
        fewest_copies=_fewest_copies(members, frozenset().union(*(uuids for _, _, uuids in different)), ledger),
    )


def _ghosts(world: World, joined: Iterable[TrueMember], running: frozenset[str]) -> frozenset[str]:
    listed = {
        listed for member in joined if member.state.members is not None for listed in member.state.members.members
    }
    return frozenset(world.network.nodes[member.address].label for member in listed if member.uuid not in running)


def _owned(joined: Iterable[TrueMember]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for member in joined:
        data = member.state.data
        for partition in data.owner_states:
            store = data.stores.get(partition)
            for name, entries in store.maps.items() if store is not None else ():
                of_map = counts.setdefault(name, {})
                of_map[member.label] = of_map.get(member.label, 0) + len(entries)
    return counts


def _fewest_copies(members: Sequence[TrueMember], side: frozenset[str], ledger: EntryLedger) -> int | None:
    """Return the fewest copies of a promised entry. One without any is on its way from another side, or lost."""
    if any(member.state.brings_entries for member in members):
        return None  # what merges is written anew, one entry after the other
    stores = [member.state.data.stores for member in members if member.state.uuid in side]
    fewest: int | None = None
    for (name, key), partition in ledger.promised():
        held = (store for store in (mine.get(partition) for mine in stores) if store is not None)
        copies = sum(store.find(name, key) is not None for store in held)
        if copies and (fewest is None or copies < fewest):
            fewest = copies
    return fewest


def _unowned(masters: Iterable[TrueMember], running: frozenset[str]) -> int:
    found = 0
    for master in masters:
        table = master.state.partitions.table
        if table is not None:
            serving = running & (master.list[2] if master.list is not None else frozenset())
            rows = zip(table.rows, table.versions, strict=True)
            found += sum(bool(version) and (row[0] is None or row[0].uuid not in serving) for row, version in rows)
    return found


def _is_cut(world: World, labels: list[str]) -> bool:
    links = world.network.links
    return any(
        (condition := links.of(one, other)) is not None and bool(condition.blocked)
        for one in labels
        for other in labels
        if one != other
    )
