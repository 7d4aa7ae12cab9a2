"""The layout of one line: whether a message begins with it, when it was logged, by which member, and its text.

Nothing here is configured, and little is learned of a file (its `form`). A line begins a message when it begins with a time
(thread, level and logger stand somewhere after it, in any order), or with a level and a time, or when it carries the product's
own prefix, ``[host]:port [cluster] [version]``. Every other line continues the message before it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from quarterdeck.backend.core.address import Address, BadAddress, make_address, parse_port
from quarterdeck.backend.hazelcast.logs.lines.envelope import LEVELS, EnvelopedLine
from quarterdeck.backend.hazelcast.logs.lines.form import PLAIN, FileForm
from quarterdeck.backend.hazelcast.logs.lines.timestamps import LogTime, parse_time


class MessageHead(Struct, frozen=True, gc=False):
    """The beginning of a message."""

    stamp: LogTime | None
    message: str
    member: Address | None = None
    """From the product's prefix."""
    ours: bool = False
    """The product logged it, not another library in the same file."""
    logger: str = ""
    """The last part of the logger's name, such as ClusterService."""
    awaits_level: bool = False
    """The product's default layout: level and message stand in the next line."""
    thread: str = ""
    """The product's thread that logged it, where the layout has it."""
    cluster: str = ""
    """The name of the cluster, from the product's prefix."""


_ANY_LEVEL = "|".join(sorted(LEVELS, key=lambda word: (-len(word), word)))
PREFIX = re.compile(
    r"(?:\[(?P<host>[^\]\s]{1,255})\]:(?P<port>\d{1,5})|\[LOCAL\]) \[(?P<cluster>[^\]]{0,200})\]"
    r"(?: \[(?P<version>\d+\.\d[^\]\s]*)\])? ?",
    re.ASCII,
)
_CLIENT = re.compile(r"hz\.client\S* \[")
"""What a client that shares the file logs: it has the product's loggers and is no member."""
_DEFAULT_SECOND = re.compile(r"([A-ZÀ-Ý]{4,13}): ?")
_DEFAULT_FIRST = re.compile(r" ([\w$.]+)(?: ([\w$<>.]+))?\s*$")
_LEADING_LEVEL = re.compile(rf"[\[(]?({_ANY_LEVEL})\s*[\])]?\s*[:|-]?\s*")
_LOGGER = re.compile(r"(?<![\w.$/:\\])((?:[a-z]\w*\.)+[A-Za-z_$][\w$]*)(?:\.[a-z]\w*)?(?:\(\w*\))?(?![\w.(/])")
_CLASS = re.compile(r"[\[|(\s]([A-Z][a-zA-Z0-9$]*[a-z][a-zA-Z0-9$]*)(?: [A-Z])?[\]|)\s:-]*$")
_THREAD = re.compile(r"(?<![\w.])hz\.[\w-]+\.[\w.-]*[\w-]")
_SEPARATOR = re.compile(r"(?: [-:](?: |$)|\]?:(?: |$)|\] -(?: |$)|\| ?)")
_FIELDS = re.compile(rf"(?:\s*(?:\[[^\]\n]*\](?!:\d)|\([^)\n]*\)|\|[^|\n]*(?=\|)|(?:{_ANY_LEVEL})\b))+\s*\|?\s*")
_DIAGNOSTIC = re.compile(r" (?P<utc_ms>\d{13}) (?P<message>[A-Z]\w+\[)", re.ASCII)
"""What follows the time in the product's diagnostics, where they have the time since 1970, too. They name no member."""
_OPENING = "[(<|# \t"
_MOST_OPENING = 5
_MESSAGE_BELOW = re.compile(r"(?:\[\[|\|)\s*$")
"""What ends the first line of a message whose text begins in the next one."""
PREFIX_WITHIN = 600
"""Characters of a line in which the product's prefix is looked for."""


def parse_head(line: EnvelopedLine, form: FileForm = PLAIN) -> MessageHead | None:
    """Return the message that begins with `line`, or None when the line only continues another one. Never raises."""
    text = line.text
    if line.structured:
        return _said(line.collected, text, logger=last_part(line.logger), known_ours=_is_ours(line.logger))
    if not text or text[0] == "\t" or text[0] in "]}":
        return None
    start = 0
    if form.lead is not None and (led := form.lead.match(text)):
        start = led.end()
    else:
        while start < _MOST_OPENING and text[start : start + 1] in _OPENING and start < len(text):
            start += 1
        led = None
    stamp = parse_time(text, start, form.day_order)
    if stamp is not None and start and text[0] in " \t" and not led:
        return None
    if stamp is None:
        return _without_leading_time(line, form)
    if stamp.end >= len(text):
        return None
    if text[-1] in "[| " and _MESSAGE_BELOW.search(text, stamp.end) and not PREFIX.search(text, stamp.end):
        logger, ours, thread = _speaker(text[stamp.end :])
        return MessageHead(stamp, "", ours=ours, logger=logger, awaits_level=True, thread=thread)
    if diagnostic := _DIAGNOSTIC.match(text, stamp.end):
        utc = LogTime(int(diagnostic["utc_ms"]) * 1_000, zoned=True)
        return MessageHead(utc, text[diagnostic.start("message") :], ours=True, logger="DiagnosticsLog")
    bare = None if stamp.lacks else _DEFAULT_FIRST.fullmatch(text, stamp.end)
    if bare and "." in bare[1]:
        return MessageHead(stamp, "", ours=_is_ours(bare[1]), logger=last_part(bare[1]), awaits_level=True)
    return _said(stamp, text[stamp.end :])


