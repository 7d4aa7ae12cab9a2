"""Paint what is dirty, all of it, and nothing between: for screens on which some rows far apart change all the time.

That of Textual renders each widget within the bounding box of all dirty regions, and drops what was not asked for: half of what a
console under load costs. And it loses what moved, where a place is asked for between a change and its layout.
`tests/widgets/test_dirty_rows.py` fails as soon as a newer Textual does no such thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import cast

from textual._compositor import ChopsUpdate, Compositor, CompositorMap, ReflowResult
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget


class DirtyRowsCompositor(Compositor):
    """Renders, of the topmost widget at each dirty place, the dirty rows."""

    def __init__(self) -> None:
        super().__init__()
        self._laid_out: CompositorMap = {}

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Lay out anew. All is dirty where the screen may show another map than that of the last layout.

        Textual compares the new map with the one that it has: after a scroll the map is out of date, and as soon as a place is
        asked for, it is made anew. What moved by then would neither be painted nor be given its new size.
        """
        if self._full_map_invalidated or self._full_map is not self._laid_out:
            self._full_map = self._laid_out
            self._dirty_regions.add(size.region)
        result = super().reflow(parent, size)
        self._laid_out, self._full_map_invalidated = self._full_map, False
        return result

    def render_partial_update(self) -> ChopsUpdate | None:
        screen = self.size.region
        regions = [shown for dirty in self._dirty_regions if (shown := dirty.intersection(screen))]
        self._dirty_regions.clear()
        if not regions:
            return None
        spans = list(self._regions_to_spans(regions))
        chop_ends = [cuts[1:] for cuts in self.cuts]
        return ChopsUpdate(cast("Sequence[dict[int, Strip | None]]", self._chops_of(spans)), spans, chop_ends)

    def _chops_of(self, spans: Iterable[tuple[int, int, int]]) -> dict[int, dict[int, Strip | None]]:
        """Return for each row with dirty `spans` the strip that begins at each cut; None where nothing is dirty."""
        cuts = self.cuts
        chops: dict[int, dict[int, Strip | None]] = {}
        bare: dict[int, set[int]] = {}
        """The dirty cuts of each row that no widget has covered yet."""
        for y, left, right in spans:
            chops.setdefault(y, dict.fromkeys(cuts[y][:-1]))
            bare.setdefault(y, set()).update(x for x, end in pairwise(cuts[y]) if x < right and end > left)
        for widget, (region, clip) in self.visible_widgets.items():  # front to back
            shown = region.intersection(clip)
            left, right = shown.x, shown.right
            rows = [
                y for y, free in bare.items() if shown.y <= y < shown.bottom and any(left <= x < right for x in free)
            ]
            for top, height in _runs(rows):
                crop = Region(left - region.x, top - region.y, shown.width, height)
                for y, strip in enumerate(widget.render_lines(crop), top):
                    places = [x for x in cuts[y] if left <= x <= right]
                    for x, chop in zip(places, strip.divide([end - left for end in places[1:]]), strict=False):
                        if x in bare[y]:
                            chops[y][x] = chop
                            bare[y].remove(x)
        return chops


def _runs(rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    begin = 0
    for place in range(1, len(rows) + 1):
        if place == len(rows) or rows[place] != rows[place - 1] + 1:
            yield rows[begin], place - begin
            begin = place
