"""`quarterdeck web`: the console in a browser on this machine."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from quarterdeck.cli.commands.console import console_settings
from quarterdeck.cli.exits import BadUsage, ExitCode, failing_as
from quarterdeck.cli.output import flag, option

DEFAULT_PORT = 8321
CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}

CONSOLE = (sys.executable, "-P", "-c", "from quarterdeck.cli.main import run; run()", "console")
"""How the console is started whatever the shell finds under `quarterdeck`, and whatever lies in the folder where one is (-P)."""


def web(
    context: typer.Context,
    port: Annotated[
        int, option("Where to serve, on this machine only; 0 for any free port.", min=0, max=65535)
    ] = DEFAULT_PORT,
    write: Annotated[bool, flag("Allow changes; without it the console is read-only.", "--write")] = False,
) -> None:
    """Serve the console to a browser on this machine and print the URL, which works once. Takes the options of `console` too."""
    options = [*context.args, *mode_options(context, write=write)]
    try:
        from quarterdeck.cli.web_server import serve_console
    except ImportError as missing:
        remedy = "install 'quarterdeck[web]' with uv tool, pipx or pip"
        raise BadUsage(f"{missing.name} is missing; {remedy}") from missing
    with failing_as(ExitCode.UNREACHABLE, OSError, about=f"port {port} cannot be served"):
        serve_console((*CONSOLE, *options), port)


def mode_options(context: typer.Context, *, write: bool) -> list[str]:
    """Return the options that say what the console may do. Raises what the console would say of them, before a browser."""
    from quarterdeck.cli.main import app_with

    commands: Any = typer.main.get_command(app_with(["console"]))
    given = commands.commands["console"].make_context("console", list(context.args), parent=context.parent).params
    console_settings(given["theme"])
    if not write:
        return ["--read-only"]
    # A cluster that the console starts itself is there to be changed; one that runs elsewhere takes the word for it.
    return ["--write"] if given["connect"] or given["cluster"] else []
