"""The versioned member list: members in order of age, the oldest first and master.

See Cluster Service Consistency Improvements, Membership Update Process.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from msgspec import Struct, structs

from quarterdeck.backend.core.address import Address, bracketed, is_address
from quarterdeck.backend.core.membership.views.identity import Member

LONGEST_SHOWN = 100
"""So many letters of a bad address are shown."""


class MemberList(Struct, frozen=True, dict=True):
    """One version of the list. `members` are in order of age; no address and no uuid stands twice.

    `lineage` names the chain of versions that the list belongs to: minted when a cluster forms and at each finished
    mastership claim. Two halves of a split both publish a version 7; only (lineage, version) has one content. No decision
    of the protocol reads it: it is there for observers and checkers.
    """

    version: int
    members: tuple[Member, ...]
    lineage: str

    @property
    def master(self) -> Member:
        return self.members[0]

    @cached_property
    def addresses(self) -> tuple[Address, ...]:
        """The addresses of the members, the oldest first."""
        return tuple(member.address for member in self.members)

    @cached_property
    def uuids(self) -> frozenset[str]:
        return frozenset(member.uuid for member in self.members)

    @cached_property
    def flaw(self) -> str:
        """The reason why no sound member publishes this list; empty if there is none."""
        if len(self.uuids) < len(self.members) or len(self._places) < len(self.members):
            return "its list holds a member twice"
        for member in self.members:
            if not is_address(member.address):
                return f"its list names {member.address[:LONGEST_SHOWN]!r}, which is no address"
            if not 0 <= member.join_version <= self.version:
                return f"on its list of version {self.version}, {member.address} has joined at {member.join_version}"
        return ""

    def find(self, address: Address) -> Member | None:
        """Return the member at `address`, whatever its uuid, or None."""
        place = self._places.get(address)
        return None if place is None else self.members[place]

    def holds(self, address: Address, uuid: str) -> bool:
        """Whether exactly this incarnation of this address is on the list."""
        member = self.find(address)
        return member is not None and member.uuid == uuid

    def older_than(self, address: Address) -> tuple[Member, ...]:
        """Return the members before `address`; all of them when it is not listed."""
        return self.members[: self._place(address)]

    def from_on(self, address: Address) -> tuple[Member, ...]:
        """Return `address` and every younger member; nothing when it is not listed."""
        return self.members[self._place(address) :]

    def joined_by(self, address: Address, uuid: str, lite: bool, seen_version: int = 0, zone: str = "") -> MemberList:
        """Return the next version, with one more and youngest member, whose join version is the new list version.

        The version jumps above `seen_version`, which the newcomer's process has installed before it merged.
        """
        version = max(self.version, seen_version) + 1
        newcomer = Member(address, uuid, version, lite, zone)
        return MemberList(version, (*self.members, newcomer), self.lineage)

    def without(self, addresses: Collection[Address]) -> MemberList:
        """Return the list without `addresses`: one version further for each member removed, as the product counts them."""
        left = tuple(member for member in self.members if member.address not in addresses)
        return MemberList(self.version + len(self.members) - len(left), left, self.lineage)

    def with_lite(self, address: Address, lite: bool) -> MemberList:
        """Return the next version, in which the member at `address` is a lite member, or is one no more."""
        place = self._place(address)
        changed = structs.replace(self.members[place], lite=lite)
        members = (*self.members[:place], changed, *self.members[place + 1 :])
        return MemberList(self.version + 1, members, self.lineage)

    def _place(self, address: Address) -> int:
        return self._places.get(address, len(self.members))

    @cached_property
    def _places(self) -> dict[Address, int]:
        """The place of each address; kept, since a list is asked for its members far more often than it is made."""
        return {address: place for place, address in enumerate(self.addresses)}


def mint_lineage(master_uuid: str, version: int) -> str:
    """Return the name of the versions from `version` of this master on; unique, since an incarnation has one uuid."""
    return f"{master_uuid[:13]}/{version}"


def first_list(address: Address, uuid: str, lite: bool, zone: str = "") -> MemberList:
    """Return version 1 of a new cluster: its master alone (Hazelcast: first start)."""
    return MemberList(1, (Member(address, uuid, 1, lite, zone),), mint_lineage(uuid, 1))


def member_list_text(members: MemberList, this: str, *, legacy: bool = False) -> str:
    """Return the text that operators know from member logs, in the new or the legacy format.

    `this` is the uuid of the member that prints it (Cluster Service Consistency Improvements, User Interaction).
    """
    size = len(members.members)
    opening = f"Members [{size}] {{" if legacy else f"Members {{size:{size}, ver:{members.version}}} ["
    rows = [opening]
    for member in members.members:
        marks = f"{' this' if member.uuid == this else ''}{' lite' if member.lite else ''}"
        rows.append(f"\tMember {bracketed(member.address)} - {member.uuid}{marks}")
    return "\n".join([*rows, "}" if legacy else "]"])
