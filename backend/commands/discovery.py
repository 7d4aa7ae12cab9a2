"""How members find each other when they have no join list, and the remedy where discovery shows them only some members."""

from __future__ import annotations

from collections.abc import Iterable

JOINER = "hazelcast.network.join"
"""The place in a configuration that names the joiner; among settings, the joiner of a member that has no join list."""
JOIN_LIST = "tcp-ip"
NO_DISCOVERY = frozenset((JOIN_LIST, "none", "auto-detection"))
"""Settings that do not say how members find each other without a list."""

_INTERVALS = (
    "What comes late all the same heals by a merge, sooner with shorter hazelcast.merge.first.run.delay.seconds and "
    "hazelcast.merge.next.run.delay.seconds."
)
_HINTS = {
    "kubernetes": "let one service select the pods of both sides, ready or not, under one service-dns",
    "multicast": "let multicast reach from one side to the other",
    "cloud": "let one filter select the instances of both sides",
    "none": "enable one, for without it each member is a cluster of its own",
    "auto-detection": "name one, for what it detects need not be the same on both sides",
}
_WIDER = {
    "kubernetes": (
        "Let one service select the pods of both sides, ready or not (its selector, publishNotReadyAddresses), under the same "
        "service-dns in every member's configuration; let Java keep what DNS says for seconds only (networkaddress.cache.ttl); "
        "start the first pod before the others (podManagementPolicy: OrderedReady), for pods that start together each see none. "
        f"{_INTERVALS}"
    ),
    "multicast": (
        "Let multicast reach from one side to the other: the same group and port, a multicast-time-to-live that crosses the "
        "routers between, switches that pass it on; or list the members of both sides under tcp-ip instead. "
        f"{_INTERVALS}"
    ),
    "cloud": (
        "Let the filter in every member's configuration (tag, label, group, region or zone) select the instances of both sides, "
        f"and the role of every instance list them; let security groups pass the members' port. {_INTERVALS}"
    ),
}
ANY = (
    "Where members find each other by discovery (kubernetes, a cloud, multicast), not by a join list: one service has to select "
    "the pods of both sides, ready or not (its selector, publishNotReadyAddresses), under the same service-dns in every member's "
    "configuration, and its DNS to be no older than a minute; multicast has to reach from one side to the other."
)
"""The advice where the way in which members find each other is not known."""


def discovery_remedies(joiners: Iterable[str]) -> str:
    """Return how members without a join list find each other; empty where a member has a list or the way is not known."""
    found = dict.fromkeys(joiners)
    if not found or not NO_DISCOVERY.isdisjoint(found):
        return ""
    return " ".join(dict.fromkeys(_WIDER.get(joiner, _WIDER["cloud"]) for joiner in found))


def discovery_hint(joiner: str) -> str:
    """Return the first thing to do where members find each other in this way, in few words."""
    return _HINTS.get(joiner, _HINTS["cloud"])
