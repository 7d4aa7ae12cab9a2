"""Write the reference pages that only repeat what the code says: properties, events, keys and words.

Run it as ``python -m docs.generators.reference_tables``; a test tells when the pages are out of date.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import get_args

import msgspec

from quarterdeck.app.actions.registry import ACTIONS
from quarterdeck.app.key_map import live_key_map
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.properties import PROPERTIES, Settings

FOLDER = Path(__file__).parents[1] / "reference"
NOTE = "This page is written by `python -m docs.generators.reference_tables`."


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


def keys_page() -> str:
    """Every key of the console, and every word of its prompt."""
    rows = live_key_map()
    keys = [(_code(row.keys), row.views, row.meaning, _code(row.action)) for row in rows if row.keys]
    words = sorted((word.usage, word.meaning, action.id) for action in ACTIONS for word in action.words)
    return f"""# Keys and words of the console

The first table has all keys as they are when nobody has changed them; [others than ours](../console/keys.md) says how to. A
view's own key goes before one of all views. The second has every word that can be typed after `:`. Square brackets hold
what may be left out. On a cluster that is read-only, that is looked at in the past, or whose members cannot do a thing,
neither key nor word is there.

## Keys

{_table(("keys", "views", "what it does", "action"), keys)}

## Words

{_table(("after `:`", "what it does", "action"), [(_code(usage), meaning, _code(action)) for usage, meaning, action in words])}

{NOTE}
"""


PAGES = {"properties.md": properties_page, "events.md": events_page, "keys.md": keys_page}


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


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
