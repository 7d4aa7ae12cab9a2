"""`quarterdeck audit`: check journals, or the product's own logs, against the invariants."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from typer import Exit

from quarterdeck.cli.commands.run_options import DateOption, ZoneOption, log_options
from quarterdeck.cli.commands.spark.engine_options import (
    ConfOption,
    EngineOption,
    MasterOption,
    RemoteOption,
    chosen_engine,
)
from quarterdeck.cli.exits import BadUsage, ExitCode, fail_if, failing_as
from quarterdeck.cli.output import Format, FormatOption, argument, option, say, write_document, write_rows

if TYPE_CHECKING:
    from quarterdeck.backend.pipeline.rules import AuditResult
    from quarterdeck.backend.pipeline.run_reader import RunReader

COLUMNS = ("severity", "rule", "run", "at_seconds", "members", "detail")
LINES_OF_INCOMPLETE = 5
LINES_OF_OBSERVATIONS = 20
LINES_OF_ACCOUNTS = 5

ReportOption = Annotated[
    Path | None, option("Also write a report: a page.html, a text.md or a model.json.", "FILE", "--report")
]


def audit(
    paths: Annotated[list[str], argument("Journals, folders of runs, files, tables, or logs.", "PATH...")],
    rules: Annotated[str, option("Judge only these invariants.", "A,B")] = "",
    out: Annotated[str | None, option("Also write tables and findings here.", "DIR")] = None,
    source: Annotated[
        Literal["auto", "journal", "logs"], option("What the paths hold; found out by default.")
    ] = "auto",
    bound: Annotated[float | None, option("How long undisturbed members may take to agree.", "SECONDS", min=0)] = None,
    engine: EngineOption = "auto",
    master: MasterOption = "",
    remote: RemoteOption = "",
    conf: ConfOption = None,
    zone: ZoneOption = "",
    date: DateOption = "",
    fail_on: Annotated[
        str,
        option(
            "Exit with 1 for violations only, also for an observation of Hazelcast members, or also where lines (or more "
            "than a share of them) are no records.",
            "violation|observation|quarantine[=SHARE]",
        ),
    ] = "violation",
    report: ReportOption = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Check journals against the invariants. Exits with 1 when one is violated, with 2 when there is nothing to judge."""
    from quarterdeck.backend.pipeline import audit as pipeline

    chosen = chosen_engine(engine, master, remote, conf)
    is_failure = _failing_on(fail_on)
    options = log_options(zone, date=date)
    names = [name.strip() for name in rules.split(",") if name.strip()]
    bound_us = None if bound is None else round(bound * 1_000_000)
    with reporting(report) as then, failing_as(ExitCode.BAD_INPUT, OSError):
        result = pipeline.audit(
            paths, out, rules=names, source=source, engine=chosen, bound_us=bound_us,
            log_options=options, then=then, on_message=say,
        )  # fmt: skip
    if output.is_flat:
        rows = ({**msgspec.to_builtins(found), "at_seconds": f"{found.at / 1e6:.3f}"} for found in result.findings)
        write_rows(rows, (*COLUMNS, "link") if output is Format.CSV else COLUMNS, output)
    else:
        write_document(msgspec.to_builtins(result), output)
    violations = sum(finding.severity == "violation" for finding in result.findings)
    _narrate(result, violations)
    if not result.counts["records"]:
        raise Exit(ExitCode.BAD_INPUT)
    fail_if(violations or is_failure(result))


def _failing_on(wanted: str) -> Callable[[AuditResult], bool]:
    """Return what decides, beside violations, whether an audit fails. Raises `BadUsage`."""
    what, _, share = wanted.partition("=")
    if what == "quarantine" and re.fullmatch(r"(0?\.\d+|0|1|\d+%)?", share):
        most = float(share.removesuffix("%") or 0) / (100 if share.endswith("%") else 1)
        return lambda result: result.counts["quarantined"] > most * result.counts["lines"]
    if wanted not in ("violation", "observation"):
        raise BadUsage(
            f"--fail-on {wanted}: one of violation, observation, quarantine or quarantine=SHARE, as 0.01 or 1%"
        )
    return lambda result: wanted == "observation" and bool(result.observations)


