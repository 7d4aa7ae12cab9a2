"""The house keeps its rooms: every room has a contract and says what it is for, and the tests mirror the rooms.

A test looks at all files in one go and names those that break its rule.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS = sorted(path.parent.name for path in (ROOT / "backend").glob("*/__init__.py"))
INSTALLED = ("app", "backend", "cli", "widgets")
IMPURE = {"asyncio", "logging", "os", "random", "socket", "subprocess", "threading", "time", "uuid"}

MOST_FILES = 17
"""So many files side by side are still taken in at a glance: fifteen chapters, the room's `__init__`, and one to spare."""

MOST_LINES = 450


@cache
def modules_of(*packages: str) -> list[Path]:
    return [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported_names(path: Path) -> set[str]:
    """Top-level packages that the file imports, wherever in the file it does so."""
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


def test_the_core_has_no_clock_no_chance_and_no_system() -> None:
    allowed = (set(sys.stdlib_module_names) | {"msgspec", "quarterdeck"}) - IMPURE
    offenders = {named(path): names for path in modules_of("backend/core") if (names := imported_names(path) - allowed)}
    assert not offenders


def test_every_room_stands_in_the_order_of_the_rooms() -> None:
    contracts = {contract["id"]: contract for contract in PROJECT["tool"]["importlinter"]["contracts"]}
    ordered = {room for layer in contracts["rooms"]["layers"] for room in layer.split(" | ")}
    assert not {*(f"backend.{name}" for name in ROOMS), "app", "cli", "widgets"} - ordered


def test_rooms_import_the_rooms_that_the_documents_name() -> None:
    page = (ROOT / "docs" / "contributors" / "architecture.md").read_text()
    rows = re.findall(
        r"^\| `([\w/]+)` \|(.*)\|$", page.partition("| room | imports |")[2].partition("\n\n")[0], re.MULTILINE
    )
    table = {room: set(names.replace(",", " ").split()) for room, names in rows if room != "cli"}
    found = {
        room: {name for path in modules_of(room) for name in imported_rooms(path)} - {Path(room).name} for room in table
    }
    assert {*table} == {*(f"backend/{name}" for name in ROOMS), "app", "widgets"}
    assert found == table


def imported_rooms(path: Path) -> set[str]:
    """Return the names of the rooms that the file imports, wherever in the file it does so."""
    modules = [node.module or "" for node in ast.walk(tree_of(path)) if isinstance(node, ast.ImportFrom)]
    rooms = (re.match(r"quarterdeck\.(?:backend\.)?(\w+)", module) for module in modules)
    return {room[1] for room in rooms if room is not None} - {"backend"}


def test_tests_mirror_the_rooms() -> None:
    rooms = {*ROOMS, "app", "cli", "widgets", "project", "bench", "mutants"}
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.glob("**/*.py"))}
    assert folders <= rooms


def test_constraints_name_no_address() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert lines
    assert all("//" not in line and line.count("==") == 1 for line in lines)


def test_no_folder_has_more_files_than_the_eye_takes_in() -> None:
    folders: dict[Path, int] = {}
    for path in modules_of(*INSTALLED):
        folders[path.parent] = folders.get(path.parent, 0) + 1
    assert not {named(folder): count for folder, count in folders.items() if count > MOST_FILES}


def test_no_folder_of_the_documents_has_more_pages_than_the_eye_takes_in() -> None:
    folders = [
        ROOT / "docs",
        *(path for path in (ROOT / "docs").rglob("*") if path.is_dir() and path.name[0] not in "._"),
    ]
    assert not {named(folder): count for folder in folders if (count := len(list(folder.glob("[!._]*")))) > MOST_FILES}


def test_no_file_is_longer_than_a_chapter() -> None:
    lengths = {named(path): len(path.read_text().splitlines()) for path in modules_of(*INSTALLED)}
    assert not {path: length for path, length in lengths.items() if length > MOST_LINES}


def test_every_room_says_in_two_sentences_what_it_is_for() -> None:
    """In the docstring of its `__init__`."""
    folders = {path.parent for path in modules_of(*INSTALLED)}
    assert not [named(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()]
    docstrings = {
        named(folder): " ".join((ast.get_docstring(tree_of(folder / "__init__.py")) or "").split())
        for folder in sorted(folders)
    }
    assert not [room for room, docstring in docstrings.items() if f"{docstring} ".count(". ") < 2]


def test_the_package_is_made_of_links_to_the_rooms() -> None:
    """What is installed has one import name; the folders stand at the top of the repository."""
    package = ROOT / "quarterdeck"
    assert {path.name for path in package.iterdir() if path.is_symlink()} == set(INSTALLED)
    for name in INSTALLED:
        assert (package / name).resolve() == ROOT / name


def test_nothing_is_imported_under_a_second_name() -> None:
    """The folders could be imported by their own names from the root of a checkout, as other modules than the installed."""
    second_name = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(INSTALLED)})\b", re.MULTILINE)
    modules = modules_of(*INSTALLED, "tests", "docs")
    assert not [named(path) for path in modules if second_name.search(path.read_text())]


def test_nobody_reaches_into_a_member() -> None:
    """`MemberMachine.inspect` shows what a member knows; only tests have another way in, of which there is one."""
    allowed = {"tests/core/member_state.py"}
    reach = re.compile(r"(?<!\bself)[.]_state\b")
    modules = {named(path): path for path in modules_of(*INSTALLED, "tests", "docs")}
    assert not [name for name, path in modules.items() if name not in allowed and reach.search(path.read_text())]
