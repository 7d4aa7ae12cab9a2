"""`quarterdeck audit --report`: the report of an audit, made on the same Spark right after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quarterdeck.cli.exits import ExitCode, failing_as
from quarterdeck.cli.output import say

if TYPE_CHECKING:
    from quarterdeck.backend.pipeline.audit_lines import InputLines
    from quarterdeck.backend.pipeline.audit_result import AuditResult

ReportOption = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Also write a report: a page.html, a text.md or a model.json."),
]


@contextmanager
def reporting(file: Path | None) -> Iterator[Callable[[AuditResult, InputLines], None] | None]:
    """Audit in the block, and call what it gives with the result and the lines; without a `file` there is nothing to call.

    Raises `CommandFailed` before the block where the report could not be written anyway.
    """
    if file is None:
        yield None
        return
    from quarterdeck.backend.pipeline.report.output import ReportRefused, check_destination, write_report
    from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing, needing_packages

    with failing_as(ExitCode.BAD_INPUT, ReportRefused, PipelineMissing):
        check_destination(file)
        with needing_packages():
            from quarterdeck.backend.pipeline.report.audit_report import report_on

    def write(result: AuditResult, lines: InputLines) -> None:
        report = report_on(lines, result)
        with failing_as(ExitCode.BAD_INPUT, ReportRefused, OSError, about="--report"):
            write_report(report, file)
        say(f"report: {file}")

    yield write
