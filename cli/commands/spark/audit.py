"""`quarterdeck audit`: check journals, or the product's own logs, against the invariants."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from quarterdeck.cli.commands.spark.audit_report import ReportOption, reporting
from quarterdeck.cli.commands.spark.failures import failing_without_spark
from quarterdeck.cli.exits import CommandFailed, ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, say, write_document, write_rows

if TYPE_CHECKING:
    from quarterdeck.backend.pipeline.audit_result import AuditResult

COLUMNS = ("severity", "rule", "run", "at_seconds", "members", "detail")
LINES_OF_INCOMPLETE = 5
LINES_OF_OBSERVATIONS = 20


class FailOn(StrEnum):
    VIOLATION = "violation"
    OBSERVATION = "observation"


class Source(StrEnum):
    AUTO = "auto"
    JOURNAL = "journal"
    LOGS = "logs"


def audit(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Journals, folders of runs, files, tables, or logs.")
    ],
    rules: Annotated[str, typer.Option(metavar="A,B", help="Judge only these invariants.")] = "",
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Also write tables and findings here.")] = None,
    source: Annotated[Source, typer.Option(help="What the paths hold; found out by default.")] = Source.AUTO,
    bound: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="How long undisturbed members may take to agree.", min=0),
    ] = None,
    master: Annotated[str, typer.Option(metavar="URL", help="Spark's master; by default this machine.")] = "",
    remote: Annotated[str, typer.Option(metavar="URL", help="A Spark Connect server, sc://HOST:PORT.")] = "",
    divide_above: Annotated[
        float, typer.Option(metavar="GB", help="On Spark, divide a greater run among several tasks.", min=0)
    ] = 2,
    zone: Annotated[
        str,
        typer.Option(
            metavar="ZONE", help="The zone of times in logs that do not name one: Europe/Athens, +02:00, h4.log=+02:00."
        ),
    ] = "",
    fail_on: Annotated[
        FailOn, typer.Option(help="Exit with 1 for violations only, or also for observations of Hazelcast members.")
    ] = FailOn.VIOLATION,
    report: ReportOption = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Check journals against the invariants. Exits with 1 when one is violated."""
    import msgspec

    from quarterdeck.backend.hazelcast.logs.reader import NoLogs
    from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions, zone_of
    from quarterdeck.backend.journal.files import NoJournal
    from quarterdeck.backend.pipeline import audit as pipeline
    from quarterdeck.backend.pipeline.commit import StoreRefused
    from quarterdeck.backend.pipeline.rules import UnknownRule

    if master and remote:
        raise CommandFailed(ExitCode.BAD_INPUT, "--master and --remote exclude each other; name one of them")
    log_options = LogOptions(zone=zone)
    with failing_as(ExitCode.BAD_INPUT, ValueError):
        zone_of(log_options)
    names = [name.strip() for name in rules.split(",") if name.strip()]
    bad = (NoJournal, NoLogs, UnknownRule, pipeline.OutputRefused, StoreRefused, OSError)
    with reporting(report) as write_report, failing_without_spark(*bad):
        result = pipeline.audit(
            paths,
            out,
            rules=names,
            source=source.value,
            master=master,
            remote=remote,
            bound_us=None if bound is None else round(bound * 1_000_000),
            log_options=log_options,
            undivided_bytes=round(divide_above * (1 << 30)),
            then=write_report,
        )
    if output.is_flat:
        rows = ({**msgspec.to_builtins(one), "at_seconds": f"{one.at / 1e6:.3f}"} for one in result.findings)
        write_rows(rows, (*COLUMNS, "link") if output is Format.CSV else COLUMNS, output)
    else:
        write_document(msgspec.to_builtins(result), output)
    violations = sum(finding.severity == "violation" for finding in result.findings)
    _narrate(result, violations)
    if violations or (fail_on is FailOn.OBSERVATION and result.observations):
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _narrate(result: AuditResult, violations: int) -> None:
    """Say what is to be known of the verdict. The last line is the verdict."""
    from quarterdeck.backend.picture.text.formatting import counted

    for unjudged in result.not_judged:
        say(f"not judged: {', '.join(unjudged.rules)}: {unjudged.why}")
    for run, lacks in list(result.incomplete.items())[:LINES_OF_INCOMPLETE]:
        say(f"the journal of {run} is incomplete: {lacks}")
    if len(result.incomplete) > LINES_OF_INCOMPLETE:
        say(f"and those of {len(result.incomplete) - LINES_OF_INCOMPLETE} more runs")
    contradicting = result.counts["contradicting"]
    if no_records := result.counts["quarantined"] - contradicting:
        say(counted(no_records, "line is not a record", "lines are not records"))
    if contradicting:
        say(f"{counted(contradicting, 'line contradicts', 'lines contradict')} a record already read")
    for observation in result.observations[:LINES_OF_OBSERVATIONS]:
        say(
            f"{observation.run}: {observation.headline} ({observation.evidence[0].file}:{observation.evidence[0].line})"
        )
        say(f"    {observation.detail}")
        say(f"    Usually: {observation.cause}")
        say(f"    What helps: {observation.remedy}")
    say(_headline(result, violations))


def _headline(result: AuditResult, violations: int) -> str:
    from quarterdeck.backend.hazelcast.logs.observations.story import headline
    from quarterdeck.backend.picture.text.formatting import counted
    from quarterdeck.backend.pipeline.audit import NOT_IN_LOGS

    records, runs = (counted(result.counts[f"{what}s"], what) for what in ("record", "run"))
    unjudged = sum(len(one.rules) for one in result.not_judged)
    observed = f"; {headline(result.observations)}" if result.observations else ""
    if not unjudged:
        return f"{records} of {runs}: {counted(violations, 'violation') if violations else 'no violations'}{observed}"
    source = "logs" if any(one.why == NOT_IN_LOGS for one in result.not_judged) else "what is witnessed"
    judged = f"{len(result.rules)} of {len(result.rules) + unjudged} rules can be judged from {source}"
    verdict = counted(violations, "violation") if violations else "nothing contradicts the protocol"
    return f"{records} of {runs}: {verdict} ({judged}){observed}"


def register(app: typer.Typer) -> None:
    app.command()(audit)
