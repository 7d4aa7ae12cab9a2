"""What is opened with `--replay`: a journal, or the logs of real members."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quarterdeck.cli.exits import CommandFailed, ExitCode, failing_as

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.recorded.log_cluster import LogCluster
    from quarterdeck.backend.clusters.recorded.recorded_cluster import RecordedCluster
    from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions

ZoneOption = Annotated[
    str,
    typer.Option(
        metavar="ZONE", help="The zone of times in logs that do not name one: Europe/Athens, +02:00, h4.log=+02:00."
    ),
]


@dataclass(frozen=True)
class Recording:
    """A journal or logs, and what was said of them."""

    path: Path
    at: str | None = None
    """A moment to show."""
    follow: bool = False
    zone: str = ""


def opened_recording(recording: Recording) -> tuple[RecordedCluster | LogCluster, int | None]:
    """Return the run that was recorded, and the moment that is named in it, in microseconds.

    Raises:
        CommandFailed: It cannot be opened.
    """
    from quarterdeck.backend.clusters.recorded.recorded_run import recorded_run
    from quarterdeck.backend.journal.files import NoJournal
    from quarterdeck.backend.picture.replay.moments import BadMoment, named_event, seconds_of

    path, at, options = recording.path, recording.at, log_options(recording.zone)
    with failing_as(ExitCode.BAD_INPUT, NoJournal, OSError, about="--replay"):
        cluster = recorded_run(path, options=options, follow=recording.follow)
        if at is None:
            return cluster, None
        with failing_as(ExitCode.BAD_INPUT, BadMoment, about="--at"):
            event = named_event(at)
            at_us = seconds_of(at) if event is None else cluster.moment_of(*event)
        if at_us is None:
            raise CommandFailed(ExitCode.BAD_INPUT, f"--at: there is no event {at} in the run {cluster.run}")
        cluster.close()
        return recorded_run(path, until_us=at_us, options=options, follow=recording.follow), at_us


def log_options(zone: str, run: str = "") -> LogOptions:
    """Return what was said of logs.

    Raises:
        CommandFailed: The zone is none.
    """
    from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions, zone_of

    options = LogOptions(run=run, zone=zone)
    with failing_as(ExitCode.BAD_INPUT, ValueError, about="--zone"):
        zone_of(options)
    return options
