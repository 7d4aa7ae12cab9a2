"""The truth at one moment of a simulated run, read from the members: who runs, holds which list, leads and stores data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from quarterdeck.backend.conclusion_testing.entries import Holding, held_entries
from quarterdeck.backend.core.address import Address
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


class Truth:
    """What is so at one moment."""

    def __init__(self, world: World) -> None:
        self.now_us = world.now_us
        self.world = world
        self.members = {
            label: TrueMember(label, node.machine.inspect(), node.paused)
            for label, node in world.nodes.items()
            if node.machine is not None
        }
        """By label, the processes that run."""

    @cached_property
    def joined(self) -> tuple[TrueMember, ...]:
        """Return the members that are awake and hold a list."""
        return tuple(member for member in self.members.values() if member.list is not None and not member.is_paused)

    @cached_property
    def lists(self) -> frozenset[ListName]:
        """Return the lists that members who are awake hold."""
        return frozenset(member.list for member in self.joined if member.list is not None)

    @cached_property
    def leaders(self) -> tuple[TrueMember, ...]:
        """Return the members that lead."""
        return tuple(member for member in self.members.values() if member.leads)

    @cached_property
    def incarnations(self) -> frozenset[str]:
        """Return the incarnations that run."""
        return frozenset(member.state.uuid for member in self.members.values())

    @cached_property
    def awake(self) -> frozenset[str]:
        """Return the incarnations that run and are not frozen."""
        return frozenset(member.state.uuid for member in self.joined)

    @cached_property
    def is_whole(self) -> bool:
        """Return whether all who have joined hold one list with one master, on which every member runs and is not frozen."""
        if len(self.lists) != 1 or len(self.leaders) != 1:
            return False
        (_, _, uuids) = next(iter(self.lists))
        return uuids == self.awake

    @cached_property
    def is_troubled(self) -> bool:
        """Return whether a member suspects another one, or claims the mastership."""
        return any(member.state.suspicions or member.state.claim is not None for member in self.joined)

    @cached_property
    def holding(self) -> Holding:
        """Return what the running processes hold, by key."""
        return held_entries(member.state for member in self.members.values())

    @cached_property
    def owned_entries(self) -> dict[str, int]:
        """Return how many entries the owners among the members that are awake have, by map."""
        counts: dict[str, int] = {}
        for member in self.joined:
            for partition in member.state.data.owner_states:
                store = member.state.data.stores.get(partition)
                for name, entries in store.maps.items() if store is not None else ():
                    counts[name] = counts.get(name, 0) + len(entries)
        return counts

    @cached_property
    def tables(self) -> frozenset[int]:
        """Return the digests of the partition tables of the members that are awake."""
        tables = (member.state.partitions.table for member in self.joined)
        return frozenset(table.digest for table in tables if table is not None)

    def copies(self, key: tuple[str, str], partition: int, side: frozenset[str]) -> int:
        """Return how many processes among the incarnations of a side hold the key."""
        name, word = key
        stores = (
            member.state.data.stores.get(partition) for member in self.members.values() if member.state.uuid in side
        )
        return sum(store is not None and store.find(name, word) is not None for store in stores)

    def unowned(self, member: TrueMember) -> Iterator[int]:
        """Yield the partitions of the table of `member` whose owner does not run."""
        table = member.state.partitions.table
        for partition, row in enumerate(table.rows if table is not None else ()):
            if (
                table is not None
                and table.versions[partition]
                and (row[0] is None or row[0].uuid not in self.incarnations)
            ):
                yield partition

    def label_at(self, address: Address) -> str:
        """Return the member that runs at the address; empty where none does."""
        return next((label for label, member in self.members.items() if member.state.address == address), "")

    def is_cut(self, label: str) -> bool:
        """Return whether a link between the member and another one on its list is blocked."""
        links = self.world.network.links
        own = self.members[label].state
        others = [
            other.label
            for other in self.members.values()
            if other.label != label and other.state.uuid in (own.members.uuids if own.members is not None else ())
        ]
        pairs = [(label, other) for other in others] + [(other, label) for other in others]
        return any((condition := links.of(*pair)) is not None and condition.blocked for pair in pairs)
