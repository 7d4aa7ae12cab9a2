"""What commands share that run members or read their logs: where a run is recorded, where members log, how logs are read."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from quarterdeck.cli.configuration.paths import journal_root
from quarterdeck.cli.exits import BadUsage, ExitCode, failing_as
from quarterdeck.cli.output import flag, option, say

if TYPE_CHECKING:
    from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
    from quarterdeck.backend.journal.writer import JournalWriter

JournalOption = Annotated[Path | None, option("Record into this folder instead of the usual one.", "DIR", "--journal")]
PropertyOption = Annotated[list[str] | None, option("Set a hazelcast.* property.", "NAME=VALUE", "--property")]
DurationOption = Annotated[float | None, option("Stop after this time; never by default.", "SECONDS", "--for", min=0)]
ExpectMembersOption = Annotated[
    int | None,
    option(
        "Accept so many members as the size of the cluster: one that left before is not missed.",
        "N",
        min=1,
    ),
]
JobsOption = Annotated[
    int | None, option("Processes, for all runs together; as many as processors when not given.", min=1)
]
NoJournalOption = Annotated[bool, flag("Record nothing.", "--no-journal")]

LogOption = Annotated[
    Path | None, option("Append the members' logs to FILE: each list of members, each suspicion.", "FILE")
]


ProcessesOption = Annotated[
    bool, flag("Give every member a process of its own, so that a kill is a kill -9.", "--processes")
]

ZoneOption = Annotated[
    str, option("The zone of times in logs that do not name one: Europe/Athens, +02:00, h4.log=+02:00.", "ZONE")
]
DateOption = Annotated[str, option("The day of the first message in logs whose times have no date: 2026-11-21.", "DAY")]


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


def named_values(texts: Iterable[str]) -> dict[str, str]:
    """Return the values of ``NAME=VALUE`` texts by name. Raises `CommandFailed`."""
    wanted = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise BadUsage(f"--property {text}: write it as NAME=VALUE")
        wanted[name.strip()] = value.strip()
    return wanted


@contextmanager
def stopping(stop: threading.Event) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM set `stop` meanwhile; a second Ctrl-C ends the program as usual."""

    def end(*_: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def new_run(name: str) -> str:
    """Return a name for a run of the cluster or scenario `name`: in order of time, and never the same twice."""
    from quarterdeck.backend.journal.files import usable_name

    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{usable_name(name)}-{os.urandom(2).hex()}"


@contextmanager
def recording(root: Path | None, run: str, *, wanted: bool = True) -> Iterator[JournalWriter | None]:
    """Yield a writer for `run` under `root`, closed at the end; None when no journal is `wanted`.

    Afterwards it says where the journal is and how to audit it.

    Raises:
        CommandFailed: It cannot be written, or `run` is recorded under `root` already.
    """
    if not wanted:
        yield None
        return
    from quarterdeck.backend.journal.files import run_directory
    from quarterdeck.backend.journal.writer import JournalWriter

    root = root or journal_root()
    directory = run_directory(root, run)
    if directory.exists():
        raise BadUsage(f"{directory}: recorded already; name another folder or remove it")
    with failing_as(ExitCode.BAD_INPUT, OSError, about="the journal cannot be written"):
        writer = JournalWriter(root, run, "quarterdeck")
    for leftover in writer.recovered:
        say(f"journal: {leftover.file}: {leftover.reason}")
    try:
        yield writer
    finally:
        with failing_as(ExitCode.BAD_INPUT, OSError, about="the journal is not complete"):
            writer.close()
        say(f"journal: {directory}")
        say(f"audit it with: {shlex.join([_program(), 'audit', str(directory)])}")


def _program() -> str:
    """Return what to type for `quarterdeck` here: its path when the shell would not find it."""
    started = Path(sys.argv[0])
    return str(started) if started.name == "quarterdeck" and shutil.which("quarterdeck") is None else "quarterdeck"


def log_options(zone: str, run: str = "", date: str = "") -> LogOptions:
    """Return what was said of logs.

    Raises:
        CommandFailed: The zone or the date is none.
    """
    from quarterdeck.backend.hazelcast.logs.log_set import LogSet
    from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions

    options = LogOptions(run=run, zone=zone, date=date)
    with failing_as(ExitCode.BAD_INPUT, ValueError, about="--zone or --date"):
        LogSet([], options)
    return options
