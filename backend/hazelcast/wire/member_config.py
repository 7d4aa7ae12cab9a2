"""What a member's configuration, as XML, tells of where it looks for its cluster."""

from __future__ import annotations

from xml.etree import ElementTree

from msgspec import Struct

from quarterdeck.backend.core.address import (
    Address,
    BadAddress,
    make_address,
    parse_address,
    parse_port,
    split_host_and_port,
)

MOST_NAMED = 1_000
"""Of a longer join list the rest is left out."""


class JoinConfiguration(Struct, frozen=True):
    """Whom a member looks for when it starts and when it searches for other clusters."""

    tcp_ip: bool
    """Whether it goes by a list at all. Otherwise it multicasts, or asks a cloud."""
    listed: tuple[str, ...]
    """The texts of its list, as it runs: those that were added at runtime are among them."""
    mechanisms: tuple[str, ...] = ()
    """What is enabled, by the names of the configuration: tcp-ip, multicast, kubernetes, aws …"""


class BadConfiguration(ValueError):
    """What a member sent as its configuration is none."""


def read_join_configuration(xml: str) -> JoinConfiguration:
    """Read the part ``network.join``, or that of ``advanced-network``. Raises `BadConfiguration`."""
    if "<!DOCTYPE" in xml or "<!ENTITY" in xml:
        raise BadConfiguration("a configuration with a document type is not read")
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise BadConfiguration(f"it is no XML: {error}") from error
    join = root.find("{*}network/{*}join")
    if join is None or _has(root, "{*}advanced-network"):
        join = root.find("{*}advanced-network/{*}join")
    if join is None:
        return JoinConfiguration(False, ())
    enabled = tuple(_plain(part.tag) for part in join if part.get("enabled") == "true")
    named = [_text(part) for part in join.findall("{*}tcp-ip//{*}member")]
    named += [_text(part) for part in join.findall("{*}tcp-ip/{*}required-member")]
    texts = [text.strip() for entry in named for text in entry.split(",")]
    listed = tuple(dict.fromkeys(text for text in texts if text))[:MOST_NAMED]
    return JoinConfiguration("tcp-ip" in enabled, listed, enabled)


def addresses_of(text: str, default_port: int) -> list[Address]:
    """What one entry of a join list stands for: ``host``, ``host:port``, or ``10.0.0.1-4``. Nothing when it is neither."""
    try:
        host, port = split_host_and_port(text)
        stem, _, last = host.rpartition(".")
        first, dash, end = last.partition("-")
        if stem and dash and first.isdigit() and end.isdigit():
            numbers = range(int(first), min(int(end), 255) + 1)
            ports = default_port if port is None else parse_port(port, text)
            return [make_address(f"{stem}.{number}", ports) for number in numbers]
        return [parse_address(text, default_port)]
    except BadAddress:
        return []


def _has(root: ElementTree.Element, path: str) -> bool:
    found = root.find(path)
    return found is not None and found.get("enabled") == "true"


def _plain(tag: str) -> str:
    """A name without its namespace."""
    return tag.rpartition("}")[2]


def _text(part: ElementTree.Element) -> str:
    return part.text or ""
