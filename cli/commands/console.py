"""`quarterdeck console`: the console on top of a live cluster on this machine, or of one that runs elsewhere."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec.structs import replace

from quarterdeck.cli.commands import run_options
from quarterdeck.cli.commands.recording import AtOption, RecordingTarget, ReplayOption, RunOption
from quarterdeck.cli.commands.simulate import play, scenario_of
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.configuration.paths import configuration_file, console_state_file
from quarterdeck.cli.exits import BadUsage, ExitCode, fail_if, failing_as
from quarterdeck.cli.output import flag, option, write_line, write_text

if TYPE_CHECKING:
    from quarterdeck.app.actions.action import ViewName
    from quarterdeck.app.console_state import ConsoleSettings
    from quarterdeck.backend.clusters.cluster import Cluster
    from quarterdeck.backend.clusters.local import LiveCluster
    from quarterdeck.backend.clusters.simulated.simulated_cluster import SimulatedCluster
    from quarterdeck.backend.core.properties import Settings


PresetName = Literal["training", "production"]
HEADLESS_DEMO = "split"
DEFAULT_SPEED = 1.0
CLUSTER_NAME = "dev"
CITIES = ("athens", "byzantium", "cyrene", "delphi", "euphesus")
"""Labels of the first members, as in the scripted demos; those after them are called n6, n7 and so on."""
CALM_LOAD = "10 keys=500 reads=0.5 map=orders"
"""The load on a new cluster, so that its tables, migrations and data show something."""
WEB_DRIVER = "textual.drivers.web_driver:WebDriver"
"""What Textual's variable says when a web server runs the console."""


@with_connection
def console(
    connection: ConnectionTarget,
    members: Annotated[int, option("How many members to start.", min=1, max=100)] = len(CITIES),
    preset: Annotated[
        PresetName, option("Timing properties: seconds for training, or the documented defaults.")
    ] = "training",
    properties: run_options.PropertyOption = None,
    empty: Annotated[bool, flag("Start members without data: no map is written to.", "--empty")] = False,
    journal: run_options.JournalOption = None,
    no_journal: run_options.NoJournalOption = False,
    processes: run_options.ProcessesOption = False,
    log: run_options.LogOption = None,
    write: Annotated[bool, flag("With --connect or --cluster: allow changes.", "--write")] = False,
    read_only: Annotated[
        bool, flag("Allow no changes, not even in a cluster that is started here.", "--read-only")
    ] = False,
    replay: ReplayOption = None,
    follow: Annotated[bool, flag("With --replay of logs: keep reading as they grow.", "--follow")] = False,
    zone: run_options.ZoneOption = "",
    date: run_options.DateOption = "",
    at: AtOption = None,
    run: RunOption = "",
    simulate: Annotated[
        Path | None, option("Open a scenario, or a copy that `cluster fork` wrote, in simulated time.", "FILE|DIR")
    ] = None,
    seed: Annotated[int | None, option("With --simulate: the same seed gives the same run.")] = None,
    speed: Annotated[float | None, option("With --simulate: seconds of the run in one second.", "X")] = None,
    expect_members: run_options.ExpectMembersOption = None,
    theme: Annotated[str | None, option("Colours: dark, light, high-contrast, deuteranopia or ansi.", "NAME")] = None,
) -> None:
    """Open the console on a new live cluster, or on a running one.

    Without a terminal, run the demo `split` instead of the former and report on stdout.
    """
    if write and read_only:
        raise BadUsage("--write and --read-only: give one of them")
    for name, given, wanted, needed in (
        ("--at", at, replay, "--replay"), ("--follow", follow or None, replay, "--replay"),
        ("--zone", zone or None, replay, "--replay"), ("--date", date or None, replay, "--replay"),
        ("--run", run or None, replay, "--replay"),
        ("--seed", seed, simulate, "--simulate"), ("--speed", speed, simulate, "--simulate"),
    ):  # fmt: skip
        if given is not None and wanted is None:
            raise BadUsage(f"{name} is for a run that is opened with {needed}")
    if replay is not None or simulate is not None:
        if any((processes, properties, empty, journal, log, write, connection.urls, replay and simulate)):
            problem = "--replay and --simulate start no members; leave out all that makes or reaches some"
            raise BadUsage(problem)
        _require_terminal("see `quarterdeck journal cat` and `quarterdeck simulate`")
        if replay is not None:
            recorded, at_us = RecordingTarget(replay, at, run, zone, date).opened(follow=follow)
            with closing(recorded):
                show(recorded, console_settings(theme), at_us=at_us, expected_members=expect_members)
        else:
            assert simulate is not None
            with closing(simulated_cluster(simulate, seed, speed)) as simulated:
                simulated.writable = not read_only
                show(simulated, console_settings(theme))
        return
    if connection.urls:
        here_only = (processes, properties, empty, journal, log)
        if any(here_only):
            problem = "--processes, --property, --empty, --journal and --log are for a cluster that is started here"
            raise BadUsage(problem)
        open_running_cluster(connection, write=write, theme=theme, expected_members=expect_members)
        return
    if write:
        raise BadUsage("--write is for a running cluster; name it with --connect or --cluster")
    settings = read_settings(properties or [], preset)
    looks = console_settings(theme)
    run_options.write_log(log)
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
        load="" if empty else CALM_LOAD,
    )


