"""Only the judge compares what several members believe: all that show or print an answer ask it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.project.test_layout import modules_of, named, tree_of

BELIEVED = {"digest", "join_list", "lineage", "listed", "version"}
"""What a member believes of its cluster, and what is compared between members."""
SURFACES = ("app", "backend/boards", "backend/clusters", "backend/service", "backend/training", "cli", "widgets")


def comparisons(path: Path) -> Iterator[str]:
    """Yield the places at which the file compares a belief of two members, or counts how many lead or which lists there are."""
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Compare(left=ast.Attribute() as left, comparators=[ast.Attribute() as right]):
                if left.attr == right.attr and left.attr in BELIEVED:
                    yield f"{named(path)}:{node.lineno} compares {left.attr}"
            case ast.Call(func=ast.Name(id="len"), args=[ast.Call(func=ast.Attribute(attr="masters"))]):
                yield f"{named(path)}:{node.lineno} counts masters"
            case ast.Call(func=ast.Attribute(attr="masters")):
                yield f"{named(path)}:{node.lineno} asks the picture who leads"
            case ast.Call(func=ast.Name(id="losses_of" | "why_not_merging" | "absences" | "cluster_health" as name)):
                yield f"{named(path)}:{node.lineno} judges by {name} itself"
            case ast.Name(id="WATCHES_ALL"):
                yield f"{named(path)}:{node.lineno} judges without its watcher"
            case ast.SetComp(elt=ast.Attribute(attr=attribute)) if attribute in BELIEVED:
                yield f"{named(path)}:{node.lineno} counts different values of {attribute}"
            case ast.SetComp(elt=ast.Tuple(elts=[ast.Attribute(attr=attribute), *_])) if attribute in BELIEVED:
                yield f"{named(path)}:{node.lineno} groups members by {attribute}"


def test_no_surface_compares_members() -> None:
    assert not [place for path in modules_of(*SURFACES) for place in comparisons(path)]
