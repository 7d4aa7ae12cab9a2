"""`quarterdeck keys`: which key does what in the console, as the registry and the configuration file have it."""

from __future__ import annotations

import typer

from quarterdeck.cli.exits import ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, write_rows

COLUMNS = ("action", "keys", "views", "group", "meaning", "changed")


def keys(output: FormatOption = Format.TABLE) -> None:
    """Print every action of the console with its keys, and whether the configuration file has changed them."""
    from quarterdeck.app.key_map import live_key_map
    from quarterdeck.backend.documents.yaml_document import BadDocument
    from quarterdeck.cli.configuration.user_configuration import UserConfiguration

    with failing_as(ExitCode.BAD_INPUT, BadDocument):
        settings = UserConfiguration().console()
    write_rows((row._asdict() for row in live_key_map(settings.keys)), COLUMNS, output)


def register(app: typer.Typer) -> None:
    app.command()(keys)
