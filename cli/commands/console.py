"""`quarterdeck console`: the console on top of a live cluster on this machine, or of one that runs elsewhere."""

from __future__ import annotations

import gc
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quarterdeck.cli.commands.new_cluster import CITIES, console_settings, has_terminal, open_new_cluster
from quarterdeck.cli.commands.replay import Recording, ZoneOption, opened_recording
from quarterdeck.cli.commands.run_options import (
    JournalOption,
    LogOption,
    NoJournalOption,
    ProcessesOption,
    write_log,
)
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.configuration.paths import console_state_file
from quarterdeck.cli.exits import CommandFailed, ExitCode, failing_as

if TYPE_CHECKING:
    from quarterdeck.backend.core.properties import PropertyValue, Settings
from typing import TYPE_CHECKING

from quarterdeck.cli.commands.simulate import load

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.simulated.simulated_cluster import SimulatedCluster


HEADLESS_DEMO = "split"


class PresetName(StrEnum):
    TRAINING = "training"
    PRODUCTION = "production"


@with_connection
def console(
    connection: ConnectionTarget,
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
    write: Annotated[bool, typer.Option("--write", help="With --connect or --cluster: allow changes.")] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Allow no changes, not even in a cluster that is started here.")
    ] = False,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Open a recorded run: a run's folder in a journal, one file, or members' logs."
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="With --replay of logs: keep reading as they grow.")] = False,
    zone: ZoneOption = "",
    at: Annotated[
        str | None, typer.Option(metavar="MOMENT", help="With --replay: seconds, or MEMBER#NUMBER of an event.")
    ] = None,
    simulate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|DIR", help="Open a scenario, or a copy that `cluster fork` wrote, in simulated time."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="With --simulate: the same seed gives the same run.")] = None,
    speed: Annotated[
        float | None, typer.Option(metavar="X", help="With --simulate: seconds of the run in one second.")
    ] = None,
    theme: Annotated[
        str | None, typer.Option(metavar="NAME", help="Colours: dark, light, high-contrast, deuteranopia or ansi.")
    ] = None,
) -> None:
    """Open the console on a new live cluster, or on a running one.

    Without a terminal, run the demo `split` instead of the former and report on stdout.
    """
    if write and read_only:
        raise CommandFailed(ExitCode.BAD_INPUT, "--write and --read-only: give one of them")
    for option, given, wanted, needed in (
        ("--at", at, replay, "--replay"), ("--follow", follow or None, replay, "--replay"),
        ("--zone", zone or None, replay, "--replay"),
        ("--seed", seed, simulate, "--simulate"), ("--speed", speed, simulate, "--simulate"),
    ):  # fmt: skip
        if given is not None and wanted is None:
            raise CommandFailed(ExitCode.BAD_INPUT, f"{option} is for a run that is opened with {needed}")
    if replay is not None or simulate is not None:
        if any((processes, properties, journal, log, write, connection.urls, replay and simulate)):
            problem = "--replay and --simulate start no members; leave out all that makes or reaches some"
            raise CommandFailed(ExitCode.BAD_INPUT, problem)
        replayed = None if replay is None else Recording(replay, at, follow, zone)
        open_run(replayed, simulate, seed, speed, writable=not read_only, theme=theme)
        return
    if connection.urls:
        here_only = (processes, properties, journal, log)
        if any(here_only):
            problem = "--processes, --property, --journal and --log are for a cluster that is started here"
            raise CommandFailed(ExitCode.BAD_INPUT, problem)
        open_running_cluster(connection, write=write, theme=theme)
        return
    if write:
        raise CommandFailed(ExitCode.BAD_INPUT, "--write is for a running cluster; name it with --connect or --cluster")
    settings = read_settings(properties or [], preset)
    looks = console_settings(theme)
    write_log(log)
    if not has_terminal():
        run_headless(journal, wanted=not no_journal)
        return
    open_new_cluster(
        member_labels(members),
        settings,
        looks,
        journal,
        wanted=not no_journal,
        processes=processes,
        writable=not read_only,
    )


def open_running_cluster(connection: ConnectionTarget, *, write: bool, theme: str | None = None) -> None:
    """Open the console on the cluster that `connection` names; the cluster goes on when the console ends."""
    if write:
        connection.require_writable()
    if not has_terminal():
        raise CommandFailed(
            ExitCode.BAD_INPUT, "no terminal here; see `quarterdeck cluster watch` and `cluster status`"
        )
    from quarterdeck.app.run import run_console
    from quarterdeck.cli.configuration.opening import ProfileClusterOpener, open_cluster, wait_until_met

    looks = console_settings(theme)
    cluster = open_cluster(connection, write=write)
    try:
        wait_until_met(cluster)
        run_console(
            cluster,
            cluster.started,
            cluster_opener=ProfileClusterOpener(write=write),
            settings=looks,
            state_file=console_state_file(),
        )
    finally:
        cluster.close()


