"""In which group a member's replicas count (Hazelcast: member groups). No partition has two replicas in one group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from quarterdeck.backend.core.address import Address, host_of
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.properties import group_patterns


class Half(str):
    """The name of a half of the only group there is. Other members make other halves of it."""


class GroupedMember(NamedTuple):
    """A member as the arrangement sees it."""

    name: str
    group: str


class NoGroup(ValueError):
    """A member cannot be put into a group. The message names the member and what it lacks."""


def grouped(members: Sequence[Member], kind: str, patterns: str) -> list[GroupedMember]:
    """Return the groups of these members, who hold data, by their uuids: `kind` and `patterns` as the properties have them.

    A member without a zone is a zone of its own.
    """
    match kind:
        case "host-aware":
            return host_aware({member.uuid: member.address for member in members})
        case "zone-aware":
            return by_attribute({member.uuid: {"zone": member.zone or member.address} for member in members}, "zone")
        case "custom":
            return by_patterns({member.uuid: host_of(member.address) for member in members}, group_patterns(patterns))
        case _:
            return per_member([member.uuid for member in members])


def per_member(names: Sequence[str]) -> list[GroupedMember]:
    """Make every member its own group (PER_MEMBER, the default)."""
    return [GroupedMember(name, name) for name in names]


def host_aware(addresses: Mapping[str, Address]) -> list[GroupedMember]:
    """Group the members of one host, as its text is (HOST_AWARE). `addresses` by name, in order of age."""
    return _halved_if_alone([GroupedMember(name, address.rpartition(":")[0]) for name, address in addresses.items()])


def by_attribute(attributes: Mapping[str, Mapping[str, str]], attribute: str) -> list[GroupedMember]:
    """Group the members with one value of the attribute (ZONE_AWARE and its like). Raises `NoGroup` if one has none."""
    grouped = []
    for name, values in attributes.items():
        if not values.get(attribute):
            raise NoGroup(f"{name} has no attribute {attribute}; every member needs it to be put into a group")
        grouped.append(GroupedMember(name, values[attribute]))
    return _halved_if_alone(grouped)


def by_patterns(hosts: Mapping[str, str], patterns: Mapping[str, Sequence[str]]) -> list[GroupedMember]:
    """Group hosts by texts like `10.10.1.*` (CUSTOM); the first group that matches a host has the member.

    Members whose hosts match nothing are left out, and so hold nothing.
    """
    grouped = []
    for name, host in hosts.items():
        for group, texts in patterns.items():
            if any(fnmatchcase(host, text) for text in texts):
                grouped.append(GroupedMember(name, group))
                break
    return _halved_if_alone(grouped)


def _halved_if_alone(grouped: list[GroupedMember]) -> list[GroupedMember]:
    """Split a single group with several members in half, so that there can be one backup."""
    if len({member.group for member in grouped}) != 1 or len(grouped) < 2:
        return grouped
    half = (len(grouped) + 1) // 2
    return [
        GroupedMember(name, Half(f"{group} ({1 if place < half else 2} of 2)"))
        for place, (name, group) in enumerate(grouped)
    ]