@contextmanager
def reporting(file: Path | None) -> Iterator[Callable[[AuditResult, RunReader], None] | None]:
    """Audit in the block, and call what it gives with the result and the runs; without a `file` there is nothing to call.

    Raises `ReportRefused` before the block where the report could not be written anyway.
    """
    if file is None:
        yield None
        return
    from quarterdeck.backend.pipeline.spark.requirements import needing_packages

    with needing_packages():
        from quarterdeck.backend.pipeline.report.audit_report import report_on
        from quarterdeck.backend.pipeline.report.output import ReportRefused, check_destination, write_report
    check_destination(file)

    def write(result: AuditResult, reader: RunReader) -> None:
        report = report_on(reader, result)
        with failing_as(ExitCode.BAD_INPUT, ReportRefused, OSError, about="--report"):
            write_report(report, file)
        say(f"report: {file}")

    yield write


def _narrate(result: AuditResult, violations: int) -> None:
    """Say what is to be known of the verdict. The last line is the verdict."""
    from quarterdeck.backend.judgement.health.cluster_health import RUNBOOKS
    from quarterdeck.backend.picture.text.formatting import counted

    for run, sentences in result.accounts[:LINES_OF_ACCOUNTS]:
        say(f"{run}:")
        for sentence in sentences:
            say(f"    {sentence}")
    for unjudged in result.not_judged:
        say(f"not judged: {', '.join(unjudged.rules)}: {unjudged.why}")
    for run, lacks in list(result.incomplete.items())[:LINES_OF_INCOMPLETE]:
        say(f"the journal of {run} is incomplete: {lacks}")
    if len(result.incomplete) > LINES_OF_INCOMPLETE:
        say(f"and those of {len(result.incomplete) - LINES_OF_INCOMPLETE} more runs")
    for note in result.reading:
        say(note)
    contradicting = result.counts["contradicting"]
    if no_records := result.counts["quarantined"] - contradicting:
        say(counted(no_records, "line is not a record", "lines are not records"))
    if contradicting:
        say(f"{counted(contradicting, 'line contradicts', 'lines contradict')} a record already read")
    for observation in result.observations[:LINES_OF_OBSERVATIONS]:
        first = observation.evidence[0]
        say(f"{observation.run}: {observation.headline} ({first.file}:{first.line})")
        say(f"    {observation.detail}")
        say(f"    Usually: {observation.cause}")
        say(f"    What helps: {observation.remedy}")
        say(f"    Runbook: {RUNBOOKS}#{observation.kind}")
    say(_headline(result, violations))


def _headline(result: AuditResult, violations: int) -> str:
    from quarterdeck.backend.judgement.observations.story import headline
    from quarterdeck.backend.picture.text.formatting import counted
    from quarterdeck.backend.pipeline.audit import NOT_IN_LOGS

    records, runs = (counted(result.counts[f"{what}s"], what) for what in ("record", "run"))
    if not result.counts["records"]:
        return f"nothing was judged: {counted(result.counts['lines'], 'line')}, none of which is a record"
    unjudged = sum(len(gap.rules) for gap in result.not_judged)
    observed = f"; {headline(result.observations)}" if result.observations else ""
    if not unjudged:
        return f"{records} of {runs}: {counted(violations, 'violation') if violations else 'no violations'}{observed}"
    source = "logs" if any(gap.why == NOT_IN_LOGS for gap in result.not_judged) else "what is witnessed"
    judged = f"{len(result.rules)} of {len(result.rules) + unjudged} rules can be judged from {source}"
    verdict = counted(violations, "violation") if violations else "nothing contradicts the protocol"
    return f"{records} of {runs}: {verdict} ({judged}){observed}"