def open_run(
    replayed: Recording | None,
    simulate: Path | None,
    seed: int | None,
    speed: float | None,
    *,
    writable: bool,
    theme: str | None,
) -> None:
    """Open the console on the recording `replayed` or on the simulated run `simulate`.

    Raises:
        CommandFailed: It cannot be opened.
    """
    if not has_terminal():
        raise CommandFailed(
            ExitCode.BAD_INPUT, "no terminal here; see `quarterdeck journal cat` and `quarterdeck simulate`"
        )
    from quarterdeck.app.run import run_console
    from quarterdeck.cli.configuration.opening import ProfileClusterOpener

    looks, cluster_opener, state = console_settings(theme), ProfileClusterOpener(write=False), console_state_file()
    if replayed is not None:
        recorded, at_us = opened_recording(replayed)
        try:
            run_console(recorded, cluster_opener=cluster_opener, settings=looks, state_file=state, at_us=at_us)
        finally:
            recorded.close()
        return
    assert simulate is not None
    simulated = simulated_cluster(simulate, seed, speed)
    simulated.writable = writable
    try:
        run_console(simulated, cluster_opener=cluster_opener, settings=looks, state_file=state)
    finally:
        simulated.close()


def register(app: typer.Typer) -> None:
    app.command()(console)


def run_headless(journal: Path | None, *, wanted: bool) -> None:
    """Run the demo `split` on live members, telling each step on stdout. Exits with 1 when it misses an expectation."""
    from quarterdeck.cli.commands.demo import play, scenario_of

    gc.enable()  # nothing is painted that it could delay
    print(f"No terminal here: running the demo `{HEADLESS_DEMO}` on a live cluster without a screen.", flush=True)
    outcome = play(scenario_of(HEADLESS_DEMO), HEADLESS_DEMO, lambda line: print(line, flush=True), journal, wanted)
    print("passed" if outcome.passed else "failed", flush=True)
    if not outcome.passed:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def member_labels(count: int) -> tuple[str, ...]:
    return (*CITIES, *(f"n{number}" for number in range(len(CITIES) + 1, count + 1)))[:count]


def read_settings(properties: list[str], preset: PresetName) -> Settings:
    """Return the preset with ``name=value`` texts on top.

    Raises:
        CommandFailed: A text cannot be taken.
    """
    from quarterdeck.backend.core.properties import BadProperty, Settings

    wanted: dict[str, PropertyValue] = {}
    for text in properties:
        name, equals, value = text.partition("=")
        if not equals:
            raise CommandFailed(ExitCode.BAD_INPUT, f"--property {text}: write it as NAME=VALUE")
        wanted[name.strip()] = value.strip()
    with failing_as(ExitCode.BAD_INPUT, BadProperty, about="--property"):
        return Settings.of(wanted, preset=preset.value)


DEFAULT_SPEED = 1.0


def simulated_cluster(file: Path, seed: int | None, speed: float | None) -> SimulatedCluster:
    """Return the scenario in `file`, or the copy of a cluster in that folder, in simulated time.

    Raises:
        CommandFailed: It cannot be read.
    """
    from quarterdeck.backend.clusters.simulated.copied_run import is_copy
    from quarterdeck.backend.clusters.simulated.simulated_cluster import SimulatedCluster
    from quarterdeck.backend.picture.replay.playhead import BadSpeed

    if is_copy(file):
        return copied_cluster(file, seed, speed)
    scenario = load(file)
    with failing_as(ExitCode.BAD_INPUT, BadSpeed, about="--speed"):
        return SimulatedCluster(scenario, seed or 0, name=file.stem, speed=DEFAULT_SPEED if speed is None else speed)


def copied_cluster(folder: Path, seed: int | None, speed: float | None) -> SimulatedCluster:
    """Return the copy of a cluster in `folder`, with its past.

    Raises:
        CommandFailed: It cannot be read.
    """
    from quarterdeck.backend.clusters.recorded.recorded_cluster import RecordedCluster
    from quarterdeck.backend.clusters.simulated.copied_cluster import CopiedCluster
    from quarterdeck.backend.clusters.simulated.copied_run import BadCopy, read_copy
    from quarterdeck.backend.journal.files import NoJournal
    from quarterdeck.backend.picture.replay.playhead import BadSpeed

    with failing_as(ExitCode.BAD_INPUT, BadCopy, OSError, about="--simulate"):
        snapshot = read_copy(folder)
    try:
        past = RecordedCluster(folder)
    except NoJournal:  # nothing had been recorded, or nothing was kept
        past = None
    copy = CopiedCluster(snapshot, seed=1 if seed is None else seed, past=past)
    with failing_as(ExitCode.BAD_INPUT, BadSpeed, about="--speed"):
        copy.set_speed(DEFAULT_SPEED if speed is None else speed)
    return copy
