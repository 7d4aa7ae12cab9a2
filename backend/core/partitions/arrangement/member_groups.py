"""In which group a member's replicas count (Hazelcast: member groups). No partition has two replicas in one group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from quarterdeck.backend.core.address import host_of
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.properties import group_patterns


class Half(str):
    """The name of a half of the only group there is. Other members make other halves of it."""


def groups_of(members: Sequence[Member], kind: str, patterns: str) -> dict[str, str]:
    """Return the groups of these members, who hold data, by their uuids: `kind` and `patterns` as the properties have them.

    Hosts are compared as their texts are, and a member without a zone is a zone of its own. Of patterns the first group that
    matches a host has the member; those whose hosts match nothing are left out, and so hold nothing.
    """
    match kind:
        case "host-aware":
            groups = {member.uuid: member.address.rpartition(":")[0] for member in members}
        case "zone-aware":
            groups = {member.uuid: member.zone or member.address for member in members}
        case "custom":
            texts_of = group_patterns(patterns)
            matched = ((member.uuid, _matching(host_of(member.address), texts_of)) for member in members)
            groups = {uuid: group for uuid, group in matched if group is not None}
        case _:
            return {member.uuid: member.uuid for member in members}
    return _halved_if_alone(groups)


def _matching(host: str, patterns: Mapping[str, Sequence[str]]) -> str | None:
    found = (group for group, texts in patterns.items() if any(fnmatchcase(host, text) for text in texts))
    return next(found, None)


def _halved_if_alone(groups: dict[str, str]) -> dict[str, str]:
    """Split a single group with several members in half, so that there can be one backup."""
    if len(set(groups.values())) != 1 or len(groups) < 2:
        return groups
    half = (len(groups) + 1) // 2
    return {
        uuid: Half(f"{group} ({1 if place < half else 2} of 2)") for place, (uuid, group) in enumerate(groups.items())
    }
