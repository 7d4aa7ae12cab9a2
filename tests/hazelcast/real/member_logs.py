"""The lists that real members have logged, to compare with what was heard of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from quarterdeck.backend.core.address import Address

LIST = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) .*Members \{size:\d+, ver:(?P<version>\d+)\} \[\n(?P<rows>.*?)\n\]",
    re.DOTALL,
)
ENTRY = re.compile(r"(?m)^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} )")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
OWN = re.compile(UUID.pattern + r"(?= this)")
PLACE = re.compile(r"Member \[([\d.]+)\](:\d+)")

LOG_FORMAT = "-Djava.util.logging.SimpleFormatter.format=%1$tF %1$tT,%1$tL %4$s [%3$s] %5$s%6$s%n"
"""One line for each message, with milliseconds."""


class LoggedList(Struct, frozen=True):
    """A list as a member logged it when it installed it."""

    at_us: int
    member_uuid: str
    version: int
    uuids: tuple[str, ...]
    addresses: tuple[Address, ...]


def lists_in(log: Path) -> list[LoggedList]:
    """All lists in a log, in order."""
    return list(lists_of(log.read_text()))


class LoggedWords(Struct, frozen=True):
    """An entry of a log."""

    at_us: int
    text: str


def words_of(text: str) -> list[LoggedWords]:
    """Return all entries of the text of a log, in order."""
    found = []
    for entry in ENTRY.split(text):
        if entry:
            at = datetime.strptime(entry[:23], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
            found.append(LoggedWords(round(at.timestamp() * 1_000_000), entry[24:]))
    return found


def lists_of(text: str) -> Iterator[LoggedList]:
    """Yield all lists in the text of a log, in order."""
    for entry in ENTRY.split(text):
        found = LIST.match(entry)
        own = OWN.search(found["rows"]) if found else None
        if found is not None and own is not None:
            at = datetime.strptime(found["at"], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
            uuids = tuple(UUID.findall(found["rows"]))
            addresses = tuple(Address(host + port) for host, port in PLACE.findall(found["rows"]))
            yield LoggedList(round(at.timestamp() * 1_000_000), own[0], int(found["version"]), uuids, addresses)
