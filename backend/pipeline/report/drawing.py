"""Draws a run as shapes: their places, classes and texts. The templates only write them down.

Nothing is shown by colour alone: shapes have words beside or inside them, or a title, and tables repeat them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.pipeline.report.run_section import Row

WIDTH = 1000.0
LEFT, RIGHT = 110.0, 990.0
TOP = 34.0
LANE = 30.0
BAR = 20.0
ROW = 13.0
LETTER_WIDTH = 6.6
"""About as wide as a letter of the drawings' font."""
COLOURS = 8
SMALLEST = 1.5
"""Width of the shortest box, so that it can be seen."""
GUTTER_LETTERS, MIGRATION_LETTERS = 15, 29
INSET, VIEW_INSET = 3.0, 9.0
"""Space between the edge of a box and its label; a view leaves room for a sign at its beginning."""


HISTOGRAM_HEIGHT, HISTOGRAM_WIDTH = 110.0, 600.0
WIDEST_BIN = 60.0
FEWEST_SAMPLES = 5
"""A metric with fewer samples has no histogram: the table shows it well enough."""

STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
"""Seconds between two ticks, where that is a second or more."""
MAX_TICKS = 10


class Box(NamedTuple):
    """A rectangle with a label; `look` are its class names."""

    x: float
    y: float
    width: float
    height: float
    look: str
    title: str
    label: str = ""
    inset: float = INSET


class EventSign(NamedTuple):
    """A glyph at a moment."""

    x: float
    y: float
    glyph: str
    look: str
    title: str


