"""What carries a line of a log: container engines, syslog, collectors. It is removed until the line itself is left.

An envelope may say where the line comes from (its `stream`) and when it was collected. Lines of several streams may alternate
in one file; each stream is put together by itself.
"""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct, structs

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.lines.form import PLAIN, FileForm
from quarterdeck.backend.hazelcast.logs.lines.timestamps import LogTime, parse_time


class EnvelopedLine(Struct, frozen=True, gc=False):
    """A line without what carried it."""

    text: str
    stream: str = ""
    collected: LogTime | None = None
    """When the carrier got the line."""
    partial: bool = False
    """The line continues in the next one of this stream."""
    wrapped: bool = False
    logger: str = ""
    structured: bool = False
    """The carrier is the layout: every such line is a whole message with the time `collected`."""


_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
BARE_COLOUR = re.compile(r"(?:\^\[|␛|ESC|\\(?:u001[bB]|x1[bB]|033|e))?\[\d{1,3}(?:;\d{1,3})*m")
"""A colour whose escape character was lost, or is written in another way."""
_CRI = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) (?:stdout|stderr) ([FP])(?::\S*)? ?")
# As `kubectl logs --timestamps` and `docker logs -t`.
_STAMPED = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7,9}Z)(?: |$)")
_ANY_STAMP = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)(?: |$)")
_POD = re.compile(r"\[?(pod/[\w.-]+(?:/[\w.-]+)?)\]? ")
_COMPOSE = re.compile(r"([A-Za-z0-9][\w.-]*) +\|(?: |$)")
# Java Service Wrapper.
_SERVICE = re.compile(r"(?:STATUS|ADVICE|[A-Z]{4,6}) +\| ([\w ]+?) +\| (\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?) \| ?")
_PRIORITY = re.compile(r"<\d{1,3}>")
_SYSLOG_5424 = re.compile(
    r"<\d{1,3}>1 (\S+) (\S+) (\S+) (\S+) \S+ (?:-|(?:\[(?:[^\]\"\\]|\\.|\"(?:[^\"\\]|\\.)*\")*\])+) ?\ufeff?", re.ASCII
)
_SYSLOG_TIME = re.compile(
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)) "
)
_SYSLOG_3164 = re.compile(r"(?:([\w.:%-]+) )?([\w./()@-]+)(?:\[(\d+)\])?: ?")
_NAME_WITHIN = 120
"""Characters of a line in which the name of a container may stand before a bar."""
_ESCAPED = re.compile(r"#(009|011|012|015|033)")
_ESCAPES = {"009": "\t", "011": "\t", "012": "\n", "015": "", "033": "\x1b"}
_BODY_KEYS = ("_source", "result", "attributes", "fields", "jsonPayload", "properties")
"""Exports of log stores have the fields of a record in one of these."""
MESSAGE_KEYS = (
    "message", "msg", "log", "MESSAGE", "line", "textPayload", "_raw", "@message", "body", "content", "text", "LogEntry",
    "Message", "Line", "event.original",
)  # fmt: skip
TIME_KEYS = (
    "@timestamp", "timestamp", "time", "ts", "timeMillis", "instant", "__REALTIME_TIMESTAMP", "_time", "Time", "date",
    "receiveTimestamp", "TimeGenerated", "eventTime",
)  # fmt: skip
_JOURNAL_TIME = "__REALTIME_TIMESTAMP"
_JOURNAL_STREAM = ("_HOSTNAME", "SYSLOG_IDENTIFIER", "_PID")
_LOGGER_KEYS = ("logger_name", "loggerName", "logger", "log.logger")
STREAM_KEYS = (
    "container_name", "pod", "pod_name", "kubernetes.pod.name", "kubernetes.pod_name", "labels.pod", "resource.labels.pod_name",
    "container.name", "host.name", "hostname", "host", "logStreamName", "@logStream", "source",
)  # fmt: skip


