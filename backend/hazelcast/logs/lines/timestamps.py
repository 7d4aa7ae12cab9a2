"""Times as logs write them.

A time may lack its zone, its year, or its whole date. `LogTime` says what it lacks; that is filled in from what else is known.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from msgspec import Struct

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.lines.form import DayOrder

DAY_US = 86_400 * SECOND_US
MINUTE_US = 60 * SECOND_US
SET_BACK_US = 3600 * SECOND_US
"""By how much clocks are set back at the end of summer time."""
SET_BACK_LEAST_US = 1800 * SECOND_US
"""Times that fall by less than this have another reason."""
_HALF_HOUR_US = 1800 * SECOND_US
_CLOCKS_APART_US = 60 * SECOND_US
"""By how much a line may seem to be collected before it was logged."""
_MAX_OFFSET_US = 15 * 3600 * SECOND_US
_EPOCH = date(1970, 1, 1).toordinal()


class LogTime(Struct, frozen=True, gc=False):
    """A time as written. `us` counts from 1970 on the clock of its zone, UTC when `zoned`."""

    us: int
    zoned: bool = False
    lacks: Literal["", "date", "year"] = ""
    """Without a date, `us` is the time of day; without a year, it is in the year 1972."""
    end: int = 0
    """Where the text of the time ends."""
    zone: str = ""
    """The name that it writes for its zone, where that is the name of several."""


_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan janv gen ene janeiro", "feb febr févr fev fév", "mar mär märz mars maa mrt mrz", "apr avr abr",
            "may mai maj mei mag", "jun juin juni giu", "jul juil juli lug", "aug août ago aoû",
            "sep sept set", "oct okt ott out", "nov", "dec dez déc dic des",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_AFTERNOON = {"pm", "em", "p.m.", "pm.", "午後", "下午", "오후", "nachm.", "μμ"}
_ZONE_HOURS: dict[str, float] = {
    **{"Z": 0, "UTC": 0, "GMT": 0, "UT": 0, "WET": 0, "WEST": 1, "CET": 1, "MEZ": 1, "CEST": 2, "MESZ": 2, "EET": 2},
    **{"EEST": 3, "MSK": 3, "TRT": 3, "SAST": 2, "CAT": 2, "EAT": 3, "WAT": 1, "PKT": 5, "ICT": 7, "WIB": 7, "HKT": 8},
    **{"SGT": 8, "AWST": 8, "JST": 9, "KST": 9, "ACST": 9.5, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13},
    **{"EST": -5, "EDT": -4, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10},
    **{"NST": -3.5, "NDT": -2.5, "BRT": -3, "ART": -3, "CLT": -4, "COT": -5, "PET": -5},
}
_AMBIGUOUS = ("CST", "IST", "BST", "AST", "ADT", "GST", "SST", "WST", "ECT", "AMT")
"""Names of several zones."""
_NAMED_ZONES = "|".join(sorted((*_ZONE_HOURS, *_AMBIGUOUS), key=lambda name: (-len(name), name)))
_CLOCK = r"(\d\d?):(\d\d):(\d\d)(?:[.,:](\d{1,9}))?"
_HALF = r"(?:[ \u202f]?([AaPp]\.?[Mm]\b\.?))?"
_ZONE = rf"(?:(?= ?\[?[A-Z+-]) ?((?:UTC|GMT)?[+-]\d\d:?\d\d(?![\d:])|\[?(?:{_NAMED_ZONES}|[A-Z][a-z]+/[A-Z][A-Za-z_]+)\b\]?))?"
_ISO = re.compile(
    rf"(\d{{4}}[-/.]\d\d[-/.]\d\d[T _-]\d\d?[:.-]\d\d[:.-]\d\d)(?:[.,:](\d{{1,9}}))?{_HALF}{_ZONE}", re.ASCII
)
_TIME_ONLY = re.compile(rf"(?:\d\d )?{_CLOCK}(?![\w:.])", re.ASCII)
_COMPACT = re.compile(
    rf"((?:19|20)\d\d)(\d\d)(\d\d)[T _-]?(\d\d):?(\d\d):?(\d\d)(?:[.,:]?(\d{{1,9}}))?{_ZONE}(?![\w:])", re.ASCII
)
_DAY_FIRST = re.compile(rf"(\d\d?)[ ./-]?([^\W\d_]{{3,9}})\.?[ ./-]?(\d{{4}}|\d\d),?[ :T-]{_CLOCK}{_HALF}{_ZONE}")
_NUMBERS = re.compile(rf"(\d\d?)([./-])(\d\d?)\2(\d{{4}}|\d\d),?[ :T-]{_CLOCK}{_HALF}{_ZONE}", re.ASCII)
_BARE_NUMBERS = re.compile(r"(?<![\d/.-])(?P<date>(\d\d?)[/-](\d\d?)[/-](\d{4}|\d\d)),?[ T]\d\d?:\d\d:\d\d", re.ASCII)
_DATE_WITHIN = 200
_YEAR_NAMED = re.compile(rf"(\d{{4}})[ ./-]([^\W\d_]{{3,9}})\.?[ ./-](\d\d?),?[ :T-]{_CLOCK}{_HALF}{_ZONE}")
_NO_YEAR = re.compile(rf"(\d\d)([./-])(\d\d)\.?[ T]{_CLOCK}(?![\w:])", re.ASCII)
_HALF_IN_WORDS = r"(?:[ \u202f]([^\W\d_]\.?[^\W\d_]\.?|nachm\.|vorm\.)(?!\w))?"
_MONTH_FIRST = re.compile(
    rf"([^\W\d_]{{3,9}}|\d\d?月)\.? (\d\d?),? (\d{{4}}),?(?: @| at)?[ \u202f]{_CLOCK}{_HALF_IN_WORDS}{_ZONE}(?![\w:])"
)
_WEEKDAY = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? ")
_OF_DATE = re.compile(
    rf"([A-Z][a-z]{{2}}) +(\d\d?) {_CLOCK}(?: ([A-Z]{{1,5}}|[+-]\d\d:?\d\d))? (\d{{4}})(?!\w)", re.ASCII
)
"""As the command ``date`` writes it, and C's ``asctime``."""
_SYSLOG = re.compile(r"([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d)(?![\d.,])", re.ASCII)
_EPOCH_MILLIS = re.compile(r"(1\d{9})(?:\.?(\d{3})(\d{3})?(?:\d{3})?)?(?!\d)", re.ASCII)


