"""`quarterdeck keys`, `paths` and `config`: keys of the console, where things are kept, and configuration files of members."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from quarterdeck.cli.configuration.paths import APPLICATION, configuration_file, console_state_file, journal_root
from quarterdeck.cli.output import Format, FormatOption, argument, say, write_line, write_rows, write_text

KEY_COLUMNS = ("action", "keys", "views", "group", "meaning", "changed", "words")


def keys(output: FormatOption = Format.TABLE) -> None:
    """Print all keys of the console: every action with its keys and words, and whether the configuration has changed them."""
    from quarterdeck.app.key_map import live_key_map
    from quarterdeck.cli.configuration.user_configuration import UserConfiguration

    rows = live_key_map(UserConfiguration().console().keys)
    write_rows((row._asdict() for row in rows), KEY_COLUMNS, output)


def paths(output: FormatOption = Format.TABLE) -> None:
    """Print where configuration, state, journals and caches are kept."""
    import platformdirs

    places = {
        "config": platformdirs.user_config_path(APPLICATION),
        "configuration file": configuration_file(),
        "state": platformdirs.user_state_path(APPLICATION),
        "console state": console_state_file(),
        "journals": journal_root(),
        "cache": platformdirs.user_cache_path(APPLICATION),
    }
    write_rows(({"what": what, "path": str(path)} for what, path in places.items()), ("what", "path"), output)


group = typer.Typer(
    help="Check configuration files, and print the JSON Schemas of all files that people write.", rich_markup_mode=None
)


@group.command("check")
def check(
    files: Annotated[list[Path], argument("Its configuration, in Hazelcast's YAML.", "FILE")],
) -> None:
    """Read files as a member reads the one that it is started with, and start nothing.

    Exits with 2 when a member would not start with one: with file, line, field, and what to do. What it would only warn of is
    printed as well.
    """
    from quarterdeck.backend.live.security.tls import Tls
    from quarterdeck.backend.service.configuration.sources import process_configuration

    for file in files:
        configuration = process_configuration(file, {})
        if (tls := configuration.security.wire.tls) is not None:
            Tls(tls)
        for warning in configuration.warnings:
            say(f"warning: {warning}")
        write_line(f"{file}: a member starts with it, as {configuration.member.label or configuration.member.address}")


@group.command("schema")
def schema(
    kind: Annotated[FileKind, argument("A scenario, a model, a member's configuration, or the user's.")],
) -> None:
    """Print the JSON Schema of a kind of file, with which editors complete and check it while it is written.

    Keep it in a file, and begin your own with `# yaml-language-server: $schema=FILE`.
    """
    write_text(json.dumps(schema_of(kind), indent=1) + "\n")


DIALECT = "https://json-schema.org/draft/2020-12/schema"


FileKind = Literal["scenario", "model", "member", "user"]


def schema_of(kind: FileKind) -> dict[str, Any]:
    """Return the schema of this kind of file. Checks that look at several fields at once are not part of it."""
    from pydantic import BaseModel, create_model

    from quarterdeck.backend.scenarios.format.scenario import Scenario
    from quarterdeck.backend.service.configuration.configuration_file import MemberFile
    from quarterdeck.backend.simulation.model_checking.reading import ModelFile
    from quarterdeck.cli.configuration.console_section import ConsoleSection
    from quarterdeck.cli.configuration.user_configuration import UserDocument

    whole = create_model("UserFile", __base__=UserDocument, console=(ConsoleSection, ConsoleSection()))
    files: dict[FileKind, type[BaseModel]]
    files = {"scenario": Scenario, "model": ModelFile, "member": MemberFile, "user": whole}
    return {"$schema": DIALECT, **files[kind].model_json_schema(), "title": f"Quarterdeck: {kind}"}
