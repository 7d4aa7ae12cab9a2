"""The demos that come with the product, by name."""

from __future__ import annotations

import difflib
from importlib.resources import files

from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario

__all__ = ["Scenario", "UnknownDemo", "demo_names", "demo_text", "load_demo"]

SUFFIX = ".yaml"


class UnknownDemo(LookupError):
    """No built-in demo has that name. The message has a suggestion."""


def demo_names() -> tuple[str, ...]:
    """Return the names of all built-in demos, in alphabetical order."""
    scripts = files("quarterdeck.backend.training") / "scripts"
    return tuple(sorted(file.name.removesuffix(SUFFIX) for file in scripts.iterdir() if file.name.endswith(SUFFIX)))


def demo_text(name: str) -> str:
    """Return the file of the built-in demo `name`.

    Raises:
        UnknownDemo: There is no such demo.
    """
    known = demo_names()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
        raise UnknownDemo(f"there is no demo {name!r}; {hint}")
    return (files("quarterdeck.backend.training") / "scripts" / f"{name}{SUFFIX}").read_text(encoding="utf-8")


def load_demo(name: str) -> Scenario:
    """Load the scenario of the built-in demo `name`.

    Raises:
        UnknownDemo: There is no such demo.
    """
    return read_scenario(demo_text(name), f"{name}{SUFFIX}")
