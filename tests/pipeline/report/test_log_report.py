"""The report of members' logs: what is observed, what masters said about merging, and nothing that logs do not tell."""

from pathlib import Path

from quarterdeck.backend.judgement.observations.reader import read_logs
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.audit_input import AuditInput, resolve_input
from quarterdeck.backend.pipeline.report.audit_report import report_on
from quarterdeck.backend.pipeline.report.output import as_bytes
from quarterdeck.backend.pipeline.report.run_section import ReportLimits, Row
from quarterdeck.backend.pipeline.rules import AuditResult, NotJudged
from quarterdeck.backend.pipeline.run_reader import RunReader
from tests.pipeline.report.handmade_rows import built, rows_of

DATA = Path(__file__).parents[2] / "hazelcast" / "logs" / "data"


def report_of_logs(run: str, limits: ReportLimits | None = None) -> Row:
    (story,) = read_logs([DATA / run]).stories
    result = AuditResult(
        (), {"runs": 1}, (), ("version",), (NotJudged(("row",), "logs tell little"),),
        observations=story.observations, migration_rounds=story.migrations, merge_verdicts=story.verdicts,
    )  # fmt: skip
    return built(rows_of(run), result, AuditInput("logs", (DATA / run,), ()), limits or ReportLimits())


def test_halves_that_stay_apart_say_why_in_the_report() -> None:
    report = report_of_logs("halves-apart")
    (run,) = report.runs
    assert (report.verdict, report.observations, run.verdict) == ("uncontradicted", 1, "uncontradicted")
    verdicts = {(verdict.member, verdict.remote, verdict.decision): verdict.times for verdict in run.verdicts}
    one, three = "10.78.0.1:5701", "10.78.0.3:5701"
    assert verdicts == {(one, three, "remote-merges"): 13, (three, one, "local-merges"): 13}
    assert run.observations[0].evidence[0] == "h3.log:62"
    for form in (".html", ".md"):
        text = as_bytes(report, form).decode()
        assert "were apart: 67 s, until the logs end" in text
        assert "spoke of merging 13 times" in text and "sound" not in text.partition("</style>")[2][:400]
        assert "Logs are not measured" in text and "Nothing migrated" not in text


def test_rounds_of_migrations_stand_in_place_of_migrations() -> None:
    report = report_of_logs("migrations")
    (run,) = report.runs
    assert [
        (migration_round.planned, migration_round.completed, migration_round.place) for migration_round in run.rounds
    ] == [
        (203, 203, "h1.log:108"),
        (271, 271, "h1.log:124"),
        (201, 201, "h1.log:163"),
    ]
    assert "Rounds of migrations (3)" in as_bytes(report, ".html").decode()
    few = report_of_logs("migrations", ReportLimits(rows=2)).runs[0]
    assert (few.rounds_cut.shown, few.rounds_cut.total) == (2, 3)


def test_a_suspicion_lasts_until_the_suspect_is_off_the_list() -> None:
    logs = DATA / "flapping"
    result = audit([logs])
    report = report_on(RunReader(resolve_input([logs], logs)), result)
    (run,) = report.runs
    members = {row.observer[-6] + row.suspect[-6]: row for row in run.suspicions}
    assert (members["32"].times, members["32"].open) == (5, 0)
    assert 15_000_000 < members["32"].suspected_us < 30_000_000  # five times about five seconds
    assert run.metrics == []
    assert [step.size for step in run.sizes if step.lineage == run.sizes[0].lineage] == [1, 2, 3, 4, *([3, 4] * 5)]
    assert [claim.accepted for claim in run.claims][:1] == [0]
