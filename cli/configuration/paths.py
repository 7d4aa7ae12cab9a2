"""Where Quarterdeck keeps things, and `quarterdeck paths`, which prints it."""

from __future__ import annotations

from pathlib import Path

import typer

from quarterdeck.cli.output import Format, FormatOption, write_rows

APPLICATION = "quarterdeck"


def journal_root() -> Path:
    """The folder of journals when a command is not told another."""
    from platformdirs import user_state_path

    return user_state_path(APPLICATION) / "journals"


def configuration_file() -> Path:
    """Where the user's own settings stand, if there are any."""
    from platformdirs import user_config_path

    return user_config_path(APPLICATION) / "config.yaml"


def console_state_file() -> Path:
    """Where the console remembers how views were arranged and what was typed."""
    from platformdirs import user_state_path

    return user_state_path(APPLICATION) / "console.json"


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
    app.command()(paths)