def strip_envelope(line: str, form: FileForm = PLAIN) -> EnvelopedLine:
    """Return `line` without its end of line, colours and whatever carries it. Never raises."""
    if form.dressing is None and not (form.is_stamped or form.has_bare_colours):
        text = line.rstrip("\r\n")
        return _unwrapped(_ANSI.sub("", text) if "\x1b" in text else text, form)
    text, source = undressed(line, form)
    if form.is_stamped and (stamped := _ANY_STAMP.match(text)):
        return _inside(text[stamped.end() :], source, parse_time(stamped[1]), form=form)
    if source:
        return _inside(text, source, None, form=form)
    return _unwrapped(text, form)


def undressed(line: str, form: FileForm) -> tuple[str, str]:
    """Return a line without its end, colours and what stands before every line of its file; and where that says it is from."""
    text = line.rstrip("\r\n").removeprefix("\ufeff")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if form.has_bare_colours:
        text = BARE_COLOUR.sub("", text)
    if form.dressing is None or (dressed := form.dressing.match(text)) is None:
        return text, ""
    return text[dressed.end() :], dressed[dressed.lastindex].strip() if dressed.lastindex else ""


def _unwrapped(text: str, form: FileForm) -> EnvelopedLine:
    first = text[:1]
    if first == "\ufeff":
        text = text[1:]
        first = text[:1]
    if first == "{":
        return _unwrap_json(text, form)
    if first.isdigit() and text[10:11] == "T":
        if found := _CRI.match(text):
            return _inside(text[found.end() :], "", parse_time(found[1]), partial=found[2] == "P", form=form)
        if found := _STAMPED.match(text):
            return _inside(text[found.end() :], "", parse_time(found[1]), form=form)
    elif first == "<":
        return _unwrap_syslog(text)
    elif first == "[" or first == "p":
        if found := _POD.match(text):
            return _inside(text[found.end() :], found[1], None, form=form)
    elif first.isalpha() and "|" in text[:_NAME_WITHIN]:
        if found := _SERVICE.match(text):
            return _inside(text[found.end() :], found[1], parse_time(found[2]), form=form)
        if found := _COMPOSE.match(text):
            return _inside(text[found.end() :], found[1], None, form=form)
    if first.isupper() or (first.isdigit() and text[10:11] == "T"):
        if (carried := _after_syslog_time(text)) is not None:
            return carried
    return EnvelopedLine(text)


def _inside(
    text: str, stream: str, collected: LogTime | None, *, partial: bool = False, form: FileForm = PLAIN
) -> EnvelopedLine:
    """Return what a carrier carried; one carrier may be inside another."""
    if text[:1] in ("{", "<") or (not collected and text[:1].isdigit()):
        inner = _unwrapped(text, form)
        if inner.wrapped:
            name, partial = "/".join(filter(None, (stream, inner.stream))), partial or inner.partial
            return structs.replace(inner, stream=name, collected=inner.collected or collected, partial=partial)
    return EnvelopedLine(text, stream, collected, partial, wrapped=True)


def _unwrap_syslog(text: str) -> EnvelopedLine:
    if found := _SYSLOG_5424.match(text):
        stream = "/".join(part for part in found.groups()[1:] if part != "-")
        return _inside(_unescaped(text[found.end() :]), stream, parse_time(found[1]))
    found = _PRIORITY.match(text)
    carried = _after_syslog_time(text[found.end() :]) if found else None
    return carried if carried is not None else EnvelopedLine(text)


def _after_syslog_time(text: str) -> EnvelopedLine | None:
    if (time := _SYSLOG_TIME.match(text)) is None:
        return None
    tag = _SYSLOG_3164.match(text, time.end())
    if tag is None or tag[1] is None or tag[1] in LEVELS or tag[2].isupper() or "." in tag[2]:
        return None
    stream = "/".join(part for part in tag.groups() if part)
    return _inside(_unescaped(text[tag.end() :]), stream, parse_time(time[0].rstrip()))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: _ESCAPES[found[1]], text) if "#0" in text else text


