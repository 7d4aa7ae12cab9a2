"""Findings: of violations, of the audit's report, and of a file that somebody else appends to."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.app.views.audit.findings import FollowedFindings, ShownFinding, of_run, of_violation
from quarterdeck.backend.clusters.invariant_monitor import Violation
from quarterdeck.backend.core.events import ProcessKilled, Record
from tests.app.fakes.finding_line import line


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def test_a_file_is_followed_and_a_torn_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "findings.jsonl"
    file = FollowedFindings(path)
    assert not file.look() and not file.findings
    append(path, line(1) + line(2)[:20])
    assert file.look() and [finding.seq for finding in file.findings] == [1]
    assert not file.look()
    append(path, line(2)[20:] + b"\n")
    assert file.look() and [finding.seq for finding in file.findings] == [1, 2]
    assert file.bad_lines == 0


def test_what_is_no_finding_is_counted_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "findings.jsonl"
    append(path, b'{"rule": 5}\n\xff\xfe\n' + line(3))
    file = FollowedFindings(path)
    file.look()
    assert file.bad_lines == 2 and [finding.seq for finding in file.findings] == [3]


def test_a_file_that_was_cut_or_replaced_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "findings.jsonl"
    append(path, line(1) + line(2))
    file = FollowedFindings(path)
    file.look()
    path.write_bytes(line(7))
    assert file.look() and [finding.seq for finding in file.findings] == [7]
    other = tmp_path / "other"
    append(other, line(8) + line(9) + line(10))
    other.rename(path)
    assert file.look() and [finding.seq for finding in file.findings] == [8, 9, 10]


def test_a_file_that_cannot_be_read_is_said_and_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "findings.jsonl"
    path.mkdir()
    file = FollowedFindings(path)
    assert not file.look() and "cannot be read" in file.problem
    path.rmdir()
    append(path, line(1) + b"\n")
    assert file.look() and not file.problem and len(file.findings) == 1


def test_a_violation_stands_at_the_last_of_its_witnesses() -> None:
    records = tuple(Record("run", f"n{at}", f"u{at}", at, at, at, ProcessKilled("x")) for at in (3, 9, 5))
    finding = of_violation(Violation("view order", "two ways", records))
    assert (finding.at, finding.member, finding.seq, len(finding.witnesses)) == (9, "n9", 9, 3)
    assert of_violation(Violation("convergence", "never", ())).at == 0


def test_findings_of_one_run() -> None:
    found = [ShownFinding("r", "violation", run, "m", "u", 1, 1, "d") for run in ("a", "b", "a")]
    assert len(of_run(found, "a")) == 2 and len(of_run(found, "")) == 3
