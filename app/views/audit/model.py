"""Findings as a `TableModel`: those watched live first, then those of the stream, then those of the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from quarterdeck.app.views.audit.findings import Finding, Origin
from quarterdeck.backend.picture.text.event_description import clock_text
from quarterdeck.backend.picture.text.formatting import NameOf, one_line, with_names
from quarterdeck.widgets.line_table import Column, TableCell

LONGEST_NAME = 16
LONGEST_RULE = 24
GLYPHS = {"violation": ("✕", "bad"), "warning": ("!", "warning")}


class FindingsModel:
    """Rows are findings. `update` takes in what was found."""

    fixed_columns = 1

    def __init__(self) -> None:
        self._rows: dict[str, tuple[Origin, Finding]] = {}
        self._name_of: NameOf = str
        self.columns: tuple[Column, ...] = ()
        self._measure()

    @property
    def keys(self) -> Sequence[str]:
        return tuple(self._rows)

    def update(self, found: Mapping[Origin, Sequence[Finding]], name_of: NameOf) -> None:
        """Show what was found, by origin, in this order."""
        self._name_of = name_of
        self._rows = {
            f"{origin}-{number}": (origin, finding)
            for origin, findings in found.items()
            for number, finding in enumerate(findings)
        }
        self._measure()

    def finding(self, key: str | None) -> Finding | None:
        """The finding of this row, if there is one."""
        row = self._rows.get(key) if key is not None else None
        return row[1] if row is not None else None

    def sentence(self, finding: Finding) -> str:
        """What was found, with the names of members in place of their addresses."""
        return one_line(with_names(finding.detail, self._name_of))

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        origin, finding = self._rows[key]
        glyph, tone = GLYPHS.get(finding.severity, ("·", "plain"))
        return (
            TableCell(one_line(f"{glyph} {finding.severity}"), tone),
            TableCell(origin, "faint"),
            TableCell(clock_text(finding.at)),
            TableCell(one_line(finding.member), "strong"),
            TableCell(one_line(finding.rule)),
            TableCell(self.sentence(finding)),
        )[first:last]

    def rank(self, key: str, title: str) -> object:
        """Times are compared as times."""
        _, finding = self._rows[key]
        if title == "at":
            return finding.at
        place = next((place for place, column in enumerate(self.columns) if column.title == title), 0)
        return self.cells(key, place, place + 1)[0].text or None

    def outlier(self, key: str) -> bool:
        return False

    def _measure(self) -> None:
        found = [finding for _, finding in self._rows.values()]
        members = max((cell_len(one.member) for one in found), default=0)
        rules = max((cell_len(one.rule) for one in found), default=0)
        self.columns = (
            Column("severity", len("✕ violation") + 1),
            Column("source", len("source") + 1),
            Column("at", len("99999.999") + 1),
            Column("member", max(len("member"), min(members, LONGEST_NAME)) + 1),
            Column("rule", max(len("rule"), min(rules, LONGEST_RULE)) + 1),
            Column("what was found", max((cell_len(one.detail) for one in found), default=0) + 20),
        )
