"""What one member knows and believes, to be read and not to be changed."""

from __future__ import annotations

from collections.abc import Mapping, Set

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Evidence
from quarterdeck.backend.core.cluster_profile import ClusterStanding, ClusterState
from quarterdeck.backend.core.data.map_service import entries_of, held_partitions
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.membership.views.identity import ListMetadata
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.partitions.table.partition_table import PartitionTable
from quarterdeck.backend.core.properties import Settings


class Inspection:
    """Reads one member. It never changes anything, and each look shows the present state.

    What it hands out may belong to the member: nobody changes it, and whoever keeps it keeps a copy.
    """

    __slots__ = ("_member",)

    def __init__(self, member: MemberState) -> None:
        self._member = member

    @property
    def uuid(self) -> str:
        """The identity of the present incarnation."""
        return self._member.uuid

    @property
    def address(self) -> Address:
        """Where others reach it."""
        return self._member.address

    @property
    def lite(self) -> bool:
        """Whether it is a lite member, which holds no partitions."""
        return self._member.member_configuration.lite

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._member.settings

    @property
    def joined(self) -> bool:
        """Whether it has a member list."""
        return self._member.joined

    @property
    def is_master(self) -> bool:
        """Whether it is master with full powers, so not while its own mastership claim is running."""
        return self._member.is_master

    @property
    def master(self) -> Address | None:
        """Whom it follows; itself when it is master, or claims to be."""
        return self._member.master

    @property
    def members(self) -> MemberList | None:
        """The installed member list; None before the first one."""
        return self._member.members

    @property
    def view(self) -> tuple[Address, ...] | None:
        """The addresses on the installed list, the oldest first; None before the first list."""
        members = self._member.members
        return None if members is None else members.addresses

    @property
    def list_metadata(self) -> ListMetadata:
        """What it says of itself and of its list to others. Only for joined members."""
        return self._member.metadata()

    @property
    def peers(self) -> Set[Address]:
        """The addresses of the other members on its list."""
        return self._member.peers.keys()

    @property
    def last_heard_us(self) -> dict[Address, int]:
        """When something came last from each member that it watches."""
        member = self._member
        watched = member.watched if member.settings.heartbeat_topology == "ring" else member.peers
        return {address: member.peers[address].detector.last_heard_us for address in watched if address in member.peers}

    @property
    def suspicions(self) -> Mapping[Address, Evidence]:
        """Whom it suspects, and why."""
        return {held.address: held.evidence for held in self._member.suspicions.values()}

    @property
    def is_claiming(self) -> bool:
        """Whether its own mastership claim is running."""
        return self._member.claim is not None

    @property
    def is_merging(self) -> bool:
        """Whether it leads a merge of its cluster into another."""
        return self._member.merge is not None

    @property
    def is_admitting(self) -> bool:
        """Whether joins wait until all others have the new list."""
        return self._member.admission is not None

    @property
    def standing(self) -> ClusterStanding:
        """The state of its cluster, with the number of changes that led there."""
        return self._member.standing

    @property
    def cluster_state(self) -> ClusterState:
        """The state of its cluster."""
        return self._member.standing.state

    @property
    def join_list(self) -> tuple[Address, ...]:
        """Where it looks for its cluster: the configured list, as it was edited last."""
        return self._member.join_list

    @property
    def remembered(self) -> Mapping[Address, int | None]:
        """Addresses that it looks at for other clusters, with the time at which each was last of use; None for members'."""
        return self._member.remembered

    @property
    def table(self) -> PartitionTable | None:
        """The partition table as it knows it; None before the first arrangement."""
        return self._member.partitions.table

    @property
    def all_heard_until_us(self) -> int:
        """Until then it looks at nobody's silence, for nobody can have been silent for too long."""
        return self._member.all_heard_until_us

    def deadline_us(self, timer: str) -> int | None:
        """When the timer of this name is due; None when it is not set."""
        return self._member.timers.deadline_us(timer)

    def replicas(self) -> dict[int, dict[tuple[str, str], bytes]]:
        """By partition, what it holds of it, rightly or not: values by map and key."""
        return {partition: entries_of(self._member, partition) for partition in held_partitions(self._member)}
