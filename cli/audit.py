"""`quarterdeck audit`: check journals against the invariants, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.exits import ExitCode, failing_as
from cli.output import Format, FormatOption, say, write_document


def audit(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Journals, folders of runs, or files.")],
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Also write tables and findings here.")] = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Check journals against the invariants. Exits with 1 when one is violated."""
    import msgspec

    from backend.journal.files import NoJournal
    from backend.pipeline import audit as pipeline

    with failing_as(ExitCode.BAD_INPUT, NoJournal, pipeline.OutputRefused, pipeline.PipelineMissing):
        result = pipeline.audit(paths, out)
    write_document(msgspec.to_builtins(result, enc_hook=str), output)
    violations = sum(finding.severity == "violation" for finding in result.findings)
    say(f"{result.counts['records']} records of {result.counts['runs']} runs: {violations or 'no'} violations")
    if violations:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def register(app: typer.Typer) -> None:
    app.command()(audit)
