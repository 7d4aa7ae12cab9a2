"""`quarterdeck console`: the console on top of a live cluster on this machine, or of one that runs elsewhere."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.connection import Connection, with_connection
from cli.exits import CommandFailed, ExitCode, failing_as
from cli.journal import JournalOption, NoJournalOption, new_run, recording
from cli.live import LogOption, ProcessesOption, write_log

if TYPE_CHECKING:
    from backend.core.properties import PropertyValue, Settings

CLUSTER_NAME = "dev"
CITIES = ("athens", "byzantium", "cyrene", "delphi", "euphesus")
"""Labels of the first members, as in the scripted demos; those after them are called n6, n7 and so on."""
HEADLESS_DEMO = "split"


class PresetName(StrEnum):
    TRAINING = "training"
    PRODUCTION = "production"


@with_connection
def console(
    connection: Connection,
    members: Annotated[int, typer.Option(min=1, max=100, help="How many members to start.")] = len(CITIES),
    preset: Annotated[
        PresetName, typer.Option(help="Timing properties: seconds for training, or the documented defaults.")
    ] = PresetName.TRAINING,
    properties: Annotated[
        list[str] | None, typer.Option("--property", metavar="NAME=VALUE", help="Set a hazelcast.* property.")
    ] = None,
    journal: JournalOption = None,
    no_journal: NoJournalOption = False,
    processes: ProcessesOption = False,
    log: LogOption = None,
    write: Annotated[
        bool, typer.Option("--write", help="With --connect or --cluster: allow to change things.")
    ] = False,
) -> None:
    """Open the console on a new live cluster, or on a running one; without a terminal, run the demo `split` instead of the former
    and report on stdout."""
    if connection.urls:
        here_only = (processes, properties, journal, log)
        if any(here_only):
            problem = "--processes, --property, --journal and --log are for a cluster that is started here"
            raise CommandFailed(ExitCode.BAD_INPUT, problem)
        watch_running(connection, write=write)
        return
    if write:
        raise CommandFailed(ExitCode.BAD_INPUT, "--write is for a running cluster; name it with --connect or --cluster")
    settings = read_settings(properties or [], preset)
    write_log(log)
    if not has_terminal():
        run_headless(journal, wanted=not no_journal)
        return
    from app.console import run_console
    from backend.clusters.local import LocalCluster, ProcessCluster

    kind = ProcessCluster if processes else LocalCluster
    labels = member_labels(members)
    with recording(journal, new_run(CLUSTER_NAME), wanted=not no_journal) as writer:
        with failing_as(ExitCode.UNREACHABLE, OSError, about="the cluster cannot start"):
            cluster = kind(labels, name=CLUSTER_NAME, settings=settings, journal=writer)
        try:
            run_console(cluster, cluster.started)
        finally:
            cluster.close()


def watch_running(connection: Connection, *, write: bool) -> None:
    """The console on the cluster that `connection` names; it goes on when the console ends."""
    if write:
        connection.to_change()
    if not has_terminal():
        raise CommandFailed(
            ExitCode.BAD_INPUT, "no terminal here; see `quarterdeck cluster watch` and `cluster status`"
        )
    from app.console import run_console

    cluster = connection.open(write=write)
    try:
        run_console(cluster, cluster.started)
    finally:
        cluster.close()


def register(app: typer.Typer) -> None:
    app.command()(console)


def has_terminal() -> bool:
    """Whether there is a screen and a keyboard: Textual reads stdin and draws on stderr, people look at stdout."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return os.environ.get("TERM") != "dumb" and all(stream is not None and stream.isatty() for stream in streams)


def run_headless(journal: Path | None, *, wanted: bool) -> None:
    """Run the demo `split` on live members, telling each step on stdout. Exits with 1 when it misses an expectation."""
    from cli.demo import play, scenario_of

    print(f"No terminal here: running the demo `{HEADLESS_DEMO}` on a live cluster without a screen.", flush=True)
    outcome = play(scenario_of(HEADLESS_DEMO), HEADLESS_DEMO, lambda line: print(line, flush=True), journal, wanted)
    print("passed" if outcome.passed else "failed", flush=True)
    if not outcome.passed:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def member_labels(count: int) -> tuple[str, ...]:
    return (*CITIES, *(f"n{number}" for number in range(len(CITIES) + 1, count + 1)))[:count]


def read_settings(properties: list[str], preset: PresetName) -> Settings:
    """The preset with ``name=value`` texts on top. Raises `CommandFailed` for one that cannot be taken."""
    from backend.core.properties import BadProperty, Settings

    wanted: dict[str, PropertyValue] = {}
    for text in properties:
        name, equals, value = text.partition("=")
        if not equals:
            raise CommandFailed(ExitCode.BAD_INPUT, f"--property {text}: write it as NAME=VALUE")
        wanted[name.strip()] = value.strip()
    with failing_as(ExitCode.BAD_INPUT, BadProperty, about="--property"):
        return Settings.of(wanted, preset=preset.value)
