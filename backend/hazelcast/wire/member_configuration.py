"""What a member's configuration, which it reports as XML, says about how it finds others and how an operator may reach it."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from msgspec import Struct

from quarterdeck.backend.core.address import (
    DEFAULT_PORT,
    SEPARATORS,
    Address,
    BadJoinList,
    make_address,
    parse_join_list,
)

MOST_ENTRIES = 1_000


class ReportedConfiguration(Struct, frozen=True):
    """The parts of a configuration that are used here. The join list is the present one, with all edits."""

    cluster_name: str
    joiner: str
    """How it finds others: ``tcp-ip``, or another element of ``join`` that is enabled, such as ``multicast``."""
    join_list: tuple[Address, ...]
    """An entry that stands for many addresses is kept as written."""
    properties: dict[str, str]
    """Those that were configured, by name."""
    port: int = DEFAULT_PORT
    rest_enabled: bool = False
    rest_groups: tuple[str, ...] = ()
    """The groups of REST endpoints that are enabled."""

    named: tuple[Address, ...] = ()
    """The addresses of the join list at which a member is expected: those with a port, and the configured port of a host."""

    map_backups: dict[str, int] = {}
    """How many backups each map has, synchronous and asynchronous, by its name or pattern."""

    services: tuple[Address, ...] = ()
    """The names of Kubernetes services whose pods are its cluster, where it finds others by them."""

    @property
    def uses_join_list(self) -> bool:
        return self.joiner == "tcp-ip"

    def may_edit_join_list(self) -> bool:
        """Return whether its join list can be edited over REST while it runs."""
        return self.rest_enabled and "CLUSTER_WRITE" in self.rest_groups


def read_configuration(xml: str) -> ReportedConfiguration | None:
    """Parse a configuration; None for a text that is none.

    One with a document type counts as none, because it could expand without end.
    """
    if "<!DOCTYPE" in xml:
        return None
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError:
        return None
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2]
    rest = root.find("network/rest-api")
    groups = [group.get("name", "") for group in (rest if rest is not None else ()) if _is_enabled(group)]
    port = (root.findtext("network/port") or "").strip()
    base_port = int(port) if port.isdecimal() else DEFAULT_PORT
    entries = [tuple(_addresses(entry, base_port)) for entry in _join_list_entries(root)]
    return ReportedConfiguration(
        (root.findtext("cluster-name") or "").strip(),
        _joiner(root),
        tuple(dict.fromkeys(address for addresses in entries for address in addresses)),
        {item.get("name", ""): (item.text or "").strip() for item in root.findall("properties/property")},
        base_port,
        rest is not None and _is_enabled(rest),
        tuple(group for group in groups if group),
        tuple(dict.fromkeys(addresses[0] for addresses in entries if addresses)),
        {item.get("name", ""): _backups(item) for item in root.findall("map")},
        tuple(_services(root, base_port)),
    )


def _services(root: ElementTree.Element, port: int) -> Iterator[Address]:
    kubernetes = root.find("network/join/kubernetes")
    if kubernetes is None or not _is_enabled(kubernetes):
        return
    options = {item.tag: (item.text or "").strip() for item in kubernetes}
    own_port = options.get("service-port", "")
    name = options.get("service-dns", "")
    if not name and options.get("service-name") and options.get("namespace"):
        name = f"{options['service-name']}.{options['namespace']}.svc.cluster.local"
    if name:
        yield make_address(name, int(own_port) if own_port.isdecimal() and int(own_port) else port)


def _backups(item: ElementTree.Element) -> int:
    """Return the backups of a map; the product gives one where nothing is said."""
    counts = (item.findtext("backup-count") or "1", item.findtext("async-backup-count") or "0")
    return sum(int(count) for count in counts if count.strip().isdecimal())


def _is_enabled(element: ElementTree.Element) -> bool:
    return element.get("enabled", "").strip().lower() == "true"


def _joiner(root: ElementTree.Element) -> str:
    """Return the joiner enabled by name, before auto-detection, which is enabled by default."""
    enabled = [joiner.tag for joiner in root.find("network/join") or () if _is_enabled(joiner)]
    return next((joiner for joiner in enabled if joiner != "auto-detection"), enabled[0] if enabled else "none")


def _join_list_entries(root: ElementTree.Element) -> list[str]:
    tcp_ip = root.find("network/join/tcp-ip")
    if tcp_ip is None or not _is_enabled(tcp_ip):
        return []
    texts = [tcp_ip.findtext("required-member"), *(entry.text for entry in tcp_ip.findall("member-list/member"))]
    return [entry for text in texts[:MOST_ENTRIES] for entry in SEPARATORS.split(text or "") if entry]


def _addresses(text: str, port: int) -> Iterator[Address]:
    try:
        yield from parse_join_list(text, base_port=port)
    except BadJoinList:
        yield Address(text.strip())
