"""Which recorded run a command is for, and which moment of it: the same options for the console and for every question."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from quarterdeck.cli.commands.run_options import DateOption, ZoneOption, log_options
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.exits import BadUsage, ExitCode, failing_as
from quarterdeck.cli.output import option

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.recorded.recorded_cluster import RecordedCluster
    from quarterdeck.backend.clusters.recorded.recorded_run import LogCluster

ReplayOption = Annotated[
    Path | None, option("A recorded run: a run's folder in a journal, one file, or members' logs.", "PATH", "--replay")
]
AtOption = Annotated[
    str | None,
    option("With --replay: a time in ISO 8601, seconds, or MEMBER#NUMBER of an event; its end by default.", "TIME"),
]
RunOption = Annotated[str, option("With --replay of a journal of several runs: which one.", "RUN")]


class RecordingTarget(NamedTuple):
    """A recorded run, and a moment of it."""

    path: Path
    at: str | None = None
    run: str = ""
    zone: str = ""
    date: str = ""

    def opened(self, *, follow: bool = False) -> tuple[RecordedCluster | LogCluster, int | None]:
        """Return the run, and the moment in it in microseconds.

        Raises:
            CommandFailed: It cannot be opened.
        """
        from quarterdeck.backend.clusters.recorded.recorded_run import recorded_run
        from quarterdeck.backend.hazelcast.logs.split_parser import zone_of
        from quarterdeck.backend.journal.files import NoJournal
        from quarterdeck.backend.picture.replay.timeline import BadMoment, named_event, seconds_of, utc_of

        options = log_options(self.zone, date=self.date)
        with failing_as(ExitCode.BAD_INPUT, NoJournal, OSError, about="--replay"):
            cluster = recorded_run(self.path, options=options, follow=follow, run=self.run)
            if self.at is None:
                return cluster, None
            with failing_as(ExitCode.BAD_INPUT, BadMoment, about="--at"):
                event, utc_us = named_event(self.at), utc_of(self.at, zone_of(options))
                at_us: int | None
                if utc_us is not None:
                    at_us = utc_us - cluster.began_utc_us()
                else:
                    at_us = seconds_of(self.at) if event is None else cluster.moment_of(*event)
            if at_us is None:
                raise BadUsage(f"--at: there is no event {self.at} in the run {cluster.run}")
            cluster.close()
            return recorded_run(self.path, until_us=at_us, options=options, follow=follow, run=self.run), at_us


OPTIONS = {
    "replay": (ReplayOption, None), "at": (AtOption, None), "run": (RunOption, ""), "zone": (ZoneOption, ""),
    "date": (DateOption, ""),
}  # fmt: skip


def with_source(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with the options of a running cluster, and of a recorded run, in place of its parameter `source`."""
    own = inspect.signature(command, eval_str=True).parameters

    @functools.wraps(command)
    def chosen(*arguments: Any, connection: ConnectionTarget, **given: Any) -> None:
        wanted = {name: given.pop(name, default) for name, (_, default) in OPTIONS.items()}
        command(*arguments, **given, source=_source_of(connection, **wanted))

    named = inspect.Parameter.KEYWORD_ONLY
    parameters = [parameter.replace(kind=named) for name, parameter in own.items() if name != "source"]
    parameters.append(inspect.Parameter("connection", named, annotation=ConnectionTarget))
    for name, (annotation, default) in OPTIONS.items():
        parameters.append(inspect.Parameter(name, named, default=default, annotation=annotation))
    del chosen.__dict__["__wrapped__"]  # the next decorator is to see the new parameters
    chosen.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return with_connection(chosen)


def _source_of(
    connection: ConnectionTarget, replay: Path | None, at: str | None, run: str, zone: str, date: str
) -> ConnectionTarget | RecordingTarget:
    if replay is None:
        for name, given in (("--at", at), ("--run", run), ("--zone", zone), ("--date", date)):
            if given:
                raise BadUsage(f"{name} is for a run that is opened with --replay")
        return connection
    if connection.urls:
        raise BadUsage("--replay reaches no members; leave out --connect and --cluster")
    return RecordingTarget(replay, at, run, zone, date)
