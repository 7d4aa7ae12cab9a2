"""The house keeps its rooms: every room has a contract, and the tests mirror the rooms."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS = sorted(path.parent.name for path in (ROOT / "backend").glob("*/__init__.py"))
IMPURE = {"asyncio", "logging", "os", "random", "socket", "subprocess", "threading", "time", "uuid"}


def modules_of(*packages: str) -> list[Path]:
    return [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]


def imported_names(path: Path) -> set[str]:
    """Top-level packages that the file imports, wherever in the file it does so."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


@pytest.mark.parametrize("path", modules_of("backend/core"), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_core_has_no_clock_no_chance_and_no_system(path: Path) -> None:
    names = imported_names(path)
    assert not names & IMPURE
    assert names <= set(sys.stdlib_module_names) | {"msgspec", "quarterdeck"}


@pytest.mark.parametrize("room", [f"backend.{name}" for name in ROOMS] + ["app", "widgets"])
def test_every_room_has_a_contract(room: str) -> None:
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    assert any(contract["source_modules"] == [f"quarterdeck.{room}"] for contract in contracts)


def test_every_contract_of_a_room_decides_about_every_other_room() -> None:
    """A room may be left out of a contract's list only when the contract's name grants it."""
    rooms = [f"quarterdeck.backend.{name}" for name in ROOMS]
    for contract in PROJECT["tool"]["importlinter"]["contracts"]:
        if len(contract["source_modules"]) > 1 or contract["source_modules"] == ["quarterdeck.backend"]:
            continue
        granted = contract["name"].partition("import")[2]
        for room in rooms:
            if room in contract["source_modules"]:
                continue
            assert room in contract["forbidden_modules"] or room.rpartition(".")[2] in granted, (contract["id"], room)


def test_tests_mirror_the_rooms() -> None:
    rooms = {*ROOMS, "app", "cli", "widgets", "project", "bench"}
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.glob("**/*.py"))}
    assert folders <= rooms


def test_constraints_name_no_address() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert lines
    assert all("//" not in line and line.count("==") == 1 for line in lines)


@pytest.mark.parametrize("path", modules_of("app", "backend", "cli", "widgets"), ids=lambda path: path.name)
def test_files_are_named_after_a_subject(path: Path) -> None:
    assert path.stem not in {"utils", "util", "helpers", "manager", "misc", "common"}


FOLDERS = ("app", "backend", "cli", "widgets")


def test_the_package_is_made_of_links_to_the_rooms() -> None:
    """What is installed has one import name; the folders stand at the top of the repository."""
    package = ROOT / "quarterdeck"
    assert {path.name for path in package.iterdir() if path.is_symlink()} == set(FOLDERS)
    for name in FOLDERS:
        assert (package / name).resolve() == ROOT / name


@pytest.mark.parametrize("path", modules_of(*FOLDERS, "tests", "docs"), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_imported_under_a_second_name(path: Path) -> None:
    """The folders could be imported by their own names from the root of a checkout, as other modules than the installed ones."""
    assert not imported_names(path) & set(FOLDERS)
