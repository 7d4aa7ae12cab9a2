"""The command line: `app` holds every command, `run` is what the `quarterdeck` script calls.

Nothing heavy is imported here or at the top of a command's module, so that `quarterdeck version` and completion are
instant.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import typer

from quarterdeck import __version__
from quarterdeck.cli.commands import check, config, console, demo, journal, member, record, settings, simulate, swarm
from quarterdeck.cli.commands.cluster import queries as cluster
from quarterdeck.cli.commands.map import operations as map_commands
from quarterdeck.cli.commands.plan import group as plan
from quarterdeck.cli.commands.spark import audit, campaign, pipeline
from quarterdeck.cli.commands.web import command as web
from quarterdeck.cli.exits import ExitCode, in_one_line
from quarterdeck.cli.output import say

app = typer.Typer(
    name="quarterdeck",
    help="The operator's console for clusters whose oldest member leads.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def start_console_by_default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        console.console()


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)


for group in (
    console,
    cluster,
    simulate,
    swarm,
    check,
    campaign,
    demo,
    member,
    config,
    map_commands,
    journal,
    record,
    audit,
    pipeline,
    plan,
    settings,
    web,
):
    group.register(app)


def run() -> NoReturn:
    """Run the command line and exit with a code of `ExitCode`. Every foreseen failure is one line on stderr."""
    try:
        code = app(prog_name="quarterdeck", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as problem:
        say(f"quarterdeck: {in_one_line(problem.format_message())}")
        sys.exit(problem.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # Whoever reads has read enough. What is still buffered must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.DONE)
    sys.exit(code if isinstance(code, int) else ExitCode.DONE)
