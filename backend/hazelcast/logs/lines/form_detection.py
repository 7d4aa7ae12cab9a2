"""Learns the form of a log file from its first lines, and from its last ones where these show more.

What stands before every line (a pod's name, a file's name, blanks, a quotation mark) is found without being known: it stands
before the times of the product's messages and before the lines between these. What stands before the times only belongs to the
layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from quarterdeck.backend.hazelcast.logs.lines.envelope import (
    BARE_COLOUR,
    LEVELS,
    EnvelopedLine,
    strip_envelope,
    undressed,
)
from quarterdeck.backend.hazelcast.logs.lines.form import LAYOUTS, DayOrder, FileForm
from quarterdeck.backend.hazelcast.logs.lines.layout import PREFIX, PREFIX_WITHIN, MessageHead, has_prefix, parse_head
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import (
    JSON_OPENS,
    FileContext,
    Message,
    MessageAssembler,
)
from quarterdeck.backend.hazelcast.logs.lines.timestamps import LogTime, bare_date, parse_time

YEARLESS = (
    "its times have no year: the last one counts as of the year before the file was last written, or of that year"
)
DATELESS = "its times have no date: the last one counts as of the day on which the file was last written; --date says otherwise"
_MOST = 0.9
"""The share of lines that have to show a form before it is taken for the form of all."""
_COVERED = 0.8
_MANY = 8
"""From so many different beginnings of lines on, a number in them counts the lines."""
_LAST_MONTH = 12
_LAST_DAY = 31
_LONGEST_BEHIND = 160
_USUAL_COLUMNS = (
    80,
    100,
    120,
    128,
    132,
    150,
    160,
    180,
    200,
    240,
    250,
    255,
    256,
    300,
    400,
    500,
    512,
    1000,
    1024,
    2000,
    2048,
    4000,
)
_LEAST_COLUMNS = 60
_LANDMARK = re.compile(
    rf"(?<![\w.,+])(?:(?P<level>(?:{'|'.join(sorted(LEVELS))})\b)|\d|[A-ZÀ-Ý][^\W\d_]{{2}})|(?<=[-:])\d", re.ASCII
)
_KNOWN_BEGINNING = re.compile("|".join(layout.begins for layout in LAYOUTS if layout.begins))
_LIST_LINES = ("Members {size", "Members [", "\tMember [")


class _Landmark(NamedTuple):
    """Where in a line its layout begins: at a time, or at a level."""

    place: int
    stamp: LogTime | None


class _Sample:
    """Lines of a file, read in one form."""

    def __init__(self, lines: Sequence[str], form: FileForm) -> None:
        self.lines, self.form = lines, form
        self.carried = [strip_envelope(line, form) for line in lines]

    @cached_property
    def heads(self) -> list[MessageHead | None]:
        return [parse_head(line, self.form) for line in self.carried]

    @cached_property
    def ours(self) -> list[int]:
        """The numbers of the lines that have the product's prefix."""
        return [place for place, line in enumerate(self.carried) if has_prefix(line.text)]

    @property
    def understood(self) -> int:
        """In how many of the product's lines a message begins, or goes on whose time stands in the line before."""
        count = 0
        for place in self.ours:
            head, before = self.heads[place], self.heads[place - 1] if place else None
            if head is not None and (head.stamp is not None or self.carried[place].collected is not None):
                count += 1
            elif before is not None:
                count += before.awaits_level
        return count

    def changed(self, **changes: Any) -> _Sample:
        """Return the lines read in another form."""
        changed = replace(self.form, **changes)
        return self if changed == self.form else _Sample(self.lines, changed)


def learned_form(lines: Sequence[str], later: Sequence[str] = (), modified_year: int = 9999) -> FileForm:
    """Return the form of the file that begins with `lines` and ends with `later`, and was written last in `modified_year`."""
    sample = _Sample(lines, FileForm(has_bare_colours=sum(1 for line in lines for _ in _bare_colours(line)) > 1))
    sample = sample.changed(carries_lines=_carries_lines(sample))
    sample = sample.changed(day_order=_day_order(sample, later, modified_year))
    if sample.understood < _MOST * len(sample.ours):
        sample = _dressed(sample)
    sample = sample.changed(is_stamped=_is_stamped(sample))
    sample = _laid_out(sample)
    is_falling = _is_falling(_times(sample))
    is_turned = is_falling and (sample.form.carries_lines or _is_carried(sample))
    ordered = _Sample(lines[::-1], sample.form) if is_turned else sample
    form = replace(sample.form, behind=sample.form.behind or _behind(ordered), columns=_columns(lines))
    form = replace(form, is_falling=is_falling, is_turned=is_turned)
    is_dateless = any(
        head.stamp.lacks == "date"
        for head, line in zip(sample.heads, sample.carried, strict=True)
        if head and head.stamp and not line.collected
    )
    is_whole = is_dateless or form.is_turned or any(line.strip() in JSON_OPENS for line in lines)
    stamps = [head.stamp for head in sample.heads if head and head.stamp]
    zone = next((stamp.zone for stamp in stamps if stamp.zone), "")
    notes = [*_notes(form, lines), *([YEARLESS] if any(stamp.lacks == "year" for stamp in stamps) else [])]
    notes += [DATELESS] * is_dateless
    return replace(form, is_read_whole=is_whole, ambiguous_zone=zone, notes=tuple(notes))


