"""Write the reference pages that only repeat what the code says: properties and events.

Run it as ``python -m docs.reference_tables``; a test tells when the pages are out of date.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import get_args

import msgspec

from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.properties import PROPERTIES, Settings

FOLDER = Path(__file__).parent / "reference"
NOTE = "This page is written by `python -m docs.reference_tables`."


def properties_page() -> str:
    """Every property with its default in both presets."""
    production, training = (Settings.of(preset=preset).as_properties() for preset in ("production", "training"))
    rows = []
    for name, (_, kind) in PROPERTIES.items():
        bound = " or ".join(kind.choices) or (
            "" if kind.unit in ("yes or no", "text") else f"{kind.at_least:g} or more"
        )
        rows.append((f"`{name}`", kind.unit, _shown(production[name]), _shown(training[name]), bound))
    return f"""# Properties

Set one with `quarterdeck console --property NAME=VALUE` or under `settings:` of a scenario. Names and values are
checked before anything starts. The preset `production` has the documented defaults, `training` has seconds instead of
minutes; the console and scenarios start from `training`.

{_table(("property", "unit", "production", "training", "possible values"), rows)}

{NOTE}
"""


def events_page() -> str:
    """Every kind of event with its fields."""
    rows = []
    for kind in get_args(Event):
        fields = ", ".join(f"`{field.name}`" for field in msgspec.structs.fields(kind))
        rows.append((f"`{kind.__struct_config__.tag}`", fields, _meaning(kind)))
    envelope = ", ".join(f"`{field.name}`" for field in msgspec.structs.fields(Record))
    return f"""# Events

A journal holds one JSON object per line. Each is a record with the fields {envelope}; `at` is in microseconds on the
clock of the run, `utc` in microseconds since 1970. (`uuid`, `seq`) is its identity, and `seq` counts from 1 without
gaps within a `uuid`. `event` holds `kind` and the fields below. What the operator and the network did stands under the
name of the cluster.

{_table(("kind", "fields", "meaning"), rows)}

{NOTE}
"""


PAGES = {"properties.md": properties_page, "events.md": events_page}


def _meaning(kind: type) -> str:
    """The first paragraph of the class's docstring, on one line."""
    return " ".join((inspect.cleandoc(kind.__doc__ or "")).partition("\n\n")[0].split())


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _table(heading: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heading, ("---",) * len(heading), *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
