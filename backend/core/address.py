"""Addresses of members, as text: ``host:port``, or ``[host]:port`` for IPv6.

An address is plain text with one canonical form, so it can be a dictionary key on the hot path, a field of a message and a
field of an event without conversion. Only tie-breaks and sockets ever take it apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NewType

Address = NewType("Address", str)
"""Canonical text of a member's address, as made by `parse_address`."""

HIGHEST_PORT = 65_535


class BadAddress(ValueError):
    """A text that is no address. The message names the text and says what is wrong with it."""


def make_address(host: str, port: int) -> Address:
    """Return the canonical address of `host` and `port`."""
    return Address(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def parse_address(text: str, default_port: int | None = None) -> Address:
    """Read ``host:port``, ``[host]:port`` or, when `default_port` is given, a bare host.

    Raises:
        BadAddress: The text is none of these; the message has a hint.
    """
    host, port_text = split_host_and_port(text)
    if port_text is None:
        if default_port is None:
            raise BadAddress(f"{text!r} has no port; write it as host:port")
        return make_address(host, default_port)
    return make_address(host, parse_port(port_text, text))


@lru_cache(maxsize=16_384)
def is_address(text: str) -> bool:
    """Return whether `text` is an address in its canonical form."""
    try:
        return parse_address(text) == text
    except BadAddress:
        return False


def split_host_and_port(text: str) -> tuple[str, str | None]:
    """Take `text` apart without judging the port. A bare IPv6 host may stand without brackets."""
    stripped = text.strip()
    if stripped.startswith("["):
        host, bracket, rest = stripped[1:].partition("]")
        if not bracket:
            raise BadAddress(f"{text!r} opens a bracket that it does not close; write [host]:port")
        if rest and not rest.startswith(":"):
            raise BadAddress(f"{text!r} has {rest!r} behind the bracket; write [host]:port")
        port_text = rest[1:] if rest else None
    elif stripped.count(":") > 1:
        host, port_text = stripped, None
    else:
        host, colon, tail = stripped.partition(":")
        port_text = tail if colon else None
    if not host:
        raise BadAddress(f"{text!r} names no host")
    strange = next((letter for letter in host if not (letter.isalnum() or letter in ".-_:%*")), None)
    if strange is not None:
        raise BadAddress(f"{text!r} has {strange!r} in its host name")
    return host, port_text


def parse_port(port_text: str, whole_text: str) -> int:
    """Return a port number from 1 to 65535.

    Raises:
        BadAddress: It is none; the message names `whole_text`.
    """
    if not (port_text.isascii() and port_text.isdigit()) or not 1 <= int(port_text) <= HIGHEST_PORT:
        raise BadAddress(f"{whole_text!r} has the port {port_text!r}; a port is a number from 1 to {HIGHEST_PORT}")
    return int(port_text)


def numeric_host(host: str) -> IPv4Address | IPv6Address | None:
    """Return `host` as a number, or None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def host_of(address: Address) -> str:
    """Return the host without brackets."""
    return address.rpartition(":")[0].strip("[]")


def port_of(address: Address) -> int:
    """Return the port as a number."""
    return int(address.rpartition(":")[2])


def numeric_order(address: Address) -> tuple[str, int]:
    """Return a sort key that compares hosts as text and ports as numbers: 5701 before 15701 (Decisions: Tie-break of a merge)."""
    return host_of(address), port_of(address)


def bracketed(address: Address) -> str:
    """Return the form of member-list texts, ``[host]:port`` whatever the host is.

    See Cluster Service Consistency Improvements, User Interaction.
    """
    return f"[{host_of(address)}]:{port_of(address)}"


# The TCP-IP join list


SEPARATORS = re.compile(r"[,;\s]+")

DEFAULT_PORT = 5701
"""The port of a member that was configured with none."""

DEFAULT_PORT_TRY_COUNT = 3
"""How many ports an entry without a port stands for (``hazelcast.tcp.join.port.try.count``)."""


class BadJoinList(ValueError):
    """A join list with an entry that is no address. The message names the entry, its place and what is wrong."""


def parse_join_list(
    entries: str | Iterable[str], *, base_port: int = DEFAULT_PORT, port_try_count: int = DEFAULT_PORT_TRY_COUNT
) -> tuple[Address, ...]:
    """Read a join list in the order given, without duplicates.

    One entry may hold several addresses divided by commas, semicolons or blanks. An entry without a port stands for
    `port_try_count` ports counted up from `base_port`.

    Raises:
        BadJoinList: An entry cannot be read; the first is named.
    """
    texts = [entries] if isinstance(entries, str) else list(entries)
    words = [word for text in texts for word in SEPARATORS.split(text) if word]
    found: dict[Address, None] = {}
    for place, word in enumerate(words, start=1):
        try:
            found.update(dict.fromkeys(_expand(word, base_port, port_try_count)))
        except BadAddress as problem:
            raise BadJoinList(f"entry {place} of the join list: {problem}") from problem
    return tuple(found)


def resolve_join_list(
    entries: Iterable[str],
    addresses: Mapping[str, Address],
    *,
    base_port: int = DEFAULT_PORT,
    port_try_count: int = DEFAULT_PORT_TRY_COUNT,
) -> tuple[Address, ...]:
    """Return a join list in which members may stand by their labels, whose `addresses` are given.

    Raises:
        BadJoinList: An entry is neither a label nor an address.
    """
    words = [addresses.get(entry, entry) for entry in entries]
    return parse_join_list(words, base_port=base_port, port_try_count=port_try_count)


# A thousand simulated members read the same join list.
@lru_cache(maxsize=8192)
def _expand(word: str, base_port: int, port_try_count: int) -> tuple[Address, ...]:
    host, port_text = split_host_and_port(word)
    if "*" in host or ("-" in host.rpartition(".")[2] and host.rpartition(".")[2].replace("-", "").isdigit()):
        raise BadAddress(f"{word!r} is a range or wildcard; name each member by its own address")
    if port_text is not None:
        return (make_address(host, parse_port(port_text, word)),)
    return tuple(make_address(host, base_port + offset) for offset in range(port_try_count))
