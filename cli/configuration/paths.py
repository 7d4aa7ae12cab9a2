"""Where Quarterdeck keeps configuration, state and journals."""

from __future__ import annotations

from pathlib import Path

APPLICATION = "quarterdeck"


def journal_root() -> Path:
    """Return the folder of journals for commands that name none."""
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
