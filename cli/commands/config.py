"""`quarterdeck config`: configuration files of members, without starting one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.cli.exits import ExitCode, failing_as
from quarterdeck.cli.output import say

group = typer.Typer(help="Look at the configuration file of a member.", rich_markup_mode=None)


@group.command("check")
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Its configuration, in Hazelcast's YAML.")],
) -> None:
    """Read files as a member reads the one that it is started with, and start nothing.

    Exits with 2 when a member would not start with one: with file, line, field, and what to do. What it would only warn of is
    told as well.
    """
    from quarterdeck.backend.live.security.tls import BadCertificate, Tls
    from quarterdeck.backend.service.configuration.sources import BadConfiguration, check_file
    from quarterdeck.backend.service.process.member_service import wire_security

    for file in files:
        with failing_as(ExitCode.BAD_INPUT, BadConfiguration, BadCertificate):
            configuration = check_file(file)
            tls = wire_security(configuration.security).tls
            if tls is not None:
                Tls(tls)
        for warning in configuration.warnings:
            say(f"warning: {warning}")
        print(f"{file}: a member starts with it, as {configuration.label or configuration.address}")


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(group, name="config")