def parse_time(text: str, start: int = 0, order: DayOrder = "") -> LogTime | None:
    """Return the time that stands in `text` at `start`, or None when there is none or it is impossible.

    `order` is that of day and month in dates of numbers, where it is known.
    """
    first = text[start : start + 1]
    try:
        if first.isdecimal():
            return _numeric(text, start, order)
        if first.isalpha():
            return _with_month_name(text, start, order)
    except (ValueError, OverflowError, KeyError):  # KeyError: no such month
        return None
    return None


def _numeric(text: str, start: int, order: DayOrder) -> LogTime | None:
    if found := _ISO.match(text, start):
        second, fraction, half, zone = found.groups()
        return _stamp(_second(second) + _after_noon(second[11:13], half), _micros(fraction), zone, found.end())
    if found := _TIME_ONLY.match(text, start):
        return LogTime(_clock(found.groups()), lacks="date", end=found.end())
    if found := _NUMBERS.match(text, start):
        first, mark, second, third, *clock, half, zone = found.groups()
        return _stamp(_day(*_dated(first, mark, second, third, order)), _clock(clock, half), zone, found.end())
    for pattern, place in ((_DAY_FIRST, 2), (_YEAR_NAMED, 0)):
        if found := pattern.match(text, start):
            named = (found[1], found[2], found[3])
            year, day = named[place], named[2 - place]
            *clock, half, zone = found.groups()[3:]
            day_us = _day(year if len(year) == 4 else f"20{year}", _month(found[2]), day)
            return _stamp(day_us, _clock(clock, half), zone, found.end())
    if found := _EPOCH_MILLIS.match(text, start):
        seconds, millis, micros = found.groups()
        us = int(seconds) * SECOND_US + int(millis or 0) * 1000 + int(micros or 0)
        return LogTime(us, zoned=True, end=found.end())
    if found := _COMPACT.match(text, start):
        year, month, of_month, *parts, zone = found.groups()
        return _stamp(_day(year, month, of_month), _clock(parts), zone, found.end())
    if found := _NO_YEAR.match(text, start):
        first, mark, second, *clock = found.groups()
        day, month = (first, second) if mark == "." or order == "day-first" else (second, first)
        return LogTime(_day("1972", month, day) + _clock(clock), lacks="year", end=found.end())
    if found := _MONTH_FIRST.match(text, start):
        return _month_first(found)
    return None


