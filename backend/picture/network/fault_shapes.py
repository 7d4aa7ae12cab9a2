"""Single links put together: the fewest sides between which all of them lie.

Links are rows: by source, the set of targets, an integer with a bit for each member. So half of a thousand members cut off
from the other half is a matter of a thousand rows, not of half a million links.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from msgspec import Struct

from quarterdeck.backend.core.membership.partial_disconnection.shrinking_graph import vertices_of

LinkRows = dict[int, int]
"""By source, the set of targets. No set is empty."""

MOST_SHAPES = 100
"""The number of shapes beyond which links are left over."""


class Shape(Struct, frozen=True):
    """All links between different sides, both ways; or from the first side to the second alone."""

    sides: tuple[int, ...]
    one_way: bool

    def rows(self) -> LinkRows:
        if self.one_way:
            return dict.fromkeys(vertices_of(self.sides[0]), self.sides[1])
        everywhere = sum(self.sides)
        return {source: everywhere & ~side for side in self.sides for source in vertices_of(side)}


def links_in(rows: LinkRows) -> int:
    """Return the number of links."""
    return sum(targets.bit_count() for targets in rows.values())


def transposed(rows: LinkRows) -> LinkRows:
    """Return the same links the other way round."""
    columns: LinkRows = {}
    for targets, sources in sources_by_targets(rows).items():
        for target in vertices_of(targets):
            columns[target] = columns.get(target, 0) | sources
    return columns


def sources_by_targets(rows: LinkRows) -> LinkRows:
    """By set of targets, the set of sources that have just these."""
    found: LinkRows = {}
    for source, targets in rows.items():
        found[targets] = found.get(targets, 0) | 1 << source
    return found


def intersection(one: LinkRows, other: LinkRows) -> LinkRows:
    """Return the links in both."""
    return {source: both for source, targets in one.items() if (both := targets & other.get(source, 0))}


def union(one: LinkRows, other: LinkRows) -> LinkRows:
    """Return the links in either."""
    return {source: one.get(source, 0) | other.get(source, 0) for source in {**one, **other}}


def difference(one: LinkRows, other: LinkRows) -> LinkRows:
    """Return the links in `one` alone."""
    return {source: left for source, targets in one.items() if (left := targets & ~other.get(source, 0))}


def shapes_of(rows: LinkRows, every: LinkRows, *, many_sides: bool) -> tuple[list[Shape], LinkRows]:
    """Return the shapes that links which begin at one time make, and the links left over.

    `every` has all links of their kind that belong to nothing yet, `rows` among them: older ones are taken along where a link
    needs its way back, or a shape its last links. With `many_sides` a shape may have more than two.
    """
    both = intersection(every, transposed(every))
    pairs = intersection(union(rows, transposed(rows)), both)
    shapes: list[Shape] = []
    left: LinkRows = {}
    while pairs:
        if len(shapes) == MOST_SHAPES:
            left = pairs
            break
        shape = _widest(pairs, both, many_sides)
        shapes.append(shape)
        pairs, both = difference(pairs, shape.rows()), difference(both, shape.rows())
    lone = difference(rows, union(left, intersection(every, transposed(every))))
    for targets, sources in sources_by_targets(lone).items():
        if len(shapes) < MOST_SHAPES:
            shapes.append(Shape((sources, targets), one_way=True))
        else:
            left = union(left, dict.fromkeys(vertices_of(sources), targets))
    return shapes, left


def _widest(pairs: LinkRows, both: LinkRows, many_sides: bool) -> Shape:
    """One shape out of links that all have their way back: all that hangs together if that is possible, else two wide sides."""
    if many_sides:
        around = _connected_members(pairs)
        for links in (pairs, both):
            sides = _sides_of(links, around)
            if sides is not None:
                return Shape(sides, one_way=False)
    targets, sources = max(
        sources_by_targets(pairs).items(), key=lambda sides: (sides[0].bit_count() * sides[1].bit_count(), -sides[1])
    )
    return Shape((sources, targets), one_way=False)


def _connected_members(pairs: LinkRows) -> int:
    found, ahead = 0, 1 << min(pairs)
    while ahead:
        found |= ahead
        ahead = reduce(or_, (pairs.get(vertex, 0) for vertex in vertices_of(ahead))) & ~found
    return found


def _sides_of(links: LinkRows, members: int) -> tuple[int, ...] | None:
    """Return the sides of `members`, if between any two of these there are all links and within each there are none."""
    sides: list[int] = []
    seen = 0
    for vertex in vertices_of(members):
        if seen >> vertex & 1:
            continue
        side = members & ~links.get(vertex, 0)
        if any(links.get(other, 0) & members != members & ~side for other in vertices_of(side)):
            return None
        sides.append(side)
        seen |= side
    return tuple(sides)
