"""The documents say what is so, and nothing in the project names a registry or a path of the machine that built it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from docs.generators import reference_events, rule_tables
from docs.generators.reference_tables import FOLDER, PAGES, property_meanings
from quarterdeck.backend.core.events import Event
from tests.project.test_layout import INSTALLED

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
README_LINES = 80
PATH = re.compile(r"`((?:app|backend|cli|docs|quarterdeck|tests|widgets)/[\w/.*-]+)`")


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), (
        "run: python -m docs.generators.reference_tables"
    )


def test_every_event_and_every_field_of_it_has_a_meaning() -> None:
    kinds = {part for kind in get_args(Event) for part in (kind, *reference_events.parts_of(kind))}
    silent = [
        f"{kind.__name__}.{name}"
        for kind in kinds
        for name, told in reference_events.meanings_of(kind).items()
        if not told
    ]
    assert not sorted(silent)
    assert not [kind.__name__ for kind in kinds if not kind.__doc__]


def test_every_property_has_a_meaning() -> None:
    assert not [name for name, told in property_meanings().items() if not told]


@pytest.mark.parametrize("file", rule_tables.TABLES, ids=lambda file: file.stem)
def test_tables_of_rules_are_up_to_date(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == rule_tables.page(file), "run: python -m docs.generators.rule_tables"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in LINK.findall(document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize("name", ["themes/split", "film"])
def test_the_picture_was_exported_by_the_console_and_needs_no_net(name: str) -> None:
    picture = (ROOT / "docs" / "screenshots" / f"{name}.svg").read_text(encoding="utf-8")
    assert "delphi" in picture
    assert "url(http" not in picture


def test_every_picture_stands_on_a_page() -> None:
    shown = {
        (document.parent / target).resolve()
        for document in DOCUMENTS
        for target in LINK.findall(document.read_text(encoding="utf-8"))
    }
    assert not [str(path) for path in sorted((ROOT / "docs" / "screenshots").rglob("*.svg")) if path not in shown]


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "console").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_of_the_console_opens_with_a_picture(page: Path) -> None:
    assert ".svg)" in "".join(page.read_text(encoding="utf-8").splitlines(keepends=True)[:4])


def test_every_page_can_be_found_from_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    found, pending = {index}, [index]
    while pending:
        page = pending.pop()
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            led = (page.parent / target).resolve()
            if led.suffix == ".md" and led not in found:
                found.add(led)
                pending.append(led)
    assert not [str(page.relative_to(ROOT)) for page in DOCUMENTS if page not in found]


def test_the_readme_is_one_page_and_shows_both_ways_in() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= README_LINES
    for needed in ("make console", "make test", "-m venv", "quarterdeck console", "docs/screenshots/film.svg"):
        assert needed in text


def test_paths_in_the_documents_exist() -> None:
    missing = {
        f"{document.name}: {path}"
        for document in DOCUMENTS
        for path in PATH.findall(document.read_text(encoding="utf-8"))
        if not any(ROOT.glob(path))
    }
    assert not missing


def test_the_plan_shows_every_room() -> None:
    plan = (ROOT / "docs" / "contributors" / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.parent for folder in INSTALLED for path in (ROOT / folder).rglob("__init__.py")}
    assert not [
        str(room.relative_to(ROOT)) for room in sorted(rooms) if not {f"{room.name}/", f"`{room.name}`"} & words(plan)
    ]


@pytest.mark.parametrize("part", ["membership", "partitions", "data"])
def test_the_chapters_are_files(part: str) -> None:
    """The first column of the table of chapters names files of this part of the core."""
    table = (
        (ROOT / "docs" / "engineers" / f"{part}.md")
        .read_text(encoding="utf-8")
        .partition("## The chapters")[2]
        .partition("\n## ")[0]
    )
    named = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.partition(" | ")[0])}
    assert named
    assert not named - {path.stem for path in (ROOT / "backend" / "core" / part).rglob("*.py")}


def words(text: str) -> set[str]:
    return set(re.split(r"[\s,;:]+", text))


def test_every_command_is_in_the_reference() -> None:
    import typer.main

    from quarterdeck.cli.main import app

    text = (FOLDER / "commands.md").read_text(encoding="utf-8")
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        for inner in getattr(command, "commands", None) or [""]:
            assert f"quarterdeck {name} {inner}".strip() in text
