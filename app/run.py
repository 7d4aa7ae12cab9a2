"""Runs the console until the operator quits, a signal ends it, or its terminal is gone. Its clusters are closed in any case."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from concurrent.futures import Future
from pathlib import Path

from quarterdeck.app.actions.action import ViewName
from quarterdeck.app.console import Console
from quarterdeck.app.console_interface import ClusterOpener
from quarterdeck.app.console_state import ConsoleSettings
from quarterdeck.backend.clusters.cluster import Cluster

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

SIGNALLED = 128
"""The exit code after a signal is this plus the signal's number."""

COLLECTING_AFTER_SECONDS = 2.0
"""When the console is on the screen and the members of a cluster that starts with it have been imported."""

LOOK_SECONDS = 1.0
"""The period at which the terminal is checked: one that was closed need not report it."""


def run_console(
    cluster: Cluster,
    starting: Future[None] | None = None,
    *,
    cluster_opener: ClusterOpener | None = None,
    settings: ConsoleSettings | None = None,
    state_file: Path | None = None,
    at_us: int | None = None,
    view: ViewName | None = None,
    load: str = "",
    expected_members: int | None = None,
) -> None:
    """Show `cluster`, whose members are `starting`, until the operator quits. The caller closes it.

    The console opens on `view`, if one is given. With `at_us`, that moment of the run is shown once it has come. Once the members
    have started, the console puts `load` on them, written as after `:load`. The operator accepts `expected_members` as the size.

    Raises:
        SystemExit: The console ended otherwise: by a signal, without a terminal, or with a failure of its own.
    """
    console = Console(cluster, starting, cluster_opener=cluster_opener, settings=settings, state_file=state_file)
    console.session.accept_size(expected_members)
    if at_us is not None:
        console.session.playhead.wait_for(at_us)
    if view is not None:
        console.call_later(console.goto, view)
    if load and starting is not None:
        starting.add_done_callback(lambda started: _begin_load(console, started, load))
    try:
        asyncio.run(_run(console))
    finally:
        console.close_owned()
    if console.return_code:
        raise SystemExit(console.return_code)


def _begin_load(console: Console, started: Future[None], load: str) -> None:
    """Put `load` on the members that have `started`. Called from any thread."""
    if not started.cancelled() and started.exception() is None:
        console.call_later(console.begin_load, load)


async def _run(console: Console) -> None:
    loop = asyncio.get_running_loop()
    for number in ENDING_SIGNALS:
        loop.add_signal_handler(number, console.exit, None, SIGNALLED + number)
    if sys.__stdin__ is not None and sys.__stdin__.isatty():  # not in a browser
        _look_at_terminal(console, loop, sys.__stdin__.fileno())
    loop.call_later(COLLECTING_AFTER_SECONDS, _collect_garbage)
    try:
        await console.run_async(mouse=console.settings.mouse)
    finally:
        if (console.return_code or 0) > SIGNALLED:  # clusters and journals are still to be closed: one signal is enough
            for number in ENDING_SIGNALS:
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)


def _collect_garbage() -> None:
    """Begin to collect garbage; what is loaded by now stays, and need not be looked through while the operator types."""
    gc.freeze()
    gc.enable()


def _look_at_terminal(console: Console, loop: asyncio.AbstractEventLoop, keyboard: int) -> None:
    """End the console when its terminal is gone: Textual would look for keys for ever."""
    if os.isatty(keyboard):
        loop.call_later(LOOK_SECONDS, _look_at_terminal, console, loop, keyboard)
    else:
        console.exit(None, SIGNALLED + signal.SIGHUP)