def open_running_cluster(
    connection: ConnectionTarget, *, write: bool, theme: str | None = None, expected_members: int | None = None
) -> None:
    """Open the console on the cluster that `connection` names; the cluster goes on when the console ends."""
    if write:
        connection.require_writable()
    _require_terminal("see `quarterdeck cluster watch` and `cluster status`")
    from quarterdeck.cli.configuration.opening import open_cluster, wait_until_met

    looks = console_settings(theme)
    with closing(open_cluster(connection, write=write)) as cluster:
        wait_until_met(cluster)
        show(cluster, looks, cluster.started, write=write, expected_members=expected_members)


def show(
    cluster: Cluster,
    looks: ConsoleSettings,
    started: Future[None] | None = None,
    *,
    write: bool = False,
    at_us: int | None = None,
    view: ViewName | None = None,
    load: str = "",
    expected_members: int | None = None,
) -> None:
    """Show `cluster` in the console, at the moment `at_us` of a recording; with `write` others may be opened for changes."""
    from quarterdeck.app.run import run_console
    from quarterdeck.cli.configuration.opening import ProfileClusterOpener

    run_console(
        cluster,
        started,
        cluster_opener=ProfileClusterOpener(write=write),
        settings=looks,
        state_file=console_state_file(),
        at_us=at_us,
        view=view,
        load=load,
        expected_members=expected_members,
    )


def _require_terminal(instead: str) -> None:
    if not has_terminal():
        raise BadUsage(f"no terminal here; {instead}")


def run_headless(journal: Path | None, *, wanted: bool) -> None:
    """Run the demo `split` on live members and report each step on stdout. Exit with 1 when it misses an expectation."""
    gc.enable()  # nothing is painted that it could delay
    write_line(f"No terminal here: running the demo `{HEADLESS_DEMO}` on a live cluster without a screen.")
    outcome = play(scenario_of(HEADLESS_DEMO), HEADLESS_DEMO, lambda line: write_text(f"{line}\n"), journal, wanted)
    write_line("passed" if outcome.passed else "failed")
    fail_if(not outcome.passed)


def member_labels(count: int) -> tuple[str, ...]:
    return (*CITIES, *(f"n{number}" for number in range(len(CITIES) + 1, count + 1)))[:count]


def read_settings(properties: list[str], preset: PresetName) -> Settings:
    """Return the preset with ``name=value`` texts on top.

    Raises:
        CommandFailed: A text cannot be taken.
    """
    from quarterdeck.backend.core.properties import BadProperty, Settings

    wanted = run_options.named_values(properties)
    with failing_as(ExitCode.BAD_INPUT, BadProperty, about="--property"):
        return Settings.of(wanted, preset=preset)


