"""Sections and properties of the product's configuration files that mean nothing here.

They are known by name, so that an operator's own file starts a member. Each causes one warning and is ignored; all other unknown
names are mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quarterdeck.backend.documents.yaml_document import FieldPath

IGNORED = "there is nothing of the kind here; it is ignored"

PREFIX = "hazelcast."
NAMES_FILE = Path(__file__).with_name("product_properties.txt")
"""Each line has a name without the prefix, and the first and the last version of the product that know it."""


PRODUCT_PROPERTIES = tuple(
    PREFIX + line.partition(" ")[0]
    for line in NAMES_FILE.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)
"""Properties of the product that mean nothing here: threads, sockets, diagnostics, what members do not have."""

PRODUCT_SECTIONS: Mapping[FieldPath, tuple[str, ...]] = {
    ("hazelcast", "properties"): PRODUCT_PROPERTIES,
    **{
        place: tuple(names.split())
        for place, names in {
            ("hazelcast",): """
                advanced-network atomic-long atomic-reference auditlog cache cardinality-estimator config-replacers
                count-down-latch cp-subsystem crdt-replication data-connection diagnostics durable-executor-service
                dynamic-configuration event-journal executor-service external-data-store flake-id-generator group
                hot-restart-persistence import instance-tracking integrity-checker jet license-key list listeners
                local-device lock management-center map merkle-tree metrics multimap native-memory partition-group
                persistence pn-counter queue quorum reliable-id-generator reliable-topic replicatedmap rest ringbuffer
                scheduled-executor-service security semaphore serialization services set split-brain-protection sql
                topic tpc user-code-deployment user-code-namespaces vector-collection wan-replication
            """,
            ("hazelcast", "network"): """
                client-protocol failure-detector icmp member-address-provider memcache-protocol
                member-server-socket-endpoint-config outbound-ports reuse-address socket-interceptor soft-limit
                symmetric-encryption
            """,
            ("hazelcast", "network", "ssl"): "factory-class-name properties",
            ("hazelcast", "network", "join"): "discovery-strategies",
            ("hazelcast", "network", "join", "multicast"): """
                loopbackModeEnabled loopback-mode-enabled multicast-group multicast-port multicast-time-to-live
                multicast-timeout-seconds trusted-interfaces
            """,
            ("hazelcast", "network", "join", "tcp-ip"): "connection-timeout-seconds interface required-member",
        }.items()
    },
}
"""Names by the place at which they stand. Other ways to find members are not among them: a member that relied on one
would be alone.
"""

HINTS: Mapping[FieldPath, str] = {
    ("hazelcast", "security"): "it keeps no client out: see quarterdeck.security",
    ("hazelcast", "network", "symmetric-encryption"): "nothing is encrypted by it: see network.ssl",
    ("hazelcast", "network", "ssl", "factory-class-name"): "give certificate and key, both PEM files",
    ("hazelcast", "network", "ssl", "properties"): "give certificate and key, both PEM files",
    ("hazelcast", "map"): "limits and eviction of maps are given by quarterdeck.map.limits",
    ("hazelcast", "import"): "write out what is in those files",
    ("hazelcast", "partition-group"): "zones are given by member-attributes.zone and hazelcast.partition.group.type",
}
"""Additions to the warning, where an operator may rely on what is ignored."""


def without_product_sections(data: Mapping[str, Any]) -> tuple[dict[str, Any], list[FieldPath]]:
    """Return the document without them, and where they stand in it."""
    found: list[FieldPath] = []
    return _without(data, (), found), found


def ignored_text(place: FieldPath) -> str:
    """Return the warning about a section that is ignored."""
    hint = HINTS.get(place)
    return f"{IGNORED}; {hint}" if hint else IGNORED


def _without(section: Mapping[str, Any], at: FieldPath, found: list[FieldPath]) -> dict[str, Any]:
    ignored = PRODUCT_SECTIONS.get(at, ())
    kept: dict[str, Any] = {}
    for name, value in section.items():
        place = (*at, name)
        if name in ignored:
            found.append(place)
        elif isinstance(value, dict) and any(other[: len(place)] == place for other in PRODUCT_SECTIONS):
            kept[name] = _without(value, place, found)
        else:
            kept[name] = value
    return kept
