"""The drawings of a run as shapes: where each stands, how it is classed, what it says. The templates only write them down.

Nothing is told by colour alone: shapes have words beside or inside them, or a title, and the tables below repeat them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from quarterdeck.backend.pipeline.report.model import Lane, Metric, Migration, Run, Split, Suspicion, View
from quarterdeck.backend.pipeline.report.scale import Scale, clock, span

WIDTH = 1000.0
LEFT, RIGHT = 110.0, 990.0
TOP = 34.0
LANE = 30.0
BAR = 20.0
ROW = 13.0
LETTER_WIDTH = 6.6
"""Of the drawings' font, about."""
COLOURS = 8
SMALLEST = 1.5
"""What happened is seen, however short it was."""
GUTTER_LETTERS, MIGRATION_LETTERS = 15, 29
INSET, VIEW_INSET = 3.0, 9.0
"""Between the edge of a box and what it says; a view leaves room for the sign of what happened as it began."""


@dataclass(frozen=True)
class Box:
    """A rectangle with a label and a tone."""

    x: float
    y: float
    width: float
    height: float
    look: str
    """Class names."""
    title: str
    label: str = ""
    inset: float = INSET


@dataclass(frozen=True)
class Sign:
    """A glyph at a moment."""

    x: float
    y: float
    glyph: str
    look: str
    title: str