def _dated(first: str, mark: str, second: str, third: str, order: DayOrder) -> tuple[str, str, str]:
    """Return year, month and day of three numbers. Without an `order`, four digits of the year mean the day first."""
    is_month_first = order == "month-first" or (not order and len(third) == 2 and mark == "/" and int(first) <= 12)
    if order == "year-first" or (
        not order and len(third) == 2 and int(first) > 12 and mark == "/" and int(third) <= 31
    ):
        return f"20{first}", second, third
    day, month = (second, first) if is_month_first else (first, second)
    return third if len(third) == 4 else f"20{third}", month, day


class BareDate(NamedTuple):
    """A date of three numbers, such as 08/06/2023, which do not show their order."""

    text: str
    first: int
    second: int
    third: int


def bare_date(text: str) -> BareDate | None:
    """Return the first date in `text` that does not show the order of its numbers."""
    found = _BARE_NUMBERS.search(text, 0, _DATE_WITHIN)
    return BareDate(found["date"], int(found[2]), int(found[3]), int(found[4])) if found else None


def _with_month_name(text: str, start: int, order: DayOrder) -> LogTime | None:
    if found := _WEEKDAY.match(text, start):
        start = found.end()
        if text[start : start + 1].isdecimal():
            return _numeric(text, start, order)
    if found := _MONTH_FIRST.match(text, start):
        return _month_first(found)
    if found := _OF_DATE.match(text, start):
        month, day, *clock, zone, year = found.groups()
        return _stamp(_day(year, _month(month), day), _clock(clock), zone, found.end())
    if found := _SYSLOG.match(text, start):
        month, day, *clock = found.groups()
        return LogTime(_day("1972", _month(month), day) + _clock([*clock, None]), lacks="year", end=found.end())
    return None


def _month_first(found: re.Match[str]) -> LogTime:
    month, day, year, *clock, half, zone = found.groups()
    return _stamp(_day(year, _month(month), day), _clock(clock, half), zone, found.end())


def _stamp(day_us: int, of_day: int, zone: str | None, end: int) -> LogTime:
    if zone is None:
        return LogTime(day_us + of_day, end=end)
    offset_us = _offset_of(zone.strip("[]"), (day_us + of_day) // (60 * SECOND_US))
    if offset_us is None:
        return LogTime(day_us + of_day, end=end, zone=zone)
    return LogTime(day_us + of_day - offset_us, zoned=True, end=end)


@lru_cache(maxsize=4096)
def _offset_of(zone: str, minute: int) -> int | None:
    """Return how far a zone is ahead of UTC, or None for a name that several zones have. Raises `ValueError` for one of none."""
    if zone in _ZONE_HOURS:
        return round(_ZONE_HOURS[zone] * 3600) * SECOND_US
    if zone in _AMBIGUOUS:
        return None
    return offset_us(zone_named(zone.removeprefix("UTC").removeprefix("GMT")), minute)


@lru_cache(maxsize=4096)
def _second(text: str) -> int:
    """Return a second, in microseconds: many lines have the same."""
    return _day(text[:4], text[5:7], text[8:10]) + _clock((*re.split("[:.-]", text[11:]), None))


@lru_cache(maxsize=4096)
def _day(year: str, month: str | int, day: str) -> int:
    return (date(int(year), int(month), int(day)).toordinal() - _EPOCH) * DAY_US


def _month(text: str) -> int:
    if text[0].isdigit():
        return int(text.rstrip("月"))
    lower = text.lower()
    return _MONTHS.get(lower) or _MONTHS[lower[:3]]


def _clock(parts: list[str | None] | tuple[str | None, ...], half: str | None = None) -> int:
    hours, minutes, seconds, fraction = parts
    if int(hours or 0) > 23 or int(minutes or 0) > 59 or int(seconds or 0) > 60:
        raise ValueError("no time of day")
    of_day = (int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)) * SECOND_US + _micros(fraction)
    return of_day + _after_noon(hours, half)