def simulated_cluster(file: Path, seed: int | None, speed: float | None) -> SimulatedCluster:
    """Return the scenario in `file`, or the copy of a cluster in that folder with its past, in simulated time.

    Raises:
        CommandFailed: It cannot be read.
    """
    from quarterdeck.backend.clusters.recorded.recorded_cluster import RecordedCluster
    from quarterdeck.backend.clusters.simulated.copied_cluster import BadCopy, CopiedCluster, is_copy, read_copy
    from quarterdeck.backend.clusters.simulated.simulated_cluster import SimulatedCluster
    from quarterdeck.backend.journal.files import NoJournal
    from quarterdeck.backend.picture.replay.tape import BadSpeed, checked_speed
    from quarterdeck.backend.scenarios.format.reading import load_scenario

    with failing_as(ExitCode.BAD_INPUT, BadSpeed, about="--speed"):
        speed = checked_speed(DEFAULT_SPEED if speed is None else speed)
    if not is_copy(file):
        return SimulatedCluster(load_scenario(file), seed or 0, name=file.stem, speed=speed)
    with failing_as(ExitCode.BAD_INPUT, BadCopy, OSError, about="--simulate"):
        snapshot = read_copy(file)
    try:
        past = RecordedCluster(file)
    except NoJournal:  # nothing had been recorded, or nothing was kept
        past = None
    copy = CopiedCluster(snapshot, seed=1 if seed is None else seed, past=past)
    copy.set_speed(speed)
    return copy


def open_new_cluster(
    labels: Sequence[str] = CITIES,
    settings: Settings | None = None,
    looks: ConsoleSettings | None = None,
    journal: Path | None = None,
    *,
    wanted: bool = True,
    processes: bool = False,
    writable: bool = True,
    view: ViewName | None = None,
    load: str = "",
) -> None:
    """Open the console on a new cluster in this process, or with `processes` in some of its own; recorded, if `wanted`.

    The console puts `load` on it, written as after `:load`.
    """
    from quarterdeck.backend.clusters.starting_cluster import StartingCluster

    with run_options.recording(journal, run_options.new_run(CLUSTER_NAME) if wanted else "", wanted=wanted) as writer:

        def make() -> LiveCluster:
            from quarterdeck.backend.clusters.local import LocalCluster, ProcessCluster

            kind = ProcessCluster if processes else LocalCluster
            return kind(labels, name=CLUSTER_NAME, settings=settings, journal=writer)

        with closing(StartingCluster(labels, make, name=CLUSTER_NAME, writable=writable)) as cluster:
            show(cluster, looks or console_settings(None), cluster.started, view=view, load=load)


def console_settings(theme: str | None) -> ConsoleSettings:
    """Return how the user wants the console; the `theme` of the command line goes before that of the file."""
    from quarterdeck.app.console_state import ConsoleSettings
    from quarterdeck.app.themes import NoSuchTheme, theme_called

    settings = ConsoleSettings()
    if configuration_file().exists():  # else nothing is imported to read it
        from quarterdeck.cli.configuration.user_configuration import UserConfiguration

        settings = UserConfiguration().console()
    if theme is None:
        return settings
    with failing_as(ExitCode.BAD_INPUT, NoSuchTheme, about="--theme"):
        return replace(settings, theme=theme_called(theme).name)


def has_terminal() -> bool:
    """Return whether there is a screen and a keyboard: stdout and stdin, or the page of a browser.

    In a browser, a variable of Textual's own says so.
    """
    if os.environ.get("TEXTUAL_DRIVER") == WEB_DRIVER:
        return True
    streams = (sys.stdin, sys.stdout)
    return os.environ.get("TERM") != "dumb" and all(stream is not None and stream.isatty() for stream in streams)
