"""Times as logs write them.

A time may lack its zone, its year, or its whole date. `LogTime` says what it lacks; that is filled in from what else is known.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

from msgspec import Struct

from quarterdeck.backend.core.properties import SECOND_US

DAY_US = 86_400 * SECOND_US
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
_CLOCK = r"(\d\d?):(\d\d):(\d\d)(?:[.,:](\d{1,9}))?"
_ZONE = r"(?: ?(Z|UTC|GMT|[+-]\d\d:?\d\d)(?![\w:]))?"
_ISO = re.compile(rf"(\d{{4}}[-/.]\d\d[-/.]\d\d[T _]\d\d?:\d\d:\d\d)(?:[.,:](\d{{1,9}}))?{_ZONE}", re.ASCII)
_TIME_ONLY = re.compile(rf"(?:\d\d )?{_CLOCK}(?![\w:.])", re.ASCII)
_DAY_FIRST = re.compile(rf"(\d\d?)[ ./-]([^\W\d_]{{3,9}}|\d\d)\.?[ ./-](\d{{4}})[ :]{_CLOCK}{_ZONE}")
_MONTH_FIRST = re.compile(
    rf"([^\W\d_]{{3,9}}|\d\d?月)\.? (\d\d?), (\d{{4}}),?[ \u202f]{_CLOCK}(?:[ \u202f]([^\W\d_]\.?[^\W\d_]\.?))?(?=\s|$)"
)
_SYSLOG = re.compile(r"([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d)(?![\d.,])", re.ASCII)
_SLASHED = re.compile(rf"(\d\d?)/(\d\d?)/(\d\d(?:\d\d)?),? {_CLOCK}{_ZONE}", re.ASCII)
_EPOCH_MILLIS = re.compile(r"(1\d{9})(?:\.?(\d{3})(\d{3})?)?(?!\d)", re.ASCII)


def parse_time(text: str, start: int = 0) -> LogTime | None:
    """Return the time that stands in `text` at `start`, or None when there is none or it is impossible."""
    first = text[start : start + 1]
    try:
        if first.isdecimal():
            return _numeric(text, start)
        if first.isalpha():
            return _with_month_name(text, start)
    except (ValueError, OverflowError, KeyError):  # KeyError: no such month
        return None
    return None


def _numeric(text: str, start: int) -> LogTime | None:
    if found := _ISO.match(text, start):
        second, fraction, zone = found.groups()
        return _stamp(_second(second), _micros(fraction), zone, found.end())
    if found := _TIME_ONLY.match(text, start):
        return LogTime(_clock(found.groups()), lacks="date", end=found.end())
    if found := _DAY_FIRST.match(text, start):
        day, month, year, *clock, zone = found.groups()
        return _stamp(_day(year, _month(month), day), _clock(clock), zone, found.end())
    if found := _SLASHED.match(text, start):
        month, day, year, *clock, zone = found.groups()
        return _stamp(_day(year if len(year) == 4 else f"20{year}", month, day), _clock(clock), zone, found.end())
    if found := _EPOCH_MILLIS.match(text, start):
        seconds, millis, micros = found.groups()
        us = int(seconds) * SECOND_US + int(millis or 0) * 1000 + int(micros or 0)
        return LogTime(us, zoned=True, end=found.end())
    if found := _MONTH_FIRST.match(text, start):
        return _month_first(found)
    return None


def _with_month_name(text: str, start: int) -> LogTime | None:
    if found := _MONTH_FIRST.match(text, start):
        return _month_first(found)
    if found := _SYSLOG.match(text, start):
        month, day, *clock = found.groups()
        return LogTime(_day("1972", _month(month), day) + _clock([*clock, None]), lacks="year", end=found.end())
    return None


def _month_first(found: re.Match[str]) -> LogTime:
    month, day, year, *clock, half = found.groups()
    of_day = _clock(clock)
    if half is not None:
        hour = of_day // (3600 * SECOND_US)
        afternoon = half.lower() in _AFTERNOON
        of_day += ((12 if afternoon else 0) - (12 if hour == 12 else 0)) * 3600 * SECOND_US
    return LogTime(_day(year, _month(month), day) + of_day, end=found.end())


def _stamp(day_us: int, of_day: int, zone: str | None, end: int) -> LogTime:
    if zone is None:
        return LogTime(day_us + of_day, end=end)
    if zone in ("Z", "UTC", "GMT"):
        return LogTime(day_us + of_day, zoned=True, end=end)
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return LogTime(day_us + of_day - (1 if zone[0] == "+" else -1) * minutes * 60 * SECOND_US, zoned=True, end=end)


@lru_cache(maxsize=4096)
def _second(text: str) -> int:
    """Return a second, in microseconds: many lines have the same."""
    return _day(text[:4], text[5:7], text[8:10]) + _clock((*text[11:].split(":"), None))


@lru_cache(maxsize=4096)
def _day(year: str, month: str | int, day: str) -> int:
    return (date(int(year), int(month), int(day)).toordinal() - _EPOCH) * DAY_US


def _month(text: str) -> int:
    if text[0].isdigit():
        return int(text.rstrip("月"))
    lower = text.lower()
    return _MONTHS.get(lower) or _MONTHS[lower[:3]]


def _clock(parts: list[str | None] | tuple[str | None, ...]) -> int:
    hours, minutes, seconds, fraction = parts
    if int(hours or 0) > 23 or int(minutes or 0) > 59 or int(seconds or 0) > 60:
        raise ValueError("no time of day")
    return (int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)) * SECOND_US + _micros(fraction)


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
def _offset_us(zone: tzinfo, minute: int) -> int:
    try:
        moment = datetime(1970, 1, 1, tzinfo=zone) + timedelta(minutes=minute)
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
        return stamp.us - _offset_us(zone, stamp.us // (60 * SECOND_US))
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
