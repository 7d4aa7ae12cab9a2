"""The columns of the findings: those watched live first, then those of the stream, then those of the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from quarterdeck.app.views.audit.findings import Origin, ShownFinding
from quarterdeck.app.views.columns import BoardModel, ColumnOf
from quarterdeck.backend.picture.text.event_description import clock_text
from quarterdeck.backend.picture.text.formatting import NameOf, one_line, with_names

LONGEST_NAME = 16
LONGEST_RULE = 24
NAMES_ROOM = 20
"""Names may be longer than the addresses that they stand for."""

GLYPHS = {"violation": ("✕", "bad"), "warning": ("!", "warning")}


class FindingRow(NamedTuple):
    """A finding, who found it, and what was found with names in place of addresses."""

    origin: Origin
    finding: ShownFinding
    sentence: str

    @property
    def glyph(self) -> tuple[str, str]:
        """What marks it, and its tone."""
        return GLYPHS.get(self.finding.severity, ("·", "plain"))


COLUMNS: tuple[ColumnOf[FindingRow], ...] = (
    ColumnOf(
        "severity",
        lambda row: one_line(f"{row.glyph[0]} {row.finding.severity}"),
        lambda row: row.glyph[1],
        "✕ violation",
    ),
    ColumnOf("source", lambda row: row.origin, "faint"),
    ColumnOf("at", lambda row: clock_text(row.finding.at), widest="99999.999", rank=lambda row: row.finding.at),
    ColumnOf("member", lambda row: one_line(row.finding.member), "strong"),
    ColumnOf("rule", lambda row: one_line(row.finding.rule)),
    ColumnOf("what was found", lambda row: row.sentence, widest=NAMES_ROOM),
)


class FindingsModel(BoardModel[FindingRow]):
    """Rows are findings."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, fixed=1)

    def update(self, found: Mapping[Origin, Sequence[ShownFinding]], name_of: NameOf) -> None:
        """Show what was found, by origin, in this order."""
        rows = {
            f"{origin}-{number}": (origin, finding)
            for origin, findings in found.items()
            for number, finding in enumerate(findings)
        }

        def row_of(key: str) -> FindingRow:
            origin, finding = rows[key]
            return FindingRow(origin, finding, one_line(with_names(finding.detail, name_of)))

        self.show_rows(tuple(rows), row_of)
        self.widen("member", (finding.member for _, finding in rows.values()), LONGEST_NAME)
        self.widen("rule", (finding.rule for _, finding in rows.values()), LONGEST_RULE)
        self.widen("what was found", (finding.detail for _, finding in rows.values()), gap=NAMES_ROOM)