def _after_noon(hours: str | None, half: str | None) -> int:
    """Return what a half of the day adds to an hour from 1 to 12, in microseconds."""
    if half is None:
        return 0
    hour = int(re.sub(r"\D", "", hours or "") or 0)
    is_afternoon = half.lower() in _AFTERNOON
    return (12 * (is_afternoon and hour < 12) - 12 * (not is_afternoon and hour == 12)) * 3600 * SECOND_US


@lru_cache(maxsize=4096)
def _micros(fraction: str | None) -> int:
    return int(f"{fraction:0<6}"[:6]) if fraction else 0


def zone_named(name: str) -> tzinfo:
    """Return the zone of an IANA name, ``UTC`` or an offset such as ``+02:00``. Raises `ValueError` with a hint."""
    if found := re.fullmatch(r"([+-])(\d\d):?(\d\d)", name):
        minutes = int(found[2]) * 60 + int(found[3])
        return timezone(timedelta(minutes=minutes if found[1] == "+" else -minutes))
    if name in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"zone: {name!r} is not a time zone; write Europe/Athens or +02:00") from error


@lru_cache(maxsize=4096)
def offset_us(zone: tzinfo, minute: int, fold: int = 0) -> int:
    """Return how far `zone` is ahead of UTC at a minute of its own clock; `fold` 1 is the second of two such minutes."""
    try:
        moment = (datetime(1970, 1, 1, tzinfo=zone) + timedelta(minutes=minute)).replace(fold=fold)
    except OverflowError:
        return 0
    offset = moment.utcoffset()
    return round(offset.total_seconds()) * SECOND_US if offset else 0


def to_utc(stamp: LogTime, zone: tzinfo | None, collected: int | None) -> int:
    """Convert `stamp` to UTC microseconds.

    Where no zone is known, but the line was collected a moment later at a known UTC time, the difference gives the zone; else the
    time counts as UTC.
    """
    if stamp.zoned:
        return stamp.us
    if zone is not None:
        return stamp.us - offset_us(zone, stamp.us // (60 * SECOND_US))
    if collected is not None and stamp.lacks == "":
        offset = -((collected + _CLOCKS_APART_US - stamp.us) // _HALF_HOUR_US) * _HALF_HOUR_US
        if abs(offset) <= _MAX_OFFSET_US:
            return stamp.us - offset
    return stamp.us


def with_year(us: int, modified_us: int) -> int:
    """Move a time of 1972 to the last year in which it is not later than a day after `modified_us`."""
    moment = datetime(1970, 1, 1) + timedelta(microseconds=us)
    latest = datetime(1970, 1, 1) + timedelta(microseconds=max(modified_us, 0) + DAY_US)
    for year in range(latest.year, latest.year - 5, -1):
        if (moment.month, moment.day) == (2, 29) and (year % 4 or (year % 100 == 0 and year % 400)):
            continue
        moved = moment.replace(year=year)
        if moved <= latest:
            return us + (moved - moment) // timedelta(microseconds=1)
    return us
