"""Options of commands that run live members: their logs, and whether each has a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.cli.exits import ExitCode, failing_as

LogOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Append the members' logs to FILE: each list of members, each suspicion."),
]


ProcessesOption = Annotated[
    bool, typer.Option("--processes", help="Give every member a process of its own, so that a kill is a kill -9.")
]


def write_log(file: Path | None) -> None:
    """From now on write logs into `file`, warnings of the program itself included. Raises `CommandFailed`."""
    if file is None:
        return
    import logging

    with failing_as(ExitCode.BAD_INPUT, OSError, about="--log"):
        handler = logging.FileHandler(file, encoding="utf-8")
    logging.basicConfig(
        level=logging.INFO, handlers=[handler], format="%(asctime)s %(levelname)s %(message)s", force=True
    )
