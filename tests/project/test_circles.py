"""No two files import each other, nor do any more of them in a circle: each can be read after those that it builds on."""

from __future__ import annotations

import grimp


def circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """The sets of files that all reach one another by imports."""
    left = dict(imports)
    while ends := [name for name, imported in left.items() if not imported & left.keys()]:
        for name in ends:
            del left[name]
    reached = {name: reachable(name, left) for name in left}
    found = {frozenset(other for other in reached[name] if name in reached[other]) for name in left}
    return sorted((set(circle) for circle in found if circle), key=sorted)


def reachable(name: str, imports: dict[str, set[str]]) -> set[str]:
    """Everything that `name` imports directly or through others; itself only if it is in a circle."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = (imports[waiting.pop()] & imports.keys()) - found
        found |= new
        waiting += new
    return found


def test_circles_are_found() -> None:
    imports = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set(), "e": {"a", "f"}, "f": {"e"}}
    assert circles(imports) == [{"a", "b", "c"}, {"e", "f"}]


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("quarterdeck", cache_dir=None)
    found = circles({name: graph.find_modules_directly_imported_by(name) for name in graph.modules})
    assert not [sorted(circle) for circle in found]
