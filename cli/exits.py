"""Exit codes, and how a command fails: what backends raise is a sentence and a code here."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from typer import Exit, TyperException

from quarterdeck.backend.core.causes import several_lines


class ExitCode(IntEnum):
    DONE = 0
    CHECK_FAILED = 1
    """A violation was found or an expectation missed."""
    BAD_INPUT = 2
    """Wrong usage or bad input; the message names the file, the line and the field."""
    UNREACHABLE = 3
    REFUSED = 4
    """Read-only, not authorised, or impossible as things stand."""
    INTERRUPTED = 130


class CommandFailed(TyperException):
    """Ends the command with `code`, after one line on stderr."""

    def __init__(self, code: ExitCode, message: str) -> None:
        super().__init__(several_lines(message))
        self.exit_code = int(code)


class BadUsage(CommandFailed):
    """Ends the command for wrong usage or bad input."""

    def __init__(self, message: str) -> None:
        super().__init__(ExitCode.BAD_INPUT, message)


def fail_if(found: object) -> None:
    """End the command with `CHECK_FAILED` if a check has found something."""
    if found:
        raise Exit(ExitCode.CHECK_FAILED)


FORESEEN = {
    ExitCode.BAD_INPUT: (
        *("BadCertificate", "BadCheckpoint", "BadDocument", "BadExportFolder", "CampaignRefused", "NoAuditLog"),
        *("NoJournal", "NoLogs", "OnlySimulated", "PipelineMissing", "ReportRefused", "RunExists", "StoreRefused"),
        *("UnknownDemo", "UnknownRule"),
    ),
    ExitCode.UNREACHABLE: ("BadResponse", "JavaMissing", "SparkUnreachable", "Unreachable"),
    ExitCode.REFUSED: ("CommandRefused", "StreamDied"),
}
"""Exceptions whose message says all that a user needs, by name: to import them would cost the start of every command."""

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says, without the name of a file, where what is printed goes to a disk that is full."""

CODES = {name: code for code, names in FORESEEN.items() for name in names}


def code_of(problem: Exception) -> ExitCode | None:
    """Return the code with which a command ends that raised `problem`; None when that was not foreseen."""
    if isinstance(problem, OSError) and (problem.filename is not None or problem.errno in NO_ROOM):
        return ExitCode.BAD_INPUT  # the system refused a file that the command was given, or to take more of its output
    return next((CODES[kind.__name__] for kind in type(problem).__mro__ if kind.__name__ in CODES), None)


@contextmanager
def failing_as(code: ExitCode, *problems: type[Exception], about: str = "") -> Iterator[None]:
    """Turn `problems` raised inside into `CommandFailed`. `about` goes before the message."""
    try:
        yield
    except BrokenPipeError:  # stdout is not read any more: not a failure, and seen to in `cli.main.run`
        raise
    except problems as problem:
        message = in_one_line(problem)
        raise CommandFailed(code, f"{about}: {message}" if about else message) from problem


def in_one_line(problem: BaseException | str) -> str:
    """Return what the problem says, without line breaks; the file and the reason when the system refused one."""
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror if problem.filename is None else f"{problem.filename}: {problem.strerror}"
    return "; ".join(line.strip() for line in str(problem).splitlines() if line.strip()) or type(problem).__name__
