"""A report on a simulated run with a split, a claim, a merge, migrations and a planted violation."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from quarterdeck.backend.core.membership.events import ClaimFinished, ListInstalled, MemberMerging
from quarterdeck.backend.core.partitions.events import MigrationStarted
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.audit_input import resolve_input
from quarterdeck.backend.pipeline.report.audit_report import report_on
from quarterdeck.backend.pipeline.report.output import FORMATS, ReportRefused, check_destination, write_report
from quarterdeck.backend.pipeline.report.run_section import ReportLimits, Row
from quarterdeck.backend.pipeline.rules import AuditResult
from quarterdeck.backend.pipeline.run_reader import RunReader
from quarterdeck.cli.commands.spark.audit import reporting
from tests.pipeline.report.recorded_run import OLD_VERSION, RUN, everything, planted, written

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("everything"), planted(everything()))


@pytest.fixture(scope="module")
def audited(root: Path) -> AuditResult:
    return audit([root])


@pytest.fixture(scope="module")
def reader(root: Path) -> RunReader:
    return RunReader(resolve_input([root], root))


@pytest.fixture(scope="module")
def report(audited: AuditResult, reader: RunReader) -> Row:
    return report_on(reader, audited)


def test_it_tells_what_happened(report: Row) -> None:
    records = planted(everything())
    (run,) = report.runs
    assert (run.run, run.events) == (RUN, len(records))
    assert report.index[0].members == len(run.lanes) == 5  # the cluster, of which there are records too, is none
    assert {lane.member for lane in run.lanes} == {"athens", "byzantium", "cyrene", "delphi", "euphesus"}
    installed = [record for record in records if isinstance(record.event, ListInstalled)]
    assert sorted((view.start_us, lane.member) for lane in run.lanes for view in lane.views) == sorted(
        (record.at, record.member) for record in installed
    )
    assert len(run.claims) == sum(isinstance(record.event, ClaimFinished) for record in records)
    assert [merge.member for merge in run.merges] == [
        record.member for record in sorted(records, key=lambda one: one.at) if isinstance(record.event, MemberMerging)
    ]
    assert run.migrations_cut.total == sum(isinstance(record.event, MigrationStarted) for record in records)
    assert sum(kind.times for kind in run.kinds) == len(records)
    assert {fault.fault for fault in run.faults} == {"kill", "pause", "link"}


def test_the_split_and_its_sides(report: Row) -> None:
    (split,) = report.runs[0].splits
    claim = report.runs[0].claims[0]
    assert claim.member == "delphi"
    assert split.start_us == claim.end_us
    assert [(side.master, side.members) for side in split.sides] == [
        ("athens", ["athens", "byzantium", "cyrene"]),
        ("delphi", ["delphi", "euphesus"]),
    ]


def test_the_planted_violation_and_how_to_see_it(report: Row, root: Path) -> None:
    (run,) = report.runs
    assert (report.verdict, run.verdict) == ("violated", "violated")
    of_delphi = [
        problem for problem in run.problems if problem.severity == "violation" and OLD_VERSION in problem.versions
    ]
    assert of_delphi
    assert of_delphi[0].command.startswith(f"quarterdeck console --replay {root / f'run={RUN}'} --at ")
    assert run.command == f"quarterdeck console --replay {root / f'run={RUN}'}"


@pytest.mark.long
def test_it_is_small_however_much_there_was(audited: AuditResult, reader: RunReader) -> None:
    few = ReportLimits(lanes=2, marks=3, migrations=4, faults=2, metrics=5, findings=1, suspicions=2)
    (run,) = report_on(reader, audited, few).runs
    assert [lane.member for lane in run.lanes] == ["athens", "byzantium"]
    assert run.lanes_cut == {"shown": 2, "total": 5}
    assert all(any(view.installs > 1 for view in lane.views) and len(lane.views) <= few.marks for lane in run.lanes)
    assert all(sum(view.installs for view in lane.views) == lane.installs for lane in run.lanes)
    for name in ("migrations", "faults", "metrics", "suspicions"):
        cut = getattr(run, f"{name}_cut")
        assert cut.shown == len(getattr(run, name)) == getattr(few, name) < cut.total, name


def test_all_forms_are_written_whole(report: Row, tmp_path: Path) -> None:
    for form in FORMATS:
        write_report(report, tmp_path / f"out{form}")
        assert "delphi" in (tmp_path / f"out{form}").read_text(encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == len(FORMATS)


@pytest.mark.parametrize(
    ("name", "reason"), [("out.pdf", ".html, .md, .json"), ("nowhere/out.html", "no such directory")]
)
def test_a_place_that_cannot_be_written_is_refused_before_the_audit(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(ReportRefused, match=reason):
        check_destination(tmp_path / name)
    with pytest.raises(ReportRefused, match=reason), reporting(tmp_path / name):
        raise AssertionError("the audit would have begun")


@pytest.mark.long
def test_the_command_lines_side(
    audited: AuditResult, reader: RunReader, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with reporting(None) as write:
        assert write is None
    with reporting(tmp_path / "out.json") as write:
        assert write is not None
        write(audited, reader)
    assert RUN in (tmp_path / "out.json").read_text(encoding="utf-8")
    assert capsys.readouterr().err == f"report: {tmp_path / 'out.json'}\n"


@pytest.mark.long
def test_runs_with_violations_come_first(root: Path, audited: AuditResult, tmp_path: Path) -> None:
    several = tmp_path / "several"
    for run in ("a", "b", "c"):
        written(several, [replace(record, run=run) for record in planted(everything())])
    one = audited.findings[0]
    doubtful, violated = replace(one, run="b", severity="warning"), replace(one, run="c", severity="violation")
    result = replace(audited, findings=(violated, doubtful))
    few = ReportLimits(index=2, sections=1, lanes=1, marks=2, migrations=1, metrics=1)
    report = report_on(RunReader(resolve_input([several], several)), result, few)
    assert [line.run for line in report.index] == ["c", "b"]
    assert [run.run for run in report.runs] == ["c"]
