"""`quarterdeck keys` and `quarterdeck paths`: which key does what in the console, and where things are kept."""

from __future__ import annotations

import typer

from quarterdeck.cli.configuration.paths import APPLICATION, configuration_file, console_state_file, journal_root
from quarterdeck.cli.exits import ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, write_rows

KEY_COLUMNS = ("action", "keys", "views", "group", "meaning", "changed", "words")


def keys(output: FormatOption = Format.TABLE) -> None:
    """Print all keys of the console: every action with its keys and words, and whether the configuration has changed them."""
    from quarterdeck.app.key_map import live_key_map
    from quarterdeck.backend.documents.yaml_document import BadDocument
    from quarterdeck.cli.configuration.user_configuration import UserConfiguration

    with failing_as(ExitCode.BAD_INPUT, BadDocument):
        settings = UserConfiguration().console()
    write_rows((row._asdict() for row in live_key_map(settings.keys)), KEY_COLUMNS, output)


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


def register(app: typer.Typer) -> None:
    """Add both commands."""
    app.command()(keys)
    app.command()(paths)