def _bare_colours(line: str) -> Iterator[re.Match[str]]:
    return (found for found in BARE_COLOUR.finditer(line) if line[found.start() - 1 : found.start()] != "\x1b")


def _carries_lines(sample: _Sample) -> bool:
    """Return whether JSON objects carry printed lines: some are lines within a member list, or begin with times of their own."""
    whole = own = 0
    for carried in sample.carried:
        if not carried.structured:
            continue
        if carried.text.startswith(_LIST_LINES) and "\n" not in carried.text:
            return True
        if carried.text[:1] == "{":
            own += 1
        elif PREFIX.search(carried.text, 0, PREFIX_WITHIN):
            head = parse_head(EnvelopedLine(carried.text), sample.form)
            own += head is not None and head.stamp is not None
        whole += 1
    return own * 2 > whole


def _landmark(text: str, end: int, order: DayOrder = "") -> _Landmark | None:
    """Return where the first time stands in `text` before `end`, or the first level without one before it."""
    level = None
    for found in _LANDMARK.finditer(text, 0, end):
        if found["level"]:
            level = level if level is not None else found.start()
        elif stamp := parse_time(text, found.start(), order):
            return _Landmark(found.start() if level is None else level, stamp)
    return None if level is None else _Landmark(level, None)


def _dressed(sample: _Sample) -> _Sample:
    """Learn what stands before the times of the product's lines: before all lines, or before first lines of messages only."""
    befores = {
        line.text[: begins.start()]
        for line in sample.carried
        if (begins := _KNOWN_BEGINNING.search(line.text, 0, PREFIX_WITHIN))
    }
    for text in (sample.carried[place].text for place in ([] if befores else sample.ours)):
        prefix = PREFIX.search(text)
        landmark = _landmark(text, prefix.start()) if prefix else None
        if landmark is not None:
            befores.add(text[: landmark.place].rstrip("[(<#"))
    befores.discard("")
    if not befores:
        return sample
    dressing = _dressing(list(befores))
    ours = set(sample.ours)
    between = [line.text for place, line in enumerate(sample.carried) if place not in ours and line.text.strip()]
    if sum(1 for text in between if dressing.match(text)) >= _COVERED * len(between):
        return sample.changed(dressing=dressing)
    shapes = {re.sub(r"[\w.$-]+", "\0", before) for before in befores}
    lead = "|".join(re.escape(shape).replace("\0", r"[\w.$-]*") for shape in sorted(shapes, key=len)[-_MANY:])
    return sample.changed(lead=re.compile(rf"(?:{lead})[\[(<#]*"))


def _dressing(befores: Sequence[str]) -> re.Pattern[str]:
    """Return an expression for these beginnings of lines. Numbers in them may be others; the last one may count the lines.

    The group that fits names where the line comes from.
    """
    is_counted = len(befores) >= _MANY and len({_uncounted(before) for before in befores}) * 4 < len(befores)
    shapes: set[str] = set()
    for before in befores:
        text = before.rstrip()
        blanks = re.escape(before[len(text) :])
        source, rest = _split_at_last_number(text) if is_counted else (text, "")
        named, rest = _any_numbers(source), _any_numbers(rest)
        shape = f"({named})" if re.search(r"\w", source) else named
        if text.endswith(":"):  # grep writes a dash before lines of context
            shape, rest = (re.sub(r":(\)?)$", r"\1[:-]", part) for part in (shape.removesuffix(":"), rest))
        shapes.add(rf"{shape}{rest}(?:{blanks}|\s*$)" if blanks else shape + rest)
    return re.compile("|".join(sorted(shapes, key=lambda shape: (-len(shape), shape))))


def _any_numbers(text: str) -> str:
    return re.sub(r"\d+", r"\\d+", re.escape(text))


def _uncounted(before: str) -> str:
    return "".join(_split_at_last_number(before.rstrip())[:1])


def _split_at_last_number(text: str) -> tuple[str, str]:
    """Return what stands before the last number in `text`, and the rest."""
    found = re.search(r"\d+(?=\D*$)", text)
    return (text[: found.start()], text[found.start() :]) if found else (text, "")


def _is_stamped(sample: _Sample) -> bool:
    """Return whether every line has a time before it, beside that of the message."""
    twice = once = 0
    for text in (undressed(line, sample.form)[0] for line in sample.lines):
        stamp = parse_time(text) if text[:1].isdigit() else None
        if stamp is None or stamp.lacks:
            if text.strip():
                return False
        elif parse_time(text, stamp.end + 1) is not None:
            twice += 1
        else:
            once += 1
    return twice > 0 and twice + once > 1