class Text(NamedTuple):
    """A text at a place."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    title: str = ""


class ReportDrawing(NamedTuple):
    """The content of an SVG, in its own units, and in words."""

    width: float
    height: float
    title: str
    description: str
    boxes: Sequence[Box]
    texts: Sequence[Text]
    ticks: Sequence[Text] = ()
    bands: Sequence[Box] = ()
    signs: Sequence[EventSign] = ()


def timeline(run: Row) -> ReportDrawing:
    """Draw the lists of each member over time, with splits as bands and events as glyphs."""
    scale = Scale(run.start_us, run.end_us, LEFT, RIGHT)
    height = TOP + LANE * (len(run.lanes) + 1) + 6
    tops = {lane.member: TOP + LANE * place for place, lane in enumerate(run.lanes)}
    shades = colours(run)
    boxes = [box for lane in run.lanes for box in _views(lane, tops[lane.member], scale, shades)]
    signs = [sign for lane in run.lanes for sign in _ends(lane, tops[lane.member], scale)]
    cluster = TOP + LANE * len(run.lanes)
    for claim in run.claims:
        if claim.member in tops:
            what = f"claim of {claim.member}, {claim.outcome}"
            signs.append(_sign(scale, claim.start_us, tops[claim.member], "◆", "claim", what))
    for fault in run.faults:
        top = tops.get(fault.member, cluster)
        glyph, look = {"kill": ("✕", "bad"), "pause": ("‖", "fault")}.get(fault.fault, ("╱", "fault"))
        signs.append(_sign(scale, fault.start_us, top, glyph, look, f"{clock(fault.start_us)}: {fault.what}"))
    for problem in run.problems:
        top = tops.get(problem.member, cluster)
        glyph = "!" if problem.severity == "violation" else "?"
        signs.append(_sign(scale, problem.at_us, top, glyph, "problem", f"{problem.rule}: {problem.detail}"))
    names = [_name(lane.member, tops[lane.member] + 16) for lane in run.lanes]
    return ReportDrawing(
        WIDTH,
        height,
        f"Lists of {len(run.lanes)} members over time, run {run.run}",
        f"{len(run.lineages)} lineages, {len(run.splits)} splits, from {clock(run.start_us)} to {clock(run.end_us)}. "
        "The tables below say the same.",
        boxes,
        [*names, _name("links, rest", cluster + 16)],
        _ticks(scale),
        [_band(split, scale, height - TOP) for split in run.splits],
        signs,
    )


def gantt(run: Row) -> ReportDrawing:
    """Draw a row for each migration, from its beginning to its decision."""
    first_us = min((migration.start_us for migration in run.migrations), default=run.start_us)
    last_us = max((migration.end_us or run.end_us for migration in run.migrations), default=run.end_us)
    scale = Scale(first_us, last_us, LEFT + 90, RIGHT)
    boxes, texts = [], []
    for place, migration in enumerate(run.migrations):
        top = TOP + ROW * place
        boxes.append(_migration(migration, scale, top, run.end_us))
        source = f"{migration.source}→" if migration.source else "→"
        what = f"p{migration.partition} {migration.type} {source}{migration.destination}"
        texts.append(Text(4, top + 10, _fit(what, MIGRATION_LETTERS), title=f"{what}, {migration.migration_id}"))
    return ReportDrawing(
        WIDTH,
        TOP + ROW * len(run.migrations) + 6,
        f"{len(run.migrations)} migrations over time, run {run.run}",
        "A bar from the beginning of each migration to its decision; the table below says the same.",
        boxes,
        texts,
        _ticks(scale),
    )


def histograms(run: Row) -> list[tuple[Row, ReportDrawing]]:
    """Draw each metric of durations that has enough samples."""
    return [(metric, histogram(metric)) for metric in run.metrics if metric.bins and metric.count >= FEWEST_SAMPLES]


def histogram(metric: Row) -> ReportDrawing:
    """Draw how often something took how long, on a logarithmic scale."""
    most = max((bin.times for bin in metric.bins), default=1)
    width = min(WIDEST_BIN, HISTOGRAM_WIDTH / max(len(metric.bins), 1))
    longest = max((len(span(bin.from_us)) for bin in metric.bins), default=0)
    every = ceil((longest + 1) * LETTER_WIDTH / width)  # where bins are narrow, only some have their time below
    boxes, texts = [], []
    for place, bin in enumerate(metric.bins):
        tall = round(HISTOGRAM_HEIGHT * bin.times / most, 1) if bin.times else 0.0
        x = round(10 + place * width, 1)
        what = f"{span(bin.from_us)} to {span(bin.to_us)}: {bin.times}"
        boxes.append(Box(x + 1, TOP + HISTOGRAM_HEIGHT - tall, width - 2, tall, "bin", what))
        if place % every == 0:
            texts.append(Text(x, TOP + HISTOGRAM_HEIGHT + 14, span(bin.from_us)))
        if bin.times:
            texts.append(Text(x + width / 2, TOP + HISTOGRAM_HEIGHT - tall - 3, str(bin.times), "middle"))
    return ReportDrawing(
        max(20 + width * len(metric.bins), 260.0),
        TOP + HISTOGRAM_HEIGHT + 22,
        f"How long: {f'{metric.metric} {metric.kind}'.strip()}",
        f"{metric.count} samples; the table of metrics has the percentiles.",
        boxes,
        texts,
    )


def sizes(run: Row) -> ReportDrawing:
    """Draw how many members the list of each lineage had, from version to version."""
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
    names = [_name(letter, TOP + LANE * row + 15) for row, letter in enumerate(letters)]
    height = TOP + LANE * len(letters) + 6
    what = f"From {min(step.size for step in run.sizes)} to {max(step.size for step in run.sizes)} members"
    return ReportDrawing(WIDTH, height, "Size of the cluster", what, boxes, names, _ticks(scale))


def colours(run: Row) -> dict[str, int]:
    """Return a colour for each lineage by its letter; of many lineages, several share one."""
    return {lineage.letter: place % COLOURS for place, lineage in enumerate(run.lineages)}


class Matrix(NamedTuple):
    """The suspicions as a table: a row for each observer, in it a class and a suspicion (or None) for each suspect."""

    suspects: Sequence[str]
    rows: Sequence[tuple[str, Sequence[tuple[str, Row | None]]]]


def matrix(run: Row) -> Matrix:
    """Arrange the suspicions of a run by observer and suspect, shaded by their duration relative to the longest."""
    pairs = {(pair.observer, pair.suspect): pair for pair in run.suspicions}
    places = {lane.member: place for place, lane in enumerate(run.lanes)}
    longest_us = max((pair.suspected_us for pair in run.suspicions), default=0)

    def in_order(names: set[str]) -> list[str]:
        return sorted(names, key=lambda name: (places.get(name, len(places)), name))

    def cell(pair: Row | None) -> tuple[str, Row | None]:
        return ("" if pair is None else f"heat{1 + min(2, 3 * pair.suspected_us // (longest_us + 1))}"), pair

    suspects = in_order({suspect for _, suspect in pairs})
    observers = in_order({observer for observer, _ in pairs})
    return Matrix(
        suspects, [(observer, [cell(pairs.get((observer, suspect))) for suspect in suspects]) for observer in observers]
    )


def _views(lane: Row, top: float, scale: Scale, shades: dict[str, int]) -> Iterator[Box]:
    for view in lane.views:
        several = f", the last of {view.installs} lists" if view.installs > 1 else ""
        more = f" and {view.size - len(view.members)} more" if view.size > len(view.members) else ""
        title = (
            f"{lane.member}, {clock(view.start_us)} to {clock(view.end_us)}: v{view.version} of {view.lineage}, "
            f"master {view.master}, members {', '.join(view.members)}{more}{several}"
        )
        look = f"view l{shades.get(view.lineage, 0)}"
        box = _box(scale, view.start_us, view.end_us, top + 2, BAR, look, title)
        words = (f"{view.lineage} v{view.version} {view.master}", f"{view.lineage} v{view.version}", view.lineage)
        yield box._replace(label=_longest(words, box.width - VIEW_INSET - 2), inset=VIEW_INSET)


def _ends(lane: Row, top: float, scale: Scale) -> Iterator[EventSign]:
    for ended in lane.lives:
        if ended.end_us is not None and ended.end != "killed":
            glyph = {"merged": "⇄", "stopped": "■"}.get(ended.end, "×")
            what = f"{clock(ended.end_us)}: incarnation of {lane.member} ended, {ended.end}"
            yield _sign(scale, ended.end_us, top, glyph, "end", what)


def _band(split: Row, scale: Scale, height: float) -> Box:
    sides = " | ".join(side.master for side in split.sides)
    title = f"split {split.number}: {sides}, for {span(split.lasted_us)}"
    box = _box(scale, split.start_us, split.start_us + split.lasted_us, TOP - 4, height, "split", title)
    return box._replace(label=_longest((f"split {split.number}", str(split.number)), box.width))


def _longest(texts: tuple[str, ...], width: float) -> str:
    """Return the first of `texts` that fits into the width, or an empty text."""
    return next((text for text in texts if len(text) * LETTER_WIDTH <= width), "")


def _migration(migration: Row, scale: Scale, top: float, run_end_us: int) -> Box:
    end_us = run_end_us if migration.end_us is None else migration.end_us
    title = (
        f"partition {migration.partition}, {migration.type}, {migration.source or 'none'} to {migration.destination}: "
        f"{migration.outcome} after {span(end_us - migration.start_us)}"
        f"{': ' + migration.reason if migration.reason else ''}"
    )
    glyph = {"committed": "✓", "rolled-back": "↶"}.get(migration.outcome, "…")
    look = f"migration {migration.outcome}"
    return _box(scale, migration.start_us, end_us, top + 1, ROW - 3, look, title, glyph)


def _box(
    scale: Scale, start_us: int, end_us: int, y: float, height: float, look: str, title: str, label: str = ""
) -> Box:
    x = scale.x(start_us)
    return Box(x, y, max(round(scale.x(end_us) - x, 2), SMALLEST), height, look, title, label)


def _sign(scale: Scale, at_us: int, top: float, glyph: str, look: str, title: str) -> EventSign:
    return EventSign(scale.x(at_us), top + 16, glyph, look, title)


def _ticks(scale: Scale) -> list[Text]:
    near_edge = RIGHT - 5 * LETTER_WIDTH
    return [Text(x, 14, text, "end" if x > near_edge else "middle") for x, text in scale.ticks()]


def _name(text: str, y: float) -> Text:
    return Text(LEFT - 6, y, _fit(text, GUTTER_LETTERS), "end", text)


def _fit(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"


# Times and numbers


@dataclass(frozen=True)
class Scale:
    """A mapping from a span of time to a span of a drawing."""

    start_us: int
    end_us: int
    left: float
    right: float

    def x(self, at_us: int) -> float:
        """Return the place of a moment; moments outside of the span are placed at its edge."""
        inside = min(max(at_us, self.start_us), self.end_us)
        span_us = max(self.end_us - self.start_us, 1)
        return round(self.left + (inside - self.start_us) / span_us * (self.right - self.left), 2)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield the place and the text of round moments within the span."""
        step_us = _step_us(self.end_us - self.start_us)
        at_us = -(-self.start_us // step_us) * step_us
        while at_us <= self.end_us:
            yield self.x(at_us), clock(at_us)
            at_us += step_us


def _step_us(span_us: int) -> int:
    wanted_us = max(span_us, 1) / MAX_TICKS
    if wanted_us > STEPS[-1] * SECOND_US:
        return int(-(-wanted_us // (STEPS[-1] * SECOND_US))) * STEPS[-1] * SECOND_US
    if wanted_us > SECOND_US / 2:
        return next(step for step in STEPS if step * SECOND_US >= wanted_us) * SECOND_US
    step_us = 1
    while step_us < wanted_us:
        step_us *= 10
    return step_us


def clock(at_us: int) -> str:
    """Format a moment of a run in seconds: 12.5 s."""
    return f"{at_us / SECOND_US:.6f}".rstrip("0").rstrip(".") + " s"


def span(length_us: float) -> str:
    """Format a duration in the unit that suits it."""
    if length_us < 1_000:
        return f"{length_us:g} µs" if length_us == int(length_us) else f"{length_us:.1f} µs"
    if length_us < SECOND_US:
        return f"{length_us / 1_000:.3g} ms"
    if length_us < 60 * SECOND_US:
        return f"{length_us / SECOND_US:.3g} s"
    minutes, seconds = divmod(round(length_us / SECOND_US), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def quantity(value: float | None, unit: str) -> str:
    """Format a measured value with its unit, or a dash for None."""
    if value is None:
        return "–"
    if unit == "us":
        return span(value)
    if unit == "share":
        return f"{value:.2%}"
    number = f"{value:,.0f}" if value == int(value) or abs(value) >= 1_000 else f"{value:.3g}"
    return f"{number}{ {'per-second': ' /s', 'bytes-per-second': ' B/s'}.get(unit, '') }"
