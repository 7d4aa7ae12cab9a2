"""A member's log: for people in the product's form, ``[host]:port [cluster] [version]`` before each message, or as JSON lines.

The level can change while the member runs, as that of the logger `LEVEL_LOGGER`.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, TextIO

import msgspec

from quarterdeck.backend.core.address import Address, bracketed
from quarterdeck.backend.core.causes import one_line, several_lines
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.membership.views.member_list import MemberList, member_list_text
from quarterdeck.backend.picture.events.catalogue import ROWS, describe_event

LEVEL_LOGGER = "quarterdeck"
LOGGER = logging.getLogger("quarterdeck.member")
"""What the member itself logs."""


class MemberLog:
    """Writes the records of the member at `address` to the log."""

    def __init__(self, address: Address, *, legacy_lists: bool) -> None:
        """Begin. `legacy_lists`: lists of members are written in the format without a version."""
        self._address = address
        self._legacy_lists = legacy_lists

    def write(self, record: Record) -> None:
        level = ROWS[type(record.event)].level
        if LOGGER.isEnabledFor(level):
            LOGGER.log(level, "%s", self._text(record), extra={"event": record.event})

    def _text(self, record: Record) -> str:
        event = record.event
        match event:
            case ListInstalled(number, lineage, _, members):
                text = member_list_text(MemberList(number, members, lineage), record.uuid, legacy=self._legacy_lists)
                return f"\n\n{text}\n"
            case events.SuspicionRaised(suspect, uuid, reason):
                return one_line(f"{bracketed(suspect)} - {uuid} is suspected to be dead for reason: {reason}")
            case events.SuspicionCleared(suspect, uuid, reason):
                return one_line(f"Removed suspicion of {bracketed(suspect)} - {uuid}. Reason: {reason}")
            case _:
                phrase = ROWS[type(event)].logged_as
                return one_line(f"{phrase if isinstance(phrase, str) else phrase(event)}{describe_event(event)}")


def configure_logging(
    form: Literal["console", "json"], level: str, address: Address, cluster: str, stream: TextIO | None = None
) -> None:
    """Make the whole program log to `stream`, by default stderr; `level` is one of logging's names."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter(address, cluster) if form == "json" else ProductFormatter(address, cluster))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger(LEVEL_LOGGER).setLevel(level)


class ProductFormatter(logging.Formatter):
    """Formats as ``2026-01-31 12:00:00,123 INFO  [10.0.0.1]:5701 [dev] [1.2.0] message``."""

    def __init__(self, address: Address, cluster: str) -> None:
        member = f"{bracketed(address)} [{one_line(cluster)}] [{software_version()}]".replace("%", "%%")
        super().__init__(f"%(asctime)s %(levelname)-7s {member} %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return several_lines(super().format(record))


class JsonFormatter(logging.Formatter):
    """Formats one object a line: ts (UTC), level, logger, member, cluster, version, message; also event, and exception."""

    def __init__(self, address: Address, cluster: str) -> None:
        super().__init__()
        self._always = {"member": address, "cluster": cluster, "version": software_version()}

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            **self._always,
            "message": several_lines(record.getMessage().strip()),
        }
        if event := getattr(record, "event", None):
            line["event"] = event
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def software_version() -> str:
    """Return the version of this package, as installed."""
    try:
        return version("quarterdeck")
    except PackageNotFoundError:  # run from a source tree
        return "unknown"
