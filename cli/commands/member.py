"""`quarterdeck member`: one member as a process of its own, for whoever starts processes."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quarterdeck.cli.commands.console import PresetName
from quarterdeck.cli.exits import CommandFailed, ExitCode, failing_as

if TYPE_CHECKING:
    from quarterdeck.backend.service.configuration.sources import Override

group = typer.Typer(help="Run one member.", rich_markup_mode=None)


class LogFormat(StrEnum):
    CONSOLE = "console"
    JSON = "json"


@group.command("start")
def start(
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Its configuration, in Hazelcast's YAML.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="LABEL", help="What people call this member.")] = None,
    cluster_name: Annotated[str | None, typer.Option(metavar="NAME", help="The cluster it belongs to.")] = None,
    port: Annotated[int | None, typer.Option(help="Its port, for members and for HTTP; it takes no other.")] = None,
    bind: Annotated[str | None, typer.Option(metavar="HOST", help="Where to listen; loopback by default.")] = None,
    public_address: Annotated[
        str | None, typer.Option(metavar="HOST", help="The address that others call, if it listens at another one.")
    ] = None,
    join: Annotated[
        list[str] | None, typer.Option(metavar="HOST[:PORT]", help="Where to look for the cluster; may be repeated.")
    ] = None,
    rest_port: Annotated[int | None, typer.Option(help="Serve HTTP at this port too.")] = None,
    properties: Annotated[
        list[str] | None, typer.Option("--property", metavar="NAME=VALUE", help="Set a hazelcast.* property.")
    ] = None,
    preset: Annotated[PresetName | None, typer.Option(help="Timing properties to begin with.")] = None,
    lite: Annotated[bool, typer.Option("--lite", help="Make it a lite member, which holds no data.")] = False,
    zone: Annotated[str | None, typer.Option(help="Its zone: a rack, a room, or whatever else fails as one.")] = None,
    journal: Annotated[Path | None, typer.Option(metavar="DIR", help="Record into this folder.")] = None,
    run: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name of the recorded run; the cluster's name by default.")
    ] = None,
    log_format: Annotated[
        LogFormat | None, typer.Option(help="For people, or as one JSON object on each line.")
    ] = None,
    log_level: Annotated[str | None, typer.Option(metavar="LEVEL", help="DEBUG, INFO, WARNING or ERROR.")] = None,
    ready_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file that it writes when it has joined and removes when it has left."),
    ] = None,
    allow_faults: Annotated[
        bool,
        typer.Option("--allow-faults", help="Accept injected faults from users with the role fault, for training."),
    ] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every change over HTTP.")] = False,
    open_to_all: Annotated[
        str | None,
        typer.Option(metavar="WORDS", help="Listen beyond this machine although no credentials are needed."),
    ] = None,
) -> None:
    """Run a member until it is told to leave (SIGTERM; twice: at once). Its log goes to stderr.

    A flag goes before an environment variable (HZ_…, QUARTERDECK_…), that before the file. Exits with 0 when it has left, 1
    when it has crashed, 2 for a bad configuration, 3 when its port is taken or no cluster would have it.
    """
    from quarterdeck.backend.service.configuration.sources import BadConfiguration, Override, process_configuration
    from quarterdeck.backend.service.process.foreground_member import CannotRun, run_member

    network = ("hazelcast", "network")
    texts: list[tuple[str, tuple[str, ...], object]] = [
        ("--name", ("hazelcast", "instance-name"), name),
        ("--cluster-name", ("hazelcast", "cluster-name"), cluster_name),
        ("--port", (*network, "port", "port"), port),
        ("--port", (*network, "port", "auto-increment"), None if port is None else False),
        ("--bind", ("quarterdeck", "bind"), bind),
        ("--public-address", (*network, "public-address"), public_address),
        ("--join", (*network, "join", "tcp-ip", "member-list"), ",".join(join) if join else None),
        ("--rest-port", (*network, "rest-api", "port"), rest_port),
        ("--preset", ("quarterdeck", "preset"), preset),
        ("--lite", ("hazelcast", "lite-member", "enabled"), lite or None),
        ("--zone", ("hazelcast", "member-attributes", "zone"), zone),
        ("--journal", ("quarterdeck", "journal"), journal),
        ("--run", ("quarterdeck", "run"), run),
        ("--log-format", ("quarterdeck", "log", "format"), log_format),
        ("--log-level", ("quarterdeck", "log", "level"), log_level),
        ("--allow-faults", ("quarterdeck", "allow-faults"), allow_faults or None),
        ("--read-only", ("quarterdeck", "read-only"), read_only or None),
        ("--open-to-all", ("quarterdeck", "security", "open-to-all"), open_to_all),
    ]
    given = [Override(place, value, flag) for flag, place, value in texts if value is not None]
    given += [_property(text) for text in properties or ()]
    with failing_as(ExitCode.BAD_INPUT, BadConfiguration):
        configuration = process_configuration(config, os.environ, given)
    try:
        end = run_member(configuration, ready_file)
    except CannotRun as problem:
        raise CommandFailed(ExitCode(problem.end), str(problem)) from problem
    if end:
        raise typer.Exit(end)


def _property(text: str) -> Override:
    from quarterdeck.backend.service.configuration.sources import PROPERTY_PLACE, Override

    name, equals, value = text.partition("=")
    if not equals:
        raise CommandFailed(ExitCode.BAD_INPUT, f"--property {text}: write it as NAME=VALUE")
    return Override((*PROPERTY_PLACE, name.strip()), value.strip(), "--property")
