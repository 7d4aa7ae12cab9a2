"""The records that a query of Spark wants, by the filters that are pushed down: which files and lines are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.journal.files import (
    OPEN_DIRECTORY,
    RUN_PREFIX,
    journal_files,
    open_files,
    sealed_files,
)
from quarterdeck.backend.pipeline.judging.lines import NO_RUN

DAY_US = 86_400_000_000
EVER = date.min, date.max
NEVER_NULL = (("run",), ("kind",), ("event",), ("event", "kind"))


class WantedRecords:
    """The runs, kinds of events and days that all filters want; at first all of them."""

    def __init__(self) -> None:
        self._mentions: list[list[bytes]] = []
        """A wanted line has one word of each."""
        self._runs: frozenset[str] | None = None
        """None: all, as for `_kinds`."""
        self._kinds: frozenset[str] | None = None
        self._first_day, self._last_day = EVER

    def narrow(self, wanted: Filter) -> bool:
        """Note a filter. Return whether just its records are read then, so that nothing is left to Spark."""
        match wanted:
            case EqualTo(("run",), str(run)):
                self._narrow_runs([run])
            case In(("run",), runs):
                self._narrow_runs(runs)
            case EqualTo(("kind",) | ("event", "kind"), str(kind)):
                self._narrow_kinds([kind])
            case In(("kind",) | ("event", "kind"), kinds):
                self._narrow_kinds(kinds)
            case EqualTo(("date",), date() as day):
                self._narrow_days(day, day)
            case GreaterThanOrEqual(("date",), date() as day):
                self._narrow_days(day, date.max)
            case LessThanOrEqual(("date",), date() as day):
                self._narrow_days(date.min, day)
            case GreaterThan(("date",), date() as day) if day < date.max:
                self._narrow_days(day + timedelta(days=1), date.max)
            case LessThan(("date",), date() as day) if day > date.min:
                self._narrow_days(date.min, day - timedelta(days=1))
            case _:
                return isinstance(wanted, IsNotNull) and wanted.attribute in NEVER_NULL
        return True

    def _narrow_runs(self, runs: Sequence[str]) -> None:
        if NO_RUN not in runs:  # whose lines do not name it so
            self._mentions.append(_mentions(runs))
        self._runs = frozenset(runs) if self._runs is None else self._runs.intersection(runs)

    def _narrow_kinds(self, kinds: Sequence[str]) -> None:
        self._mentions.append(_mentions(kinds))
        self._kinds = frozenset(kinds) if self._kinds is None else self._kinds.intersection(kinds)

    def _narrow_days(self, first: date, last: date) -> None:
        self._first_day, self._last_day = max(first, self._first_day), min(last, self._last_day)

    def files(self, path: Path) -> list[Path]:
        """Return the files of a journal; folders of runs that are not wanted are not listed. Raises `NoJournal`."""
        folders = sorted(path.glob(f"{RUN_PREFIX}*")) if path.is_dir() and not path.name.startswith(RUN_PREFIX) else []
        if self._runs is None or NO_RUN in self._runs or not folders:
            return journal_files(path)
        wanted = (folder for folder in folders if folder.name.removeprefix(RUN_PREFIX) in self._runs)
        of_runs = [file for folder in wanted for file in sealed_files(folder)]
        return [*sealed_files(path), *of_runs, *open_files(path), *open_files(path / OPEN_DIRECTORY)]

    def may_have(self, line: bytes) -> bool:
        """Return whether the record in the line may be wanted, without decoding it."""
        return all(any(word in line for word in words) for words in self._mentions)

    def has(self, record: Record) -> bool:
        """Return whether the record is wanted."""
        return (
            (self._runs is None or (record.run or NO_RUN) in self._runs)
            and (self._kinds is None or type(record.event).__struct_config__.tag in self._kinds)
            and (
                (self._first_day, self._last_day) == EVER
                or midnight_us(self._first_day) <= record.utc < midnight_us(self._last_day) + DAY_US
            )
        )


def midnight_us(day: date) -> int:
    """Return when the day begins, in microseconds since 1970, UTC."""
    return (day - date(1970, 1, 1)).days * DAY_US


def dates_of(utc_us: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the days of these times; null for those that Python has no date for."""
    is_date = pc.and_(pc.greater_equal(utc_us, midnight_us(date.min)), pc.less(utc_us, midnight_us(date.max) + DAY_US))
    return pc.if_else(is_date, utc_us, pa.scalar(None, pa.int64())).cast(pa.timestamp("us")).cast(pa.date32())


def _mentions(words: Iterable[str]) -> list[bytes]:
    """Return what a line with one of these words contains; any line where a word may be written in several ways."""
    wanted = list(words)
    plain = all(re.fullmatch(r"[\w .:-]+", word, re.ASCII) for word in wanted)
    return [f'"{word}"'.encode() for word in wanted] if plain else [b""]
