"""What a swarm run is made of before anything happens: properties, zones, lite members, latencies and join lists."""

from __future__ import annotations

from random import Random

from quarterdeck.backend.core.properties import MILLISECOND_US, PropertyValue, Settings
from quarterdeck.backend.scenarios.format.values import duration_text

CHOICE_PROBABILITY = 0.25
"""How probable it is that a property is not as in the training preset."""

INTERVALS_SECONDS = (0.5, 1, 2)
TIMEOUT_INTERVALS = (3, 4, 5, 8)
PROPERTY_CHOICES: dict[str, tuple[PropertyValue, ...]] = {
    "hazelcast.heartbeat.failuredetector.type": ("phi-accrual",),
    "hazelcast.member.list.publish.interval.seconds": (2, 30),
    "hazelcast.mastership.claim.timeout.seconds": (3, 20),
    "hazelcast.master.confirmation.interval.seconds": (1, 4),
    "hazelcast.max.join.seconds": (20, 300),
    "hazelcast.max.join.merge.target.seconds": (2, 10),
    "hazelcast.stale.join.prevention.duration.seconds": (0, 10),
    "hazelcast.merge.first.run.delay.seconds": (1, 15),
    "hazelcast.merge.next.run.delay.seconds": (1, 10),
    "hazelcast.partial.member.disconnection.resolution.heartbeat.count": (0, 5),
    "quarterdeck.heartbeat.topology": ("ring",),
    "quarterdeck.heartbeat.ring.successors": (1, 2),
    "quarterdeck.minimum.cluster.size": (2, 3),
    "quarterdeck.link.probe.max.backoff.seconds": (1, 15),
    "quarterdeck.cluster.state.lease.seconds": (2, 15),
    "hazelcast.partition.max.parallel.migrations": (1, 2, 4),
    "hazelcast.partition.migration.interval": (0.05, 0.5),
    "hazelcast.partition.migration.timeout": (3, 10),
    "hazelcast.partition.table.send.interval": (1, 10),
    "hazelcast.partition.backup.sync.interval": (1, 10),
    "hazelcast.partition.max.parallel.replications": (1, 2),
    "quarterdeck.transfer.chunk.bytes": (1, 16, 200),
    "quarterdeck.transfer.window.chunks": (1, 2),
    "hazelcast.graceful.shutdown.max.wait": (5, 30),
    "hazelcast.operation.call.timeout.millis": (3_000, 10_000),
    "quarterdeck.partition.arrange.at.once": (True,),
    "quarterdeck.merge.policy": ("pass-through", "latest-update", "latest-access", "higher-hits", "discard"),
}

BACKUPS = (0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6)
PARTITIONS = (1, 2, 3, 5, 7, 7, 11, 11, 13, 17, 17, 23, 31)
GREAT_PARTITIONS = (271, 271, 271, 271, 1_009, 1_009, 5_003)
GREAT_PROBABILITY = 0.01
GREATEST_PARTITIONS = 50_021
GREATEST_PROBABILITY = 0.0002
"""Few runs have many partitions: what they find is seldom another thing, and they cost as much as hundreds of the others."""
MANY_PARTITIONS = 1_000
"""From so many on a run has few members and backups, and does little."""

ZONES_PROBABILITY = 0.25
LITE_PROBABILITY = 0.25
LATENCY_PROBABILITY = 0.25
SHORT_JOIN_LIST_PROBABILITY = 0.15


def drawn_properties(draws: Random) -> dict[str, PropertyValue]:
    """Draw the properties of a run that are not as in the training preset."""
    interval = draws.choice(INTERVALS_SECONDS)
    chance = draws.random()
    partitions = draws.choice(GREAT_PARTITIONS if chance < GREAT_PROBABILITY else PARTITIONS)
    if chance < GREATEST_PROBABILITY:
        partitions = GREATEST_PARTITIONS
    backups = draws.choice(BACKUPS)
    properties: dict[str, PropertyValue] = {
        "hazelcast.heartbeat.interval.seconds": interval,
        "hazelcast.max.no.heartbeat.seconds": interval * draws.choice(TIMEOUT_INTERVALS),
        "hazelcast.partition.count": partitions,
        "quarterdeck.backup.count": 0 if partitions > MANY_PARTITIONS else backups,
    }
    for name, choices in PROPERTY_CHOICES.items():
        if draws.random() < CHOICE_PROBABILITY:
            properties[name] = draws.choice(choices)
    if partitions >= MANY_PARTITIONS:
        properties.pop("hazelcast.partition.migration.interval", None)  # so many of them would take for ever
    return properties


def drawn_zones(draws: Random, labels: tuple[str, ...], properties: dict[str, PropertyValue]) -> dict[str, str]:
    """Where members stand, and by which groups their replicas count: that goes into the properties."""
    if draws.random() >= ZONES_PROBABILITY:
        return {}
    kind = draws.choice(("zone-aware", "zone-aware", "zone-aware", "host-aware"))
    properties["quarterdeck.partition.group.type"] = kind
    zones = [f"z{number}" for number in range(1, draws.randint(1, 4) + 1)]
    # Members without a zone are zones of their own.
    return {label: draws.choice(zones) for label in labels if draws.random() < 0.9} if kind == "zone-aware" else {}


def drawn_lite(draws: Random, labels: tuple[str, ...]) -> list[str]:
    """Members that hold no data: some, and now and then all but two."""
    if draws.random() >= LITE_PROBABILITY:
        return []
    most = len(labels) - 2 if draws.random() < 0.2 else len(labels) // 3
    return sorted(draws.sample(labels, draws.randint(1, max(1, most))), key=labels.index)


def drawn_latency(draws: Random, settings: Settings) -> dict[str, str]:
    """Messages that are slow and overtake one another, but not so slow that heartbeats of the living seem missing."""
    if draws.random() >= LATENCY_PROBABILITY:
        return {}
    slack_us = settings.max_no_heartbeat_us - settings.heartbeat_interval_us
    most_us = max(5 * MILLISECOND_US, int(slack_us * 0.5 * draws.random()))
    least_us = draws.choice((200, 2_000))
    typical_us = int(most_us * draws.choice((0.01, 0.05, 0.2)))
    return {
        "model": draws.choice(("uniform", "exponential", "heavy-tail")),
        "least": duration_text(least_us),
        "typical": duration_text(typical_us),
        "most": duration_text(most_us),
    }


def drawn_join_lists(draws: Random, labels: tuple[str, ...]) -> dict[str, list[str]]:
    """Usually everybody lists everybody; sometimes some members list only the first two."""
    if draws.random() >= SHORT_JOIN_LIST_PROBABILITY:
        return {}
    return {label: list(labels[:2]) for label in labels[2:] if draws.random() < 0.5}