@dataclass(frozen=True)
class Text:
    """A text at a place."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    title: str = ""


@dataclass(frozen=True)
class ReportDrawing:
    """What an SVG holds, in its own units, and in words."""

    width: float
    height: float
    title: str
    description: str
    ticks: tuple[Text, ...]
    bands: tuple[Box, ...]
    boxes: tuple[Box, ...]
    signs: tuple[Sign, ...]
    texts: tuple[Text, ...]


def timeline(run: Run) -> ReportDrawing:
    """Which list each member had, and whose, with splits as bands and what happened as glyphs."""
    scale = Scale(run.start_us, run.end_us, LEFT, RIGHT)
    height = TOP + LANE * (len(run.lanes) + 1) + 6
    tops = {lane.member: TOP + LANE * place for place, lane in enumerate(run.lanes)}
    shades = colours(run)
    boxes, signs = [], []
    for lane in run.lanes:
        boxes += list(_views(lane, tops[lane.member], scale, shades))
        signs += list(_ends(lane, tops[lane.member], scale))
    cluster = TOP + LANE * len(run.lanes)
    for claim in run.claims:
        if claim.member in tops:
            what = f"claim of {claim.member}, {claim.outcome}"
            signs.append(_sign(scale, claim.start_us, tops[claim.member], "◆", "claim", what))
    for fault in run.faults:
        where = tops.get(fault.member, cluster)
        glyph, look = {"kill": ("✕", "bad"), "pause": ("‖", "fault")}.get(fault.fault, ("╱", "fault"))
        signs.append(_sign(scale, fault.start_us, where, glyph, look, f"{clock(fault.start_us)}: {fault.what}"))
    for problem in run.problems:
        glyph = "!" if problem.severity == "violation" else "?"
        signs.append(
            _sign(
                scale,
                problem.at_us,
                tops.get(problem.member, cluster),
                glyph,
                "problem",
                f"{problem.rule}: {problem.detail}",
            )
        )
    bands = tuple(_band(split, scale, height - TOP) for split in run.splits)
    names = [_name(lane.member, tops[lane.member] + 16) for lane in run.lanes]
    return ReportDrawing(
        WIDTH,
        height,
        f"Lists of {len(run.lanes)} members over time, run {run.run}",
        f"{len(run.lineages)} lineages, {len(run.splits)} splits, from {clock(run.start_us)} to {clock(run.end_us)}. "
        "The tables below say the same.",
        _ticks(scale),
        bands,
        tuple(boxes),
        tuple(signs),
        (*names, _name("links, rest", cluster + 16)),
    )


def gantt(run: Run) -> ReportDrawing:
    """A row for each migration, from its beginning to its decision."""
    first_us = min((one.start_us for one in run.migrations), default=run.start_us)
    last_us = max((one.end_us or run.end_us for one in run.migrations), default=run.end_us)
    scale = Scale(first_us, last_us, LEFT + 90, RIGHT)
    boxes, texts = [], []
    for place, one in enumerate(run.migrations):
        top = TOP + ROW * place
        boxes.append(_migration(one, scale, top, run.end_us))
        source = f"{one.source}→" if one.source else "→"
        what = f"p{one.partition} {one.type} {source}{one.destination}"
        texts.append(Text(4, top + 10, _fit(what, MIGRATION_LETTERS), title=f"{what}, {one.migration_id}"))
    return ReportDrawing(
        WIDTH,
        TOP + ROW * len(run.migrations) + 6,
        f"{len(run.migrations)} migrations over time, run {run.run}",
        "A bar from the beginning of each migration to its decision; the table below says the same.",
        _ticks(scale),
        (),
        tuple(boxes),
        (),
        tuple(texts),
    )


HISTOGRAM_HEIGHT, HISTOGRAM_WIDTH = 110.0, 600.0
WIDEST_BIN = 60.0
FEWEST_SAMPLES = 5
"""What is less than this is told well enough by the table."""


def histograms(run: Run) -> tuple[tuple[Metric, ReportDrawing], ...]:
    """Of everything that took time and happened often enough to have a shape."""
    return tuple((one, histogram(one)) for one in run.metrics if one.bins and one.count >= FEWEST_SAMPLES)


def histogram(metric: Metric) -> ReportDrawing:
    """How often it took how long, on a logarithmic scale."""
    most = max((one.times for one in metric.bins), default=1)
    width = min(WIDEST_BIN, HISTOGRAM_WIDTH / max(len(metric.bins), 1))
    longest = max((len(span(one.from_us)) for one in metric.bins), default=0)
    every = ceil((longest + 1) * LETTER_WIDTH / width)  # where bins are narrow, not all of them have their time below
    boxes, texts = [], []
    for place, one in enumerate(metric.bins):
        tall = round(HISTOGRAM_HEIGHT * one.times / most, 1) if one.times else 0.0
        x = round(10 + place * width, 1)
        what = f"{span(one.from_us)} to {span(one.to_us)}: {one.times}"
        boxes.append(Box(x + 1, TOP + HISTOGRAM_HEIGHT - tall, width - 2, tall, "bin", what))
        if place % every == 0:
            texts.append(Text(x, TOP + HISTOGRAM_HEIGHT + 14, span(one.from_us)))
        if one.times:
            texts.append(Text(x + width / 2, TOP + HISTOGRAM_HEIGHT - tall - 3, str(one.times), "middle"))
    name = f"{metric.metric} {metric.kind}".strip()
    return ReportDrawing(
        max(20 + width * len(metric.bins), 260.0),
        TOP + HISTOGRAM_HEIGHT + 22,
        f"How long: {name}",
        f"{metric.count} samples; the table of metrics has the percentiles.",
        (), (), tuple(boxes), (), tuple(texts),
    )  # fmt: skip


def colours(run: Run) -> dict[str, int]:
    """A colour for each lineage, by its letter; when there are many, several share one."""
    return {lineage.letter: place % COLOURS for place, lineage in enumerate(run.lineages)}


def _views(lane: Lane, top: float, scale: Scale, shades: dict[str, int]) -> Iterator[Box]:
    for view in lane.views:
        look = f"view l{shades.get(view.lineage, 0)}"
        box = _box(scale, view.start_us, view.end_us, top + 2, BAR, look, _view_title(lane, view))
        words = (f"{view.lineage} v{view.version} {view.master}", f"{view.lineage} v{view.version}", view.lineage)
        yield replace(box, label=_longest(words, box.width - VIEW_INSET - 2), inset=VIEW_INSET)


def _view_title(lane: Lane, view: View) -> str:
    several = f", the last of {view.installs} lists" if view.installs > 1 else ""
    more = f" and {view.size - len(view.members)} more" if view.size > len(view.members) else ""
    return (
        f"{lane.member}, {clock(view.start_us)} to {clock(view.end_us)}: v{view.version} of {view.lineage}, "
        f"master {view.master}, members {', '.join(view.members)}{more}{several}"
    )


def _ends(lane: Lane, top: float, scale: Scale) -> Iterator[Sign]:
    for life in lane.lives:
        if life.end_us is not None and life.end != "killed":
            glyph = {"merged": "⇄", "stopped": "■"}.get(life.end, "×")
            yield _sign(
                scale, life.end_us, top, glyph, "end", f"{clock(life.end_us)}: life of {lane.member} ended, {life.end}"
            )


def _band(split: Split, scale: Scale, height: float) -> Box:
    sides = " | ".join(side.master for side in split.sides)
    title = f"split {split.number}: {sides}, for {span(split.lasted_us)}"
    box = _box(scale, split.start_us, split.start_us + split.lasted_us, TOP - 4, height, "split", title)
    return replace(box, label=_longest((f"split {split.number}", str(split.number)), box.width))


def _longest(texts: tuple[str, ...], width: float) -> str:
    """The first of `texts` that is no wider; empty when none is."""
    return next((text for text in texts if len(text) * LETTER_WIDTH <= width), "")


def _migration(one: Migration, scale: Scale, top: float, run_end_us: int) -> Box:
    end_us = run_end_us if one.end_us is None else one.end_us
    title = (
        f"partition {one.partition}, {one.type}, {one.source or 'nobody'} to {one.destination}: "
        f"{one.outcome} after {span(end_us - one.start_us)}{': ' + one.reason if one.reason else ''}"
    )
    glyph = {"committed": "✓", "rolled-back": "↶"}.get(one.outcome, "…")
    return _box(scale, one.start_us, end_us, top + 1, ROW - 3, f"migration {one.outcome}", title, glyph)


def _box(
    scale: Scale, start_us: int, end_us: int, y: float, height: float, look: str, title: str, label: str = ""
) -> Box:
    x = scale.x(start_us)
    return Box(x, y, max(round(scale.x(end_us) - x, 2), SMALLEST), height, look, title, label)


def _sign(scale: Scale, at_us: int, top: float, glyph: str, look: str, title: str) -> Sign:
    return Sign(scale.x(at_us), top + 16, glyph, look, title)


def _ticks(scale: Scale) -> tuple[Text, ...]:
    near_edge = RIGHT - 5 * LETTER_WIDTH
    return tuple(Text(x, 14, text, "end" if x > near_edge else "middle") for x, text in scale.ticks())


def _name(text: str, y: float) -> Text:
    return Text(LEFT - 6, y, _fit(text, GUTTER_LETTERS), "end", text)


def _fit(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"


def sizes(run: Run) -> ReportDrawing:
    """How many members the list of each lineage had, from version to version."""
    scale = Scale(run.start_us, run.end_us, LEFT, RIGHT)
    shades = colours(run)
    letters = list(dict.fromkeys(step.lineage for step in run.sizes))
    boxes = []
    for row, letter in enumerate(letters):
        steps = [step for step in run.sizes if step.lineage == letter]
        last_us = max(
            (view.end_us for lane in run.lanes for view in lane.views if view.lineage == letter), default=run.end_us
        )
        ends = [step.at_us for step in steps[1:]] + [max(last_us, steps[-1].at_us)]
        for step, end_us in zip(steps, ends, strict=True):
            title = f"{clock(step.at_us)}: version {step.version} of {letter} has {step.size} members"
            look = f"view l{shades.get(letter, 0)}"
            label = str(step.size) if scale.x(end_us) - scale.x(step.at_us) > 3 * LETTER_WIDTH else ""
            boxes.append(_box(scale, step.at_us, end_us, TOP + LANE * row, BAR, look, title, label))
    names = tuple(_name(letter, TOP + LANE * row + 15) for row, letter in enumerate(letters))
    height = TOP + LANE * len(letters) + 6
    what = f"From {min(step.size for step in run.sizes)} to {max(step.size for step in run.sizes)} members"
    return ReportDrawing(WIDTH, height, "Size of the cluster", what, _ticks(scale), (), tuple(boxes), (), names)


@dataclass(frozen=True)
class Cell:
    """A cell of the matrix of suspicions."""

    look: str
    suspicion: Suspicion | None


@dataclass(frozen=True)
class Matrix:
    """Who suspected whom; a row for each observer."""

    suspects: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


def matrix(run: Run) -> Matrix:
    """The suspicions of a run, shaded by how long they lasted beside the longest."""
    pairs = {(one.observer, one.suspect): one for one in run.suspicions}
    places = {lane.member: place for place, lane in enumerate(run.lanes)}

    def as_they_came(name: str) -> tuple[int, str]:
        return places.get(name, len(places)), name

    suspects = tuple(sorted({one.suspect for one in run.suspicions}, key=as_they_came))
    longest_us = max((one.suspected_us for one in run.suspicions), default=0)

    def cell(one: Suspicion | None) -> Cell:
        if one is None:
            return Cell("", None)
        return Cell(f"heat{1 + min(2, 3 * one.suspected_us // (longest_us + 1))}", one)

    observers = sorted({one.observer for one in run.suspicions}, key=as_they_came)
    return Matrix(
        suspects, tuple((name, tuple(cell(pairs.get((name, one))) for one in suspects)) for name in observers)
    )
