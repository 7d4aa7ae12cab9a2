"""The forms of logs: how messages are laid out, dressed, exported, ordered, encoded, rotated and coloured."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from tests.hazelcast.logs.forms.recordings import Recording, Said

SECOND_US = 1_000_000
LEVELS = {"en": "INFO", "fr": "INFOS", "sv": "INFORMATION", "es": "INFORMACIÓN", "it": "INFORMAZIONI"}


@dataclass(frozen=True)
class Layout:
    """How a message is written: from its local time, its zone's name, its level, and what it says."""

    write: Callable[[datetime, str, str, Said], str]
    resolution_us: int = 1000
    has_thread: bool = True
    is_zoned: bool = False


def _ms(when: datetime, pattern: str = "%Y-%m-%d %H:%M:%S", point: str = ",") -> str:
    return f"{when:{pattern}}{point}{when.microsecond // 1000:03}"


def _full(said: Said) -> str:
    return f"com.hazelcast.internal.cluster.impl.{said.logger or 'Node'}"


def _jdk(when: datetime, zone: str, level: str, said: Said) -> str:
    hour = int(f"{when:%I}")
    return f"{when:%b} {when.day}, {when:%Y} {hour}:{when:%M:%S %p} {_full(said)}\n{level}: {said.prefixed}"


def _odl(when: datetime, zone: str, level: str, said: Said) -> str:
    stamp = _ms(when, "%Y-%m-%dT%H:%M:%S", ".") + when.strftime("%z")
    return (
        f"[{stamp}] [Payara 5.201] [{level}] [] [{_full(said)}] [tid: _ThreadID=30 _ThreadName={said.thread or 'x'}] "
        f"[timeMillis: {said.utc // 1000}] [levelValue: 800] [[\n  {said.prefixed}]]"
    )


def _uniform(when: datetime, zone: str, level: str, said: Said) -> str:
    stamp = _ms(when, "%Y-%m-%dT%H:%M:%S", ".") + when.strftime("%z")
    return f"[#|{stamp}|{level}|Payara 4.1|{_full(said)}|_ThreadID=30;|\n  {said.prefixed}|#]"


def _dashed(when: Callable[[datetime, str, Said], str]) -> Callable[[datetime, str, str, Said], str]:
    return lambda t, zone, level, s: f"{when(t, zone, s)} {level} [{s.thread or 'x'}] {_full(s)} - {s.prefixed}"


