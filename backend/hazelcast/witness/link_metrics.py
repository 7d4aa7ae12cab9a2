"""What the metrics of a member of Hazelcast say of its connections to other members: when it last wrote, and what waits.

A connection is named by its two ends. A member's own port stands there only if the other side opened it; so a connection belongs
to the member with that address, or else to the only one that is listed at that host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from quarterdeck.backend.core.address import Address, BadAddress, host_of, make_address, parse_port
from quarterdeck.backend.core.witnessed.events import LinkMeasured
from quarterdeck.backend.hazelcast.wire.messages import MetricSet

IDLE = "tcp.connection.out.idleTimeMillis"
QUEUED = "tcp.connection.out.writeQueueSize"
MILLISECOND_US = 1_000
IN_TIME_US = 6_000_000
"""By default members send each other heartbeats every 5 seconds."""
SMALL_QUEUE = 16


def link_metrics(metrics: MetricSet, own: Address, others: Iterable[Address]) -> dict[Address, LinkMeasured]:
    """Return the connections to each of the others that has some; of several the least idle counts, and all packets."""
    listed = frozenset(others)
    at_host: dict[str, Address | None] = {host_of(own): None}
    for other in listed:
        at_host[host_of(other)] = None if host_of(other) in at_host else other
    found: dict[Address, LinkMeasured] = {}
    for name, pipeline, value in _connections(metrics):
        remote = _remote_end(pipeline)
        member = remote if remote in listed else at_host.get(host_of(remote)) if remote else None
        if member is None:
            continue
        link = found.get(member) or LinkMeasured(member, 0)
        if name == IDLE:
            idle = value * MILLISECOND_US
            idle = idle if link.idle is None else min(idle, link.idle)
            found[member] = LinkMeasured(member, link.connections + 1, idle, link.queued)
        else:
            found[member] = LinkMeasured(member, link.connections, link.idle, (link.queued or 0) + value)
    return found


def strained(
    known: Iterable[Address], links: dict[Address, LinkMeasured], others: Iterable[Address]
) -> tuple[LinkMeasured, ...]:
    """Return the links that are not plain. `known` had connections before: if they are listed and have none, these are gone."""
    gone = set(known).intersection(others).difference(links)
    late = (link for link in links.values() if (link.idle or 0) >= IN_TIME_US or (link.queued or 0) >= SMALL_QUEUE)
    return tuple(sorted((*late, *(LinkMeasured(address, 0) for address in gone)), key=lambda link: link.address))


def _connections(metrics: MetricSet) -> Iterator[tuple[str, str, int]]:
    for sample in metrics.samples:
        if sample.discriminator is not None and sample.name in (IDLE, QUEUED) and sample.value >= 0:
            yield sample.name, sample.discriminator[1], int(sample.value)


@lru_cache(maxsize=16_384)
def _remote_end(pipeline: str) -> Address | None:
    """Return the address behind the arrow of ``/10.0.0.1:5701->/10.0.0.2:40000``, or None."""
    host, _, port = pipeline.partition("->")[2].rpartition("/")[2].rpartition(":")
    try:
        return make_address(host, parse_port(port, port))
    except BadAddress:
        return None
