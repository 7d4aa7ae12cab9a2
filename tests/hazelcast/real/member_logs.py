"""The lists that real members have logged, to compare with what was heard of them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

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


class ClockStep(NamedTuple):
    """When a member's clock was set, and by how much it is ahead from then on."""

    at_us: int
    ahead_us: int


def words_of(text: str, steps: Sequence[ClockStep] = ()) -> list[LoggedWords]:
    """Return all entries of the text of a log, in order; at the true times, where its clock was set at `steps`."""
    return [LoggedWords(at_us, entry[24:]) for at_us, entry in _entries(text, steps)]


def lists_of(text: str, steps: Sequence[ClockStep] = ()) -> Iterator[LoggedList]:
    """Yield all lists in the text of a log, in order, at the true times."""
    for at_us, entry in _entries(text, steps):
        found = LIST.match(entry)
        own = OWN.search(found["rows"]) if found else None
        if found is not None and own is not None:
            uuids = tuple(UUID.findall(found["rows"]))
            addresses = tuple(Address(host + port) for host, port in PLACE.findall(found["rows"]))
            yield LoggedList(at_us, own[0], int(found["version"]), uuids, addresses)


def _entries(text: str, steps: Sequence[ClockStep]) -> Iterator[tuple[int, str]]:
    """Yield each entry of a log with its true time.

    The clock is set from the first entry on that cannot be older than a step, or that goes back as the step does.
    """
    ahead_us, before_us, later = 0, 0, deque(steps)
    for entry in ENTRY.split(text):
        if not entry:
            continue
        at = datetime.strptime(entry[:23], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
        shown_us = round(at.timestamp() * 1_000_000)
        if later and _is_set(later[0], shown_us, before_us, ahead_us):
            ahead_us = later.popleft().ahead_us
        before_us = shown_us
        yield shown_us - ahead_us, entry


def _is_set(step: ClockStep, shown_us: int, before_us: int, ahead_us: int) -> bool:
    if step.ahead_us < ahead_us:
        return shown_us < before_us - (ahead_us - step.ahead_us) // 2
    return shown_us - step.ahead_us >= step.at_us - 1_000_000