LAYOUTS: dict[str, Layout] = {
    "log4j2": Layout(
        lambda t, _, level, s: f"{_ms(t)} [ {level}] [{s.thread or 'x'}] [c.h.i.c.i.{s.logger or 'Node'}]: {s.prefixed}"
    ),
    "spring": Layout(
        lambda t, _, level, s: f"{_ms(t, point='.')}  {level} 1 --- [{s.thread or 'x'}] {_full(s)}  : {s.prefixed}"
    ),
    "jboss": Layout(lambda t, _, level, s: f"{_ms(t)} {level}  [{_full(s)}] ({s.thread or 'x'}) {s.prefixed}"),
    "jdk": Layout(_jdk, SECOND_US, has_thread=False),
    "tomcat": Layout(
        lambda t, _, level, s: f"{_ms(t, '%d-%b-%Y %H:%M:%S', '.')} {level} [main] {_full(s)}.log {s.prefixed}",
        has_thread=False,
    ),
    "odl": Layout(_odl, is_zoned=True),
    "uniform": Layout(_uniform, has_thread=False, is_zoned=True),
    "carbon": Layout(
        lambda t, _, level, s: f"TID: [-1234] [] [{_ms(t)}]  {level} {{{_full(s)}}} -  {s.prefixed} {{{_full(s)}}}",
        has_thread=False,
    ),
    "braces": Layout(lambda t, _, level, s: f"{_ms(t)} {level}  {s.prefixed} {{{_full(s)}}}", has_thread=False),
    "bars": Layout(lambda t, _, level, s: f"{_ms(t)} | {level} | {s.prefixed} | {_full(s)} | main", has_thread=False),
    "iso": Layout(_dashed(lambda t, _, s: f"{_ms(t, '%Y-%m-%dT%H:%M:%S', '.')}{t:%z}"), is_zoned=True),
    "named zone": Layout(_dashed(lambda t, zone, s: f"{_ms(t)} {zone}"), is_zoned=True),
    "day first": Layout(_dashed(lambda t, _, s: _ms(t, "%d.%m.%Y %H:%M:%S"))),
    "epoch": Layout(_dashed(lambda t, _, s: str(s.utc // 1000)), is_zoned=True),
}

PREFIXES: dict[str, Callable[[str], str]] = {
    "": lambda line: line,
    "indented": lambda line: f"    {line}",
    "quoted": lambda line: f"> {line}".rstrip(),
    "stern": lambda line: f"hz-0 hazelcast {line}",
    "grep": lambda line: f"logs/m.log:{line}",
    "compose": lambda line: f"hz-1_1  | {line}",
    "compose indented": lambda line: f"      hz-1_1  | {line}",
}

EXPORTS = ("", "docker", "cri", "kubectl", "loki", "elastic", "filebeat", "csv", "array", "messages")
_KEYS: dict[str, Callable[[str, str], dict[str, object]]] = {
    "docker": lambda at, line: {"log": f"{line}\n", "stream": "stdout", "time": at},
    "loki": lambda at, line: {"line": line, "timestamp": at, "labels": {"pod": "a"}},
    "elastic": lambda at, line: {"_index": "x", "_source": {"@timestamp": at, "message": line}},
    "filebeat": lambda at, line: {"@timestamp": at, "message": line, "stream": "stdout", "log": {"file": {"path": "/x"}}},
    "array": lambda at, line: {"message": line, "timestamp": at},
}  # fmt: skip
COLOURS: dict[str, str] = {"": "", "escape": "\x1b", "lost": "", "caret": "^["}


@dataclass(frozen=True)
class Form:
    """How a recording is written."""

    layout: str = "log4j2"
    prefix: str = ""
    export: str = ""
    is_falling: bool = False
    encoding: str = ""
    """"", bom, utf-16, crlf or gz."""
    rotated: int = 1
    is_ended: bool = True
    """The last line has its end of line."""
    colour: str = ""
    language: str = "en"
    zone_hours: int = 0
    ahead_s: int = 0
    """By how much every clock is ahead."""
    is_together: bool = False
    """All members log to one file."""

    def normalized(self) -> Form:
        """Return the form without what does not go together."""
        form = self
        if form.export in ("csv", "array", "loki", "elastic", "filebeat", "docker", "cri", "kubectl", "messages"):
            form = replace(form, prefix="", colour="" if form.colour != "escape" else form.colour, rotated=1)
        if form.is_falling:
            form = replace(form, rotated=1)
        if form.colour:
            form = replace(form, prefix="")
        if form.layout == "named zone" and form.zone_hours not in ZONE_NAMES:
            form = replace(form, zone_hours=0)
        if form.colour and form.layout in ("odl", "uniform", "carbon", "braces", "bars", "epoch", "jdk"):
            form = replace(form, colour="")
        return replace(form, language=form.language if form.layout == "jdk" else "en")

    @property
    def zone(self) -> str:
        """The zone that is to be named when it is read: the times have none."""
        needs = self.zone_hours and not LAYOUTS[self.layout].is_zoned
        return f"{'+' if self.zone_hours >= 0 else '-'}{abs(self.zone_hours):02}:00" if needs else ""


ZONE_NAMES = {0: "UTC", 1: "CET", 2: "CEST", -5: "EST", -7: "PDT"}


def reference(recording: Recording, form: Form) -> Recording:
    """Return what a form keeps of a recording: times at its resolution, threads where it has them."""
    layout = LAYOUTS[form.layout]
    return {
        file: [
            replace(
                one,
                utc=(one.utc + form.ahead_s * SECOND_US) // layout.resolution_us * layout.resolution_us,
                thread=one.thread if layout.has_thread else "",
            )
            for one in said
        ]
        for file, said in recording.items()
    }


def written(said: Said, form: Form) -> list[str]:
    """Return the lines of a message in the layout of the form."""
    zone = timezone(timedelta(hours=form.zone_hours))
    when = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=said.utc)
    local = when.astimezone(zone)
    name = ZONE_NAMES.get(form.zone_hours, "UTC")
    lines = LAYOUTS[form.layout].write(local, name, LEVELS[form.language], said).split("\n")
    if form.colour:
        escape = COLOURS[form.colour]
        lines[0] = f"{escape}[2m{lines[0][:23]}{escape}[0;39m{lines[0][23:]}{escape}[0m"
    return lines


def write(folder: Path, recording: Recording, form: Form) -> None:
    """Write a recording in a form."""
    files = recording
    if form.is_together:
        everything = [one for said in recording.values() for one in said]
        files = {"all.log": sorted(everything, key=lambda one: one.utc)}
    for name, said in files.items():
        parts = _rotated(said, form.rotated)
        for number, part in enumerate(parts):
            age = len(parts) - 1 - number
            put(folder / (f"{name}.{age}" if age else name), [(one.utc, written(one, form)) for one in part], form)


def _rotated(said: list[Said], count: int) -> list[list[Said]]:
    size = max(1, -(-len(said) // count))
    return [said[start : start + size] for start in range(0, len(said), size)]


def put(file: Path, messages: list[tuple[int, list[str]]], form: Form) -> None:
    """Write messages, each with its time and its lines, to a file of the form."""
    if form.export == "messages":
        rows = [(utc, "\n".join(lines)) for utc, lines in messages]
    elif form.export:
        rows = [(utc, line) for utc, lines in messages for line in lines]
    else:
        rows = [(utc, "\n".join(PREFIXES[form.prefix](line) for line in lines)) for utc, lines in messages]
    dated = [(_zulu(utc, number), line) for number, (utc, line) in enumerate(rows)]
    if form.is_falling:
        dated.reverse()
    text = _exported(dated, form.export)
    _save(file, text if form.is_ended else text.removesuffix("\n"), form.encoding)


def _exported(dated: list[tuple[str, str]], export: str) -> str:
    if export in ("cri", "kubectl"):
        between = " stdout F " if export == "cri" else " "
        return "".join(f"{at}{between}{line}\n" for at, line in dated)
    if export == "csv":
        made = io.StringIO()
        csv.writer(made, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([["@timestamp", "message"], *dated])
        return made.getvalue()
    if export == "array":
        return json.dumps([_KEYS[export](at, line) for at, line in dated]) + "\n"
    if export == "messages":
        return "".join(json.dumps({"timestamp": at, "message": text}) + "\n" for at, text in dated)
    if export:
        return "".join(json.dumps(_KEYS[export](at, line)) + "\n" for at, line in dated)
    return "".join(f"{line}\n" for _, line in dated)


def _zulu(utc: int, number: int) -> str:
    when = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=utc)
    return f"{when:%Y-%m-%dT%H:%M:%S.%f}{number % 1000:03}Z"


def _save(file: Path, text: str, encoding: str) -> None:
    data = text.encode("utf-16" if encoding == "utf-16" else "utf-8")
    if encoding == "crlf":
        data = data.replace(b"\n", b"\r\n")
    if encoding == "bom":
        data = b"\xef\xbb\xbf" + data
    if encoding == "gz":
        file, data = file.with_name(file.name + ".gz"), gzip.compress(data, 1)
    file.write_bytes(data)
