"""How commands are declared and how results are printed: options, data on stdout in the format asked for, narration on stderr."""

from __future__ import annotations

import csv
import itertools
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from io import StringIO
from math import isfinite
from typing import Annotated, Any

import msgspec
import typer

from quarterdeck.backend.core.causes import one_line, several_lines


def flag(help: str, name: str) -> Any:
    """Return the option of a boolean parameter, which is off unless it is given."""
    return typer.Option(name, help=help)


def option(help: str, metavar: str | None = None, *names: str, **more: Any) -> Any:
    """Return an option that is followed by a value; its name is that of its parameter where no `names` are given."""
    if "min" in more:
        more.setdefault("callback", _finite)
    return typer.Option(*names, metavar=metavar, help=help, **more)


def _finite(number: Any) -> Any:
    if isinstance(number, float) and not isfinite(number):
        raise typer.BadParameter(f"{number} is no amount; write a number")
    return number


def argument(help: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Argument(metavar=metavar, help=help, **more)


TABLE_CHUNK_ROWS = 1000
"""A table is aligned in pieces of this many rows, so that a long listing starts at once and is never held whole."""

MOST_UNBROKEN = 24
"""Letters of a word that a table on a terminal does not break, however narrow the terminal is."""


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"

    @property
    def is_flat(self) -> bool:
        """Whether a cell of this format holds one line of text and no structure."""
        return self in (Format.TABLE, Format.CSV)


FormatOption = Annotated[Format, option("Format of what is printed on stdout.", None, "-o", "--output")]
ResultFormatOption = Annotated[
    Format | None, option("Format of the result on stdout: json, or none on a terminal.", None, "-o", "--output")
]


FORMULA = ("=", "+", "-", "@")
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Characters that steer a terminal, and that JSON lets stand as they are. They are written as escapes, which mean the same."""


def say(text: str) -> None:
    """Narrate: one line for people, on stderr, if that is open."""
    with suppress(OSError):
        print(one_line(text), file=sys.stderr, flush=True)


def narrate(text: str) -> None:
    """Narrate text of several lines."""
    for line in text.splitlines() or [""]:
        say(line)


def write_line(text: object) -> None:
    """Print one line for people on stdout."""
    write_text(one_line(str(text)) + "\n")


def write_text(text: str) -> None:
    """Print text of several lines on stdout."""
    sys.stdout.write(several_lines(text))
    sys.stdout.flush()


def write_document(document: Mapping[str, object], output: Format) -> None:
    """Print one result. In a table and in CSV each of its fields is a row."""
    if output.is_flat:
        rows = ({"field": name, "value": value} for name, value in document.items())
        write_rows(rows, ("field", "value"), output)
    elif output is Format.YAML:
        _write_yaml(document)
    else:
        _write(_json(document, indent=output is Format.JSON) + "\n")


def write_result(document: Mapping[str, object], output: Format | None) -> None:
    """Print the result of what was narrated: as JSON, or on a terminal only in a format that is asked for."""
    if output is not None or not sys.stdout.isatty():
        write_document(document, output or Format.JSON)


def write_rows(rows: Iterable[Mapping[str, object]], columns: Sequence[str], output: Format) -> None:
    """Print a listing row by row. `columns` are the fields shown where a format is flat; others print whole rows."""
    match output:
        case Format.TABLE:
            _write_table(rows, columns)
        case Format.CSV:
            _write_csv(rows, columns)
        case Format.JSON:
            divider = "[\n"
            for row in rows:
                _write(divider + _json(row))
                divider = ",\n"
            _write("\n]\n" if divider == ",\n" else "[]\n")
        case Format.JSONL:
            for row in rows:
                _write(_json(row) + "\n")
        case Format.YAML:
            some = False
            for row in rows:
                _write_yaml([row])
                some = True
            if not some:
                _write("[]\n")


def _write(text: str) -> None:
    """Write to stdout, as all output does: no character in it steers a terminal.

    In JSON, and in a quoted text of YAML, an escape means the same as the character in its place.
    """
    sys.stdout.write(UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def _json(value: object, *, indent: bool = False) -> str:
    encoded = msgspec.json.encode(value)
    return (msgspec.json.format(encoded, indent=2) if indent else encoded).decode()


def _write_yaml(value: object) -> None:
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.representer.add_representer(str, _quoted_where_unseen)
    text = StringIO()
    yaml.dump(msgspec.to_builtins(value), text)
    _write(text.getvalue())


def _quoted_where_unseen(representer: Any, text: str) -> Any:
    return representer.represent_scalar("tag:yaml.org,2002:str", text, style='"' if UNSEEN.search(text) else None)


def _write_csv(rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> None:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for cells in itertools.chain([columns], ([_csv_cell(row.get(column)) for column in columns] for row in rows)):
        writer.writerow(cells)
        _write(text.getvalue())
        text.seek(0)
        text.truncate()


def _csv_cell(value: Any) -> str:
    """Return a cell that no spreadsheet takes for a formula: a text that could begin one gets an apostrophe (OWASP)."""
    cell = _printable(_cell(value))
    return f"'{cell}" if cell.startswith(FORMULA) and not isinstance(value, int | float) else cell


def _write_table(rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Into a pipe nothing may be cut off or wrapped, however wide it is.
    console = Console(width=None if sys.stdout.isatty() else 100_000, highlight=False, markup=False, emoji=False)
    remaining = iter(rows)
    with_header = True
    while (chunk := list(itertools.islice(remaining, TABLE_CHUNK_ROWS))) or with_header:
        table = Table(box=None, pad_edge=False, show_header=with_header, header_style="bold")
        drawn_rows = [[_printable(_words(row.get(column))) for column in columns] for row in chunk]
        for place, column in enumerate(columns):
            title = column.replace("_", " ")
            words = [word for cells in (*drawn_rows, (title,) * len(columns)) for word in cells[place].split()]
            table.add_column(title, overflow="fold", min_width=min(MOST_UNBROKEN, max(map(len, words), default=0)))
        for cells in drawn_rows:
            table.add_row(*map(Text, cells))
        with console.capture() as drawn:
            console.print(table)
        sys.stdout.write(
            "".join(f"{line.rstrip()}\n" for line in drawn.get().splitlines())
        )  # with styles on a terminal
        with_header = False


def _words(value: Any) -> str:
    """Return a cell for people: fields by name and value, entries of a list separated, without signs of JSON."""
    match value:
        case Mapping():
            return ", ".join(f"{name} {_words(part)}" for name, part in value.items() if part not in (None, "", [], {}))
        case list() | tuple() if not all(isinstance(part, str) for part in value):
            return "; ".join(map(_words, value))
        case _:
            return _cell(value)


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return str(value)
        case list() | tuple() if all(isinstance(part, str) for part in value):
            return " ".join(value)
        case _:
            return _json(value)


def _printable(text: str) -> str:
    """Remote text must not steer the terminal: whatever is no visible letter is shown as its code."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)
