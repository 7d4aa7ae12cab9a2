"""Describes how well the members of a remote cluster can be heard; of any other cluster there is nothing to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quarterdeck.backend.clusters.cluster import Cluster
from quarterdeck.backend.clusters.connection_status import ConnectionStatus, ConnectionStatusSource
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import age_text, counted, one_line
from quarterdeck.widgets.line_table import TableCell

NAMES_SPELT_OUT = 3


class ConnectionSummary:
    """Looks at one cluster. Ages are in whole seconds, so what it says changes at most once a second by itself."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._remote = cluster if isinstance(cluster, ConnectionStatusSource) else None

    def marks(self) -> dict[str, str]:
        """What to put beside each member whose news are old, or that was never reached."""
        now_us = self._cluster.now_us()
        marks = {}
        for label, one in self._reach().items():
            if one.contact == "stale":
                marks[label] = f"stale {age_text(now_us - one.since_us)}"
            elif one.contact == "connecting":
                marks[label] = "not reached"
        return marks

    def badges(self, *, live: bool) -> list[TableCell]:
        """Where this is, and whether anything can be changed from here; the past can not."""
        writable = self._cluster.writable and live
        if self._remote is None:
            return [TableCell("RW" if writable else "RO", "strong")]
        right = "RW read and write" if writable else "RO read-only"
        return [TableCell(one_line(self._remote.environment), "warning"), TableCell(right, "strong")]

    def problems(self) -> list[TableCell]:
        """How many members are out of reach, and whose history is not whole."""
        connection_status = self._reach()
        away = sum(one.contact != "connected" for one in connection_status.values())
        torn = [one_line(label) for label, one in connection_status.items() if one.incomplete]
        more = f" and {len(torn) - NAMES_SPELT_OUT} more" if len(torn) > NAMES_SPELT_OUT else ""
        standing = {label: one.state for label, one in connection_status.items() if one.state not in ("", "connected")}
        if standing:
            named = [f"{one_line(label)} {state}" for label, state in list(standing.items())[:NAMES_SPELT_OUT]]
            more = f" and {len(standing) - NAMES_SPELT_OUT} more" if len(standing) > NAMES_SPELT_OUT else ""
            answering = f"{len(connection_status) - away} of {len(connection_status)} answer"
            return [TableCell(f"⊘ {answering}; {', '.join(named)}{more}", "warning")]
        return [
            TableCell(f"⊘ {counted(away, 'member')} not reached" if away else "", "warning"),
            TableCell(f"history incomplete: {', '.join(torn[:NAMES_SPELT_OUT])}{more}" if torn else "", "warning"),
        ]

    def facts(self, label: str) -> Iterator[Fact]:
        """How this member is reached."""
        one = self._reach().get(label)
        if one is None:
            return
        now_us = self._cluster.now_us()
        age, why = age_text(now_us - one.since_us), f": {one_line(one.why)}" if one.why else ""
        match one.contact:
            case "connected":
                yield Fact("connection", f"{one.url}, connected since {age}")
            case "stale":
                yield Fact("connection", f"{one.url}, last heard {age} ago{why}", "warning")
                yield Fact("", "what follows is what it believed then", "faint")
            case _:
                yield Fact("connection", f"{one.url}, not reached, tried for {age}{why}", "warning")
        if one.incomplete:
            yield Fact("history", f"incomplete: {one.incomplete} is lost, so something may be missing here", "warning")

    def _reach(self) -> Mapping[str, ConnectionStatus]:
        return {} if self._remote is None else self._remote.connection_status()
