"""The command line: `whole_app` holds every command, `run` is what the `quarterdeck` script calls.

Nothing heavy is imported here or at the top of a command's module, and of these modules only the one of the command that is
wanted: so `quarterdeck version`, completion and the first picture of the console come at once.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from quarterdeck import __version__
from quarterdeck.cli.exits import ExitCode, code_of, in_one_line
from quarterdeck.cli.output import flag, say, write_line

MODULES = {
    "console": "console",
    "cluster": "cluster.queries",
    "simulate": "simulate",
    "swarm": "swarm",
    "check": "check",
    "campaign": "spark.campaign",
    "demo": "demo",
    "member": "member",
    "config": "settings",
    "map": "map.operations",
    "journal": "journal",
    "record": "journal",
    "export": "export",
    "audit": "spark.audit",
    "pipeline": "spark.pipeline",
    "plan": "plan",
    "keys": "settings",
    "paths": "settings",
    "web": "web",
}
"""The module of each command, in the order of help. It has a function of the command's name, or a `group` of commands."""

COMPLETION = "_QUARTERDECK_COMPLETE"
"""What a shell sets that asks for completions: of all commands."""

DEFAULT = "console"
"""What is started when no command is given."""


def app_with(names: Iterable[str]) -> typer.Typer:
    """Return the command line with the commands of these names."""
    app = typer.Typer(
        name="quarterdeck",
        help="The operator's console for clusters whose oldest member leads.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(invoke_without_command=True)
    def start_console_by_default(
        context: typer.Context,
        version: Annotated[bool, flag("Print the version, and end.", "--version")] = False,
    ) -> None:
        if version:
            write_line(__version__)
            raise typer.Exit
        if context.invoked_subcommand is None:
            _module(MODULES[DEFAULT]).console()

    @app.command()
    def version() -> None:
        """Print the version."""
        write_line(__version__)

    for name in names:
        module = _module(MODULES[name])
        if (command := getattr(module, name, None)) is None:
            app.add_typer(module.group, name=name)
        else:
            app.command(context_settings=getattr(module, "CONTEXT_SETTINGS", None))(command)
    return app


@cache
def whole_app() -> typer.Typer:
    """Return the command line with all commands."""
    return app_with(MODULES)


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """As much of the command line as these arguments need: one command, or all where its name is not known or help is wanted."""
    if arguments[:1] in (["version"], ["--version"]):
        return app_with(())
    if COMPLETION not in os.environ and (not arguments or arguments[0] in MODULES):
        wanted = arguments[0] if arguments else DEFAULT
        handed_on = [DEFAULT] if wanted == "web" else []  # options that it checks as the console does
        return app_with([wanted, *handed_on])
    return whole_app()


def __getattr__(name: str) -> typer.Typer:
    if name == "app":
        return whole_app()
    raise AttributeError(name)


def _module(name: str) -> Any:
    return import_module(f"quarterdeck.cli.commands.{name}")


def run() -> NoReturn:
    """Run the command line and exit with a code of `ExitCode`. Every foreseen failure is one line on stderr."""
    gc.disable()  # what is imported stays: looking through it for garbage is a tenth of the time to the first picture
    try:
        app = app_for(sys.argv[1:])
        if sys.argv[1:2] not in ([], [DEFAULT]):
            gc.enable()  # the console does so when it is on the screen
        code = app(prog_name="quarterdeck", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as problem:
        say(f"quarterdeck: {in_one_line(problem.format_message())}")
        sys.exit(problem.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:  # the reader has read enough
        _end_output()
        sys.exit(ExitCode.DONE)
    except Exception as problem:
        if (foreseen := code_of(problem)) is None:
            raise
        _end_output()
        say(f"quarterdeck: {in_one_line(problem)}")
        sys.exit(foreseen)
    finally:
        gc.enable()
    sys.exit(code if isinstance(code, int) else ExitCode.DONE)


def _end_output() -> None:
    """Print what is buffered, or let go of it where that fails: it must not complain at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
