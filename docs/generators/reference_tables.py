"""Write the reference pages that only repeat what the code says: properties, events, keys and words.

Run it as ``python -m docs.generators.reference_tables``; a test tells when the pages are out of date.
"""

from __future__ import annotations

from pathlib import Path

from docs.generators.reference_events import events_page, texts_below
from quarterdeck.app.actions.registry import ACTIONS
from quarterdeck.app.key_map import live_key_map
from quarterdeck.backend.core.properties import FIXED_AT_START, PROPERTIES, Settings

FOLDER = Path(__file__).parents[1] / "reference"
NOTE = "This page is written by `python -m docs.generators.reference_tables`."


def properties_page() -> str:
    """Every property with its meaning and its default in both presets."""
    production, training = (Settings.of(preset=preset).as_properties() for preset in ("production", "training"))
    rows = []
    for name, (attribute, kind) in PROPERTIES.items():
        bound = " or ".join(kind.choices) or (
            "" if kind.unit in ("yes or no", "text") else f"{kind.at_least:g} or more"
        )
        fixed = "yes" if name in FIXED_AT_START else ""
        shown = (kind.unit, _shown(production[name]), _shown(training[name]), bound, fixed)
        rows.append((f"`{name}`", property_meanings()[attribute], *shown))
    return f"""# Properties

Set a property with `quarterdeck console --property NAME=VALUE` or under `settings:` of a scenario. Names and values are
checked before anything starts. The preset `production` has the documented defaults, `training` has seconds instead of
minutes; the console and scenarios start from `training`.

What is fixed at start cannot be changed while a member runs: all members must agree on it, or it is built into what a member
has set up. All else can be, with `quarterdeck cluster do set MEMBER NAME=VALUE`.

{_table(("property", "meaning", "unit", "production", "training", "possible values", "fixed at start"), rows)}

{NOTE}
"""


def property_meanings() -> dict[str, str]:
    """By field of `Settings`, the string that stands below it; empty where there is none."""
    below = texts_below(Settings)
    return {attribute: below.get(attribute, "") for attribute, _ in PROPERTIES.values()}


def keys_page() -> str:
    """Every key of the console, and every word of its prompt."""
    rows = live_key_map()
    keys = [(_code(row.keys), row.views, row.meaning, _code(row.action)) for row in rows if row.keys]
    words = sorted((word.usage, word.meaning, action.id) for action in ACTIONS for word in action.words)
    return f"""# Keys and words of the console

The first table has the built-in keys of all actions; [keys](../console/keys.md) says how to choose keys of your own. If a
view and all views use the same key, the view's own action is done. The second table has every word that you can type after
`:`. Parts in square brackets may be left out. An action has neither key nor word while it is impossible: on a read-only
cluster, while the past is shown, or if the members cannot do it.

## Keys

{_table(("keys", "views", "what it does", "action"), keys)}

## Words

{_table(("after `:`", "what it does", "action"), [(_code(usage), meaning, _code(action)) for usage, meaning, action in words])}

{NOTE}
"""


PAGES = {"properties.md": properties_page, "events.md": events_page, "keys.md": keys_page}


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _table(heading: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heading, ("---",) * len(heading), *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
