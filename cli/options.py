"""How options and arguments of commands are declared: what an option says first, then what follows it and how it is written."""

from __future__ import annotations

from typing import Any

import typer


def flag(help: str, name: str) -> Any:
    """Return the option of a boolean parameter, which is off unless it is given."""
    return typer.Option(name, help=help)


def option(help: str, metavar: str | None = None, *names: str, **more: Any) -> Any:
    """Return an option that is followed by a value; its name is that of its parameter where no `names` are given."""
    return typer.Option(*names, metavar=metavar, help=help, **more)


def argument(help: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Argument(metavar=metavar, help=help, **more)
