"""What runs here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def software_version() -> str:
    """Of this package, as installed."""
    try:
        return version("quarterdeck")
    except PackageNotFoundError:  # run from a source tree
        return "unknown"