def _unwrap_json(text: str, form: FileForm) -> EnvelopedLine:
    """Read one JSON object: of a container engine, of a log store, or a logging library's own JSON layout."""
    try:
        fields = json.loads(text.rstrip(" ,]") if text[-1:] in ",]" else text)
    except (ValueError, RecursionError):
        return EnvelopedLine(text)
    if not isinstance(fields, dict):
        return EnvelopedLine(text)
    if _JOURNAL_TIME in fields and fields.get("_TRANSPORT") != "journal":
        return _journal_entry(fields)
    for name in _BODY_KEYS:
        if isinstance(body := fields.get(name), dict) and _first(body, MESSAGE_KEYS, or_empty=True) is not None:
            fields = {**fields, **body}
    message = _first(fields, MESSAGE_KEYS, or_empty=True)
    if message is None:
        return EnvelopedLine(text)
    if "\x1b" in message:
        message = _ANSI.sub("", message)
    collected, stream = _json_time(fields), str(_first(fields, STREAM_KEYS) or "")
    if form.carries_lines:
        return _inside(message.rstrip("\r\n"), stream, collected, form=form)
    if message == fields.get("log") and not _first(fields, ("level", "logger", "logger_name")):
        is_cut = not message.endswith("\n") and "stream" in fields
        return _inside(message.rstrip("\r\n"), stream, collected, partial=is_cut, form=form)
    thrown = _first(fields, ("stack_trace", "thrown", "exception", "error.stack_trace"))
    return EnvelopedLine(
        message if not thrown else f"{message}\n{thrown}",
        stream,
        collected,
        wrapped=True,
        logger=str(_first(fields, _LOGGER_KEYS) or ""),
        structured=collected is not None,
    )


def _journal_entry(fields: dict[str, Any]) -> EnvelopedLine:
    """Return the line that ``journalctl -o json`` carries: one of those that a process has printed, and no whole message.

    A line that is not UTF-8, or that has control characters, is a list of bytes there.
    """
    message = fields.get("MESSAGE")
    if isinstance(message, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in message):
        message = bytes(message).decode("utf-8", "replace")
    stream = "/".join(value for name in _JOURNAL_STREAM if isinstance(value := fields.get(name), str) and value)
    line = str(message or "")
    return _inside(_ANSI.sub("", line) if "\x1b" in line else line, stream, _json_time(fields))


def _first(fields: dict[str, Any], names: tuple[str, ...], *, or_empty: bool = False) -> str | None:
    """Return the first text that one of `names` has in `fields`; a dot in a name goes into an object, or is part of the name."""
    for name in names:
        value: Any = fields.get(name)
        if value is None and "." in name:
            value = fields
            for part in name.split("."):
                value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, str) and (value or or_empty):
            return value
    return None


def _json_time(fields: dict[str, Any]) -> LogTime | None:
    for name in TIME_KEYS:
        value = fields.get(name)
        if isinstance(value, dict) and isinstance(seconds := value.get("epochSecond"), int):
            nanoseconds = value.get("nanoOfSecond")
            extra = nanoseconds // 1000 if isinstance(nanoseconds, int) else 0
            return LogTime(seconds * SECOND_US + extra, zoned=True) if 0 < seconds < 1 << 40 else None
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            if (found := parse_time(str(value))) is not None:
                return found
    return None


LEVELS = frozenset(
    (
        "ERROR SEVERE FATAL ERR SCHWERWIEGEND GRAVE ALLVARLIG CRITICAL "
        "WARNING WARN WARNUNG AVERTISSEMENT ADVERTENCIA AVVERTENZA AVISO VARNING "
        "INFO INFORMATION INFOS INFORMACIÓN INFORMAZIONI NOTICE "
        "DEBUG TRACE CONFIG FINE FINER FINEST KONFIG"
    ).split()
)
