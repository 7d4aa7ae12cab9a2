"""How messages are recognised: each pattern has a meaning; and the pieces that many patterns share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.logs.lines.layout import to_address
from quarterdeck.backend.hazelcast.logs.parsed_messages import MemberMention, NoEvent, ParsedMessage, Subject

ADDRESS = r"(?:Address)?\[[^\]\s]{1,255}\]:\d{1,5}"
UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
MEMBER = rf"(?:Member )?{ADDRESS}(?: - {UUID})?(?: this)?(?: lite)?"

_MEMBER = re.compile(
    rf"(?:Member )?(?:Address)?\[(?P<host>[^\]\s]{{1,255}})\]:(?P<port>\d{{1,5}})(?: - (?P<uuid>{UUID}))?"
    r"(?P<this> this)?(?P<lite> lite)?(?: this)?"
)
_INFO = re.compile(
    rf"MemberInfo\{{address=(?:Address)?\[(?P<host>[^\]\s]{{1,255}})\]:(?P<port>\d{{1,5}}), uuid='?(?P<uuid>{UUID})'?"
    r"(?:(?!liteMember=)[^{}])*(?:liteMember=(?P<lite>true|false))?[^{}]*\}"
)
_VIEW = re.compile(r"MembersView\{version=(\d{1,9}), members=\[(.*?)\]\}", re.DOTALL)


class PatternMismatch(ValueError):
    """The text fits the pattern and yet cannot mean that: a port is impossible, for instance."""


@dataclass(frozen=True)
class LogPattern:
    """Messages that contain `needle` and match `pattern` from their beginning mean what `meaning` makes of the match."""

    subject: Subject
    needle: str
    pattern: re.Pattern[str]
    meaning: Callable[[re.Match[str]], ParsedMessage]
    signs: tuple[str, ...] = ()
    """Pieces of text, one of which stands in a line of every such message that makes an event."""


def log_pattern(
    subject: Subject,
    needle: str,
    pattern: str,
    meaning: Callable[[re.Match[str]], ParsedMessage],
    signs: tuple[str, ...] = (),
) -> LogPattern:
    """Make a pattern of messages that may make an event. Give rarer `signs` for a common needle, or a short one for many."""
    return LogPattern(subject, needle, re.compile(pattern, re.DOTALL), meaning, signs or (needle,))


def known(subject: Subject, beginnings: str) -> LogPattern:
    """Make a pattern of messages that make no event, by their beginnings with ``|`` between.

    In these ``*`` is a member or an address, ``…`` some words.
    """
    escaped = (
        re.escape(known.strip()).replace(r"\*", MEMBER).replace("…", r"[^\n]*?") for known in beginnings.split("|")
    )
    pattern = "|".join(escaped)
    return LogPattern(subject, "", re.compile(rf"(?:{pattern})"), lambda _: NoEvent())


def address(text: str) -> Address:
    """Return the address in a piece that `ADDRESS` or `MEMBER` matched. Raises `PatternMismatch`."""
    return mentioned_member(text).address


@lru_cache(maxsize=4096)
def mentioned_member(text: str) -> MemberMention:
    """Return the member in a piece that `MEMBER` matched. Raises `PatternMismatch`."""
    found = _MEMBER.match(text)
    member = _named(found) if found else None
    if member is None:
        raise PatternMismatch(text)
    return member


def mentioned_members(text: str) -> tuple[MemberMention, ...]:
    """Return every member in `text`, printed as a member or as the product prints it inside views."""
    pattern = _INFO if "MemberInfo{" in text else _MEMBER
    return tuple(member for found in pattern.finditer(text) if (member := _named(found)) is not None)


def view(text: str) -> tuple[int, tuple[MemberMention, ...]]:
    """Return version and members of the first ``MembersView{…}`` in `text`. Raises `PatternMismatch`."""
    flat = text.replace("\n", "")
    place = flat.find("MembersView{")
    found = _VIEW.match(flat, place) if place >= 0 else None
    if found is None:
        raise PatternMismatch(text)
    return int(found[1]), mentioned_members(found[2])


def _named(found: re.Match[str]) -> MemberMention | None:
    if (place := to_address(found["host"], found["port"])) is None:
        return None
    groups = found.groupdict()
    is_lite = groups["lite"] not in (None, "false")
    return MemberMention(place, (groups["uuid"] or "").lower(), is_lite, bool(groups.get("this")))
