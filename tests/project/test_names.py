"""Names are the field's words: no file is named after nothing, and no name is a private word where the field has one."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.project.test_layout import INSTALLED, modules_of, named, tree_of

NO_SUBJECT = {"utils", "util", "helpers", "helper", "manager", "misc", "common"}

PRIVATE_WORDS = {
    *("deed", "deeds", "desk", "desks", "door", "doors", "errand", "errands", "hurdle", "hurdles", "keeper", "keepers"),
    *("misfortune", "misfortunes", "office", "offices", "parcel", "parcels", "patience", "turns"),
}
"""Words that this project once had for handlers, interfaces, listeners, requests, blockers, faults, frames and timeouts."""

TOP_LEVEL_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def names_in(path: Path) -> Iterator[str]:
    """All that the file names: itself, its folder, modules, classes, functions, parameters, fields and variables."""
    yield from (path.stem, path.parent.name)
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def test_files_are_named_after_a_subject() -> None:
    assert not [named(path) for path in modules_of(*INSTALLED) if path.stem in NO_SUBJECT]


def test_no_name_is_a_private_word() -> None:
    """In tests, too; but the name of a test is a sentence and may say who turns where."""
    offenders = {
        f"{named(path)}: {name}"
        for path in modules_of(*INSTALLED, "tests", "docs")
        if not PRIVATE_WORDS.isdisjoint(map(str.lower, WORD.findall(path.read_text())))  # most files need not be parsed
        for name in set(names_in(path))
        if not name.startswith("test_") and {word.lower() for word in WORD.findall(name)} & PRIVATE_WORDS
    }
    assert not sorted(offenders)


def test_names_of_top_level_classes_are_unique() -> None:
    """Two classes of one name in two rooms are taken for one another."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules_of(*INSTALLED):
        for name in TOP_LEVEL_CLASS.findall(path.read_text()):
            places[name].append(named(path))
    assert not {name: files for name, files in places.items() if len(files) > 1}