def second_half(head: MessageHead, text: str) -> MessageHead:
    """Complete `head` of the default layout by the line below it."""
    found = _DEFAULT_SECOND.match(text)
    message = text[found.end() :] if found and found[1] in LEVELS else text
    return _said(head.stamp, message, logger=head.logger, known_ours=head.ours, thread=head.thread)


def has_prefix(text: str) -> bool:
    """Return whether a line has the product's prefix, with a version."""
    found = PREFIX.search(text, 0, PREFIX_WITHIN)
    return bool(found and found["version"])


@lru_cache(maxsize=4096)
def to_address(host: str, port: str) -> Address | None:
    """Return the canonical address of a host and a port from a log, or None when there is no such port."""
    try:
        return make_address(host, parse_port(port, port))
    except BadAddress:
        return None


def _without_leading_time(line: EnvelopedLine, form: FileForm) -> MessageHead | None:
    """Parse a line that begins with a level, and perhaps a time then, or with the product's prefix alone."""
    text = line.text
    if leading := _LEADING_LEVEL.match(text):
        stamp = parse_time(text, leading.end(), form.day_order) or parse_time(text, leading.end() + 1, form.day_order)
        if stamp is not None:
            return _said(stamp, text[stamp.end :])
    prefix = PREFIX.search(text, 0, PREFIX_WITHIN) if text[0] in "[" or leading else None
    if prefix and prefix["version"] and (leading or prefix.start() == 0):
        return _said(line.collected, text)
    return None


def _said(
    stamp: LogTime | None, rest: str, *, logger: str = "", known_ours: bool = False, thread: str = ""
) -> MessageHead:
    """Split `rest`, what follows the time, at the product's prefix if it has one, else at a separator.

    Where the `logger` is known, it stands elsewhere, and all of `rest` is message.
    """
    prefix = PREFIX.search(rest, 0, PREFIX_WITHIN)
    while prefix and not (prefix["version"] or _is_ours(rest[: prefix.start()])):
        prefix = PREFIX.search(rest, prefix.end(), PREFIX_WITHIN)
    if prefix:
        before, message = rest[: prefix.start()], rest[prefix.end() :]
        member = to_address(prefix["host"], prefix["port"]) if prefix["host"] else None
    else:
        before, message = ("", rest) if logger else _at_separator(rest)
        member = None
        if _CLIENT.match(message):
            return MessageHead(stamp, message)
    found, ours, own_thread = _speaker(before)
    is_ours = prefix is not None or known_ours or ours
    cluster = prefix["cluster"] if prefix else ""
    return MessageHead(stamp, message, member, is_ours, logger or found, thread=own_thread or thread, cluster=cluster)


@lru_cache(maxsize=4096)
def _speaker(before: str) -> tuple[str, bool, str]:
    """Return the last part of the logger's name, whether it is the product's, and the thread."""
    threads = _THREAD.search(before)
    thread = threads[0] if threads else ""
    if loggers := _LOGGER.findall(_THREAD.sub("", before)):
        return last_part(loggers[-1]), _is_ours(before), thread
    found = _CLASS.search(before)
    return found[1] if found else "", _is_ours(before), thread


def _at_separator(rest: str) -> tuple[str, str]:
    """Return what stands before the message, and the message, where only a logger or a separator divides them."""
    fields = _FIELDS.match(rest)
    if fields and rest[0] == "|":
        return fields[0], rest[fields.end() :]
    logger = None
    for logger in _LOGGER.finditer(rest, 0, 300):
        if _is_ours(logger[1]):
            break
    place = _SEPARATOR.search(rest, logger.end() if logger else 0, 320)
    if place is not None:
        return rest[: place.start() + 1], rest[place.end() :]
    if logger is not None:
        return rest[: logger.end()], rest[logger.end() :].lstrip(" ]-:|")
    end = fields.end() if fields else 0
    return rest[:end], rest[end:].lstrip()


def last_part(logger: str) -> str:
    """Return the last part of a logger's name, without inner classes."""
    return logger.rpartition(".")[2].partition("$")[0].partition("(")[0]


def _is_ours(text: str) -> bool:
    return "com.hazelcast." in text or "c.h." in text or "c.hazelcast" in text or "[hz." in text or "hz._hz" in text
