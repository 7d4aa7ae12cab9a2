"""The first configuration of the members of a simulated world, made of the settings by label."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from quarterdeck.backend.core.address import Address, make_address, parse_address, resolve_join_list
from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.core.membership.state import CLUSTER_NAME
from quarterdeck.backend.core.properties import Settings

HOST = "127.0.0.1"
FIRST_PORT = 5701


def member_configurations(
    run: str,
    labels: Sequence[str],
    settings: Settings,
    *,
    settings_of: Mapping[str, Settings],
    addresses: Mapping[str, str],
    cluster_names: Mapping[str, str],
    join_lists: Mapping[str, Sequence[str]],
    lite: Collection[str],
    zones: Mapping[str, str],
) -> Iterator[MemberConfiguration]:
    """One for each label, in order. Who has no address of its own is at a port of one host; who has no join list lists all.

    Raises `BadAddress` and `BadJoinList`.
    """
    found = addresses_of(labels, addresses)
    for label in labels:
        own = settings_of.get(label, settings)
        entries = join_lists.get(label, labels)
        yield MemberConfiguration(
            run,
            label,
            found[label],
            resolve_join_list(entries, found, base_port=FIRST_PORT, port_try_count=own.join_port_try_count),
            own,
            lite=label in lite,
            zone=zones.get(label, ""),
            cluster_name=cluster_names.get(label, CLUSTER_NAME),
        )


def addresses_of(labels: Sequence[str], addresses: Mapping[str, str]) -> dict[str, Address]:
    """Return the addresses of the members of these labels, as `addresses` gives them. Raises `BadAddress`."""
    found = {label: make_address(HOST, FIRST_PORT + place) for place, label in enumerate(labels)}
    own = (label for label in labels if label in addresses)
    return found | {label: parse_address(addresses[label], FIRST_PORT) for label in own}
