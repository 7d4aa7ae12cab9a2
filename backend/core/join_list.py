"""The TCP-IP join list: the addresses at which a member looks for its cluster.

See Split-brain Recovery Improvements; Hazelcast: network and port.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from quarterdeck.backend.core.address import Address, BadAddress, make_address, parse_port, split_host_and_port

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
    `port_try_count` ports counted up from `base_port`. Raises `BadJoinList` on the first entry that cannot be read.
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


def _expand(word: str, base_port: int, port_try_count: int) -> list[Address]:
    host, port_text = split_host_and_port(word)
    if "*" in host or ("-" in host.rpartition(".")[2] and host.rpartition(".")[2].replace("-", "").isdigit()):
        raise BadAddress(f"{word!r} is a range or wildcard; name each member by its own address")
    if port_text is not None:
        return [make_address(host, parse_port(port_text, word))]
    return [make_address(host, base_port + offset) for offset in range(port_try_count)]
