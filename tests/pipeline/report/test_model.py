"""What the model makes of rows and findings, and how it stays small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.pipeline.report.drawing import Scale, clock, quantity, span
from quarterdeck.backend.pipeline.report.output import as_bytes
from quarterdeck.backend.pipeline.report.run_section import ReportLimits, Row
from tests.pipeline.report.handmade_rows import HandmadeRows, finding, report_of, rows_of

DOCUMENT = Path(__file__).parents[3] / "docs" / "spark" / "report.md"


def test_a_list_lasts_until_the_next_one_or_as_long_as_its_life() -> None:
    (lane,) = report_of(rows_of()).runs[0].lanes
    spans = [(view.start_us // SECOND_US, view.end_us // SECOND_US, view.version) for view in lane.views]
    assert spans == [(0, 1, 1), (1, 2, 2), (2, 9, 3)]


def test_labels_stand_for_addresses_and_letters_for_lineages() -> None:
    run = report_of(rows_of()).runs[0]
    assert [
        (lineage.letter, lineage.name, lineage.first_version, lineage.last_version) for lineage in run.lineages
    ] == [("A", "athens/1", 1, 3)]
    assert [side.lineage for side in run.splits[0].sides] == ["A", "athens"]
    assert run.merges[0].from_lineage == "A"


@pytest.mark.parametrize(
    ("severities", "verdict"), [((), "sound"), (("warning",), "doubtful"), (("warning", "violation"), "violated")]
)
def test_the_verdict(severities: tuple[str, ...], verdict: str) -> None:
    report = report_of(rows_of(), *(finding(severity=severity) for severity in severities))
    assert (report.verdict, report.runs[0].verdict, report.index[0].verdict) == (verdict, verdict, verdict)
    assert report.violations + report.warnings == len(severities)


@pytest.mark.parametrize("form", [".md", ".html"])
def test_a_report_begins_with_what_happened(form: str) -> None:
    text = (
        as_bytes(report_of(rows_of()), form)
        .decode()
        .partition("Report of an audit</h1>" if form == ".html" else "# ")[2]
    )
    assert 0 < text.index("split") < text.index("no rule broken") and "✓ sound" not in text


def test_what_is_left_out_is_counted() -> None:
    limits = ReportLimits(findings=2, sections=1, lanes=1, rows=1, suspicions=1, migrations=1, metrics=1)
    rows = rows_of(of=50)
    more = rows._replace(index=[*rows.index, Row(run="two", start_us=0, end_us=1, events=1, members=1)])
    report = report_of(more, *[finding()] * 5, limits=limits, runs=900)
    (run,) = report.runs
    assert (report.index_cut.shown, report.index_cut.total, [entry.section for entry in report.index]) == (
        2,
        900,
        [1, None],
    )
    assert run.problems_cut == {"shown": 2, "total": 5}
    assert run.rules == [{"rule": "athens", "violations": 5, "warnings": 0}]
    for name in ("lanes", "splits", "suspicions", "migrations", "claims", "merges"):
        assert getattr(run, f"{name}_cut") == {"shown": 1, "total": 50}, name
    assert run.metrics_cut.shown == 1 < run.metrics_cut.total


def test_nothing_at_all() -> None:
    report = report_of(HandmadeRows([], {}))
    assert report.runs == []
    for form in (".html", ".md", ".json"):
        assert as_bytes(report, form)


def test_a_run_of_which_only_its_existence_is_known() -> None:
    report = report_of(HandmadeRows([Row(run="bare", start_us=5, end_us=5, events=0, members=0)], {}))
    for form in (".html", ".md", ".json"):
        assert b"bare" in as_bytes(report, form)


def test_the_document_names_every_field_of_the_json() -> None:
    encoded = as_bytes(report_of(rows_of(), finding()), ".json")
    assert encoded == as_bytes(report_of(rows_of(), finding()), ".json")
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [name for name in _names(json.loads(encoded)) if f"`{name}`" not in text] == []


def _names(part: Any) -> set[str]:
    """Return the names of all fields in a part of the JSON."""
    if isinstance(part, list):
        return {name for inner in part for name in _names(inner)}
    return set(part) | _names(list(part.values())) if isinstance(part, dict) else set()


@given(st.integers(0, 10**13), st.integers(0, 10**13))
def test_ticks_are_few_and_inside(start_us: int, length_us: int) -> None:
    scale = Scale(start_us, start_us + length_us, 100, 900)
    ticks = list(scale.ticks())
    assert len(ticks) <= 12
    assert all(100 <= x <= 900 for x, _ in ticks)
    assert scale.x(start_us - 1) == 100


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (span(0), "0 µs"), (span(999), "999 µs"), (span(1_500), "1.5 ms"), (span(2_500_000), "2.5 s"),
        (span(61 * SECOND_US), "1 min 01 s"), (span(7_260 * SECOND_US), "2 h 01 min"),
        (clock(0), "0 s"), (clock(1_500_000), "1.5 s"), (quantity(None, "us"), "–"), (quantity(0.25, "share"), "25.00%"),
        (quantity(3.0, "copies"), "3"), (quantity(2.5, "per-second"), "2.5 /s"),
    ],
)  # fmt: skip
def test_numbers_as_people_read_them(text: str, wanted: str) -> None:
    assert text == wanted
