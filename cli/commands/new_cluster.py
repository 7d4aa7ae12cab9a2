"""Opens the console on a new cluster of this machine, for the commands that do: `console` and `demo`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.cli.commands.run_options import new_run, recording
from quarterdeck.cli.configuration.paths import configuration_file, console_state_file
from quarterdeck.cli.exits import ExitCode, failing_as

if TYPE_CHECKING:
    from quarterdeck.app.actions.action import ViewName
    from quarterdeck.app.console_state import ConsoleSettings
    from quarterdeck.backend.clusters.local import LiveCluster
    from quarterdeck.backend.core.properties import Settings

CLUSTER_NAME = "dev"
CITIES = ("athens", "byzantium", "cyrene", "delphi", "euphesus")
"""Labels of the first members, as in the scripted demos; those after them are called n6, n7 and so on."""
WEB_DRIVER = "textual.drivers.web_driver:WebDriver"
"""What Textual's variable says when a web server runs the console."""


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
) -> None:
    """Open the console on a new cluster in this process, or with `processes` in some of its own; recorded, if `wanted`."""
    from quarterdeck.app.run import run_console
    from quarterdeck.backend.clusters.starting_cluster import StartingCluster
    from quarterdeck.cli.configuration.opening import ProfileClusterOpener

    with recording(journal, new_run(CLUSTER_NAME) if wanted else "", wanted=wanted) as writer:

        def make() -> LiveCluster:
            from quarterdeck.backend.clusters.local import LocalCluster, ProcessCluster

            kind = ProcessCluster if processes else LocalCluster
            return kind(labels, name=CLUSTER_NAME, settings=settings, journal=writer)

        cluster = StartingCluster(labels, make, name=CLUSTER_NAME, writable=writable)
        try:
            run_console(
                cluster,
                cluster.started,
                cluster_opener=ProfileClusterOpener(write=False),
                settings=looks or console_settings(None),
                state_file=console_state_file(),
                view=view,
            )
        finally:
            cluster.close()


def console_settings(theme: str | None) -> ConsoleSettings:
    """How the user wants the console, with the `theme` of the command line before that of the file. Raises `CommandFailed`."""
    from quarterdeck.app.console_state import ConsoleSettings
    from quarterdeck.app.themes import NoSuchTheme, theme_called

    settings = ConsoleSettings()
    if configuration_file().exists():  # else nothing is imported to read it
        from quarterdeck.backend.documents.yaml_document import BadDocument
        from quarterdeck.cli.configuration.user_configuration import UserConfiguration

        with failing_as(ExitCode.BAD_INPUT, BadDocument):
            settings = UserConfiguration().console()
    if theme is None:
        return settings
    with failing_as(ExitCode.BAD_INPUT, NoSuchTheme, about="--theme"):
        return replace(settings, theme=theme_called(theme).name)


def has_terminal() -> bool:
    """Whether there is a screen and a keyboard: stdout and stdin. Where stderr goes is no matter.

    In a browser, the page is both, and Textual is told so by its own variable.
    """
    if os.environ.get("TEXTUAL_DRIVER") == WEB_DRIVER:
        return True
    streams = (sys.stdin, sys.stdout)
    return os.environ.get("TERM") != "dumb" and all(stream is not None and stream.isatty() for stream in streams)
