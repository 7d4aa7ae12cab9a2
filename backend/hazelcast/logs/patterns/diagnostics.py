"""Patterns of the product's diagnostics, which an operator can turn on while members run, from 5.6 on.

They write what the ordinary log does not have: heartbeats that are late, invocations that wait, each migration.
"""

from __future__ import annotations

import re

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.witnessed.events import ReplicaMigrated
from quarterdeck.backend.hazelcast.logs import parsed_messages as logged
from quarterdeck.backend.hazelcast.logs.patterns.pattern import ADDRESS, LogPattern, address, log_pattern

MILLISECOND_US = 1_000
_LATE = re.compile(rf"member({ADDRESS})\[[^\[\]]*?noHeartbeat\(ms\)=([\d,.]{{1,20}})")
_WAITING = re.compile(
    r"Invocation\{op=(?:[\w$]+\.)*(?P<operation>[\w$]+)\{[^\n]*? targetAddress=(?P<target>[^\s,]+),"
    r"[^\n]* duration=(?P<ms>[\d,.]+) ms"
)
_NAME = re.compile(r", name=([^,}\n]{1,100})\}")


def _late(found: re.Match[str]) -> logged.LoggedLateHeartbeats:
    return logged.LoggedLateHeartbeats(
        tuple((address(late[1]), _number(late[2]) * MILLISECOND_US) for late in _LATE.finditer(found[0]))
    )


def _invocations(found: re.Match[str]) -> logged.LoggedInvocations:
    return logged.LoggedInvocations(
        tuple(
            (
                call["operation"] + (f" of {name[1]}" if (name := _NAME.search(call[0])) else ""),
                _target(call["target"]),
                _number(call["ms"]) * MILLISECOND_US,
            )
            for call in _WAITING.finditer(found[0])
        )
    )


def _migrated(found: re.Match[str]) -> ReplicaMigrated:
    return ReplicaMigrated(
        int(found["partition"]), int(found["replica"]), _target(found["source"]), _target(found["destination"]),
        found[1] == "Completed", _number(found["ms"]) * MILLISECOND_US, int(found["planned"]), int(found["completed"]),
    )  # fmt: skip


def _target(text: str) -> Address | None:
    return address(text) if re.fullmatch(ADDRESS, text) else None


def _number(text: str) -> int:
    """Return a number that Java has divided into thousands."""
    return int(re.sub(r"\D", "", text) or 0)


PATTERNS: list[LogPattern] = [
    log_pattern("suspicion", "MemberHeartbeats[", r"MemberHeartbeats\[.*", _late),
    log_pattern("other", "Invocations[", r"Invocations\[.*", _invocations, ("duration=", " Invocations[")),
    log_pattern(
        "partitions",
        "Migration",
        r"Migration(Completed|Failed)\[\s*source=(?P<source>\S+)\s+destination=(?P<destination>\S+)\s+partitionId=(?P<partition>\d+)"
        r"\s+replicaIndex=(?P<replica>\d+)\s+elapsedTime\(ms\)=(?P<ms>[\d,.]+).*?plannedMigrations=(?P<planned>\d+)"
        r"\s+completedMigrations=(?P<completed>\d+)",
        _migrated,
        ("MigrationCompleted[", "MigrationFailed["),
    ),
]