def _laid_out(sample: _Sample) -> _Sample:
    """Find the layout among `LAYOUTS` that shows in first lines."""
    most = max(1, len(sample.ours) / 2)
    for layout in LAYOUTS:
        if layout.begins and sum(1 for line in sample.carried if re.match(layout.begins, line.text)) >= most:
            lead = re.compile(layout.lead) if layout.lead else sample.form.lead
            return sample.changed(lead=lead, behind=re.compile(layout.behind))
    return sample


def _behind(sample: _Sample) -> re.Pattern[str] | None:
    """Return the expression of what stands behind nearly every message of the product, if anything does."""
    ends = [line.text.rstrip()[-_LONGEST_BEHIND:] for line in sample.carried]
    rows = [re.compile(layout.behind) for layout in LAYOUTS if layout.behind and not layout.begins]
    rows = [row for row in rows if sample.ours and sum(1 for end in ends if row.search(end)) * 2 >= len(sample.ours)]
    if not rows:
        return None
    assembler = MessageAssembler(FileContext(form=sample.form))
    made = [found for place, line in enumerate(sample.lines) for found in assembler.add_line(place, place, line)]
    texts = [found.text for found in (*made, *assembler.end()) if isinstance(found, Message) and found.ours]
    return next((row for row in rows if sum(1 for text in texts if row.search(text)) >= _MOST * len(texts)), None)


def _day_order(sample: _Sample, later: Sequence[str], modified_year: int) -> DayOrder:
    """Return the order of day and month in dates of numbers, as far as the dates of the file show it."""
    dates = [date for line in (*sample.lines, *later) if (date := bare_date(line))]
    if not dates:
        return ""
    places: dict[DayOrder, tuple[int, int, int]] = {"day-first": (3, 2, 1), "month-first": (3, 1, 2)}
    if all(date.third <= _LAST_DAY for date in dates):
        places["year-first"] = (1, 2, 3)
    ordered = {
        order: [(int(it[year]), int(it[month]), int(it[day])) for it in dates]
        for order, (year, month, day) in places.items()
    }
    falls = {
        order: sum(1 for before, after in pairwise(many) if after < before)
        for order, many in ordered.items()
        if all(_is_date(*one, modified_year) for one in many)
    }
    best = [order for order, count in falls.items() if count == min(falls.values())]
    return best[0] if len(best) == 1 else ""


def _is_date(year: int, month: int, day: int, latest_year: int) -> bool:
    return 1 <= month <= _LAST_MONTH and 1 <= day <= _LAST_DAY and (year if year > 99 else 2000 + year) <= latest_year


def _times(sample: _Sample) -> Iterator[tuple[str, int]]:
    """Yield stream and time of each message that has a date."""
    is_carried = sample.form.carries_lines or _is_carried(sample)
    for head, carried in zip(sample.heads, sample.carried, strict=True):
        is_own = head is not None and head.stamp is not None and not (is_carried and carried.collected)
        stamp = head.stamp if head and is_own else carried.collected
        if stamp is not None and stamp.lacks != "date":
            yield carried.stream, stamp.us


def _is_falling(times: Iterable[tuple[str, int]]) -> bool:
    """Return whether nearly all times are earlier than those before them."""
    lasts: dict[str, int] = {}
    falls = rises = 0
    for stream, us in times:
        before = lasts.get(stream, us)
        falls, rises, lasts[stream] = falls + (us < before), rises + (us > before), us
    return falls > 1 and falls >= 0.95 * (falls + rises)


def _is_carried(sample: _Sample) -> bool:
    """Return whether a container engine carries each printed line, with the time at which it got the line."""
    lines = [line for line in sample.carried if line.text.strip()]
    return sum(1 for line in lines if line.collected and not line.structured) > _MOST * len(lines)


def _columns(lines: Sequence[str]) -> int:
    """Return the column at which lines are cut, or 0: the longest ones are of one length, and end in different ways."""
    lengths = [len(line.rstrip("\r\n")) for line in lines]
    longest = max(lengths, default=0)
    if longest < _LEAST_COLUMNS:
        return 0
    ends = {
        re.sub(r"[0-9a-f]+", "0", line.rstrip("\r\n")[-40:])
        for line, length in zip(lines, lengths, strict=True)
        if length == longest
    }
    return longest if len(ends) > (1 if longest in _USUAL_COLUMNS else 2) else 0


def _notes(form: FileForm, lines: Sequence[str]) -> Iterator[str]:
    date = next(filter(None, map(bare_date, lines)), None)
    if date is not None:
        taken = form.day_order or ("day-first" if date.third > _LAST_DAY else "month-first")
        yield f"dates such as {date.text} are read {taken.replace('-', ' ')}" + "; nothing in it shows their order" * (
            not form.day_order
        )
    if form.lead is not None and not any(layout.lead == form.lead.pattern for layout in LAYOUTS):
        yield f"its layout is not known here; its times were found after {form.lead.pattern}"
    if form.is_falling:
        yield "its newest messages stand first; they were put in the order of time"
    if form.columns:
        yield f"its lines are cut at column {form.columns}: what stood behind is not known"
