"""What the members of a run said, in the order of time, each message with the records that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.event_reconstruction import EventReconstruction
from quarterdeck.backend.hazelcast.logs.log_set import LogSet, MemberMessage
from quarterdeck.backend.hazelcast.logs.parsed_messages import NoEvent, ParsedMessage
from quarterdeck.backend.hazelcast.logs.patterns.matching import match_message


class ToldMessage(Struct, frozen=True):
    """One message of a member, its place, and the records that became known with it."""

    place: MemberMessage
    at: int
    """Microseconds on the run's clock."""
    parsed: ParsedMessage
    records: tuple[Record, ...]


def in_order(placed: MemberMessage) -> tuple[str, int, int, str, int]:
    """Sort key: runs apart, each in the order of time; at one time older files first, and as in its file."""
    return placed.run, placed.at_us, placed.file_us, placed.file, placed.offset


def tell_messages(placed: Iterable[MemberMessage], whole: LogSet) -> Iterator[ToldMessage]:
    """The messages that are `in_order`, with their records. Those of one member are in the order in which it spoke.

    Logs that were copied, or written to two files at once, say everything twice: that counts once.
    """
    for run, messages in groupby(placed, key=lambda one: one.run):
        began = whole.run_began_us(run)
        members: dict[str, EventReconstruction] = {}
        lasts: dict[str, MemberMessage] = {}
        for message in _once(messages):
            matched = match_message(message.text, message.logger)
            if matched is None:
                continue
            member = members.setdefault(message.member, EventReconstruction(run, message.member, began))
            records = tuple(member.take(message.at_us, message.utc, matched.parsed, message.thread))
            lasts[message.member] = message
            yield ToldMessage(message, message.at_us - began, matched.parsed, records)
        for name, member in members.items():
            last = lasts[name]
            yield ToldMessage(last, last.at_us - began, NoEvent(), tuple(member.end()))


def _once(messages: Iterable[MemberMessage]) -> Iterator[MemberMessage]:
    """Without what another file has already said of the same member at the same time, as often as there."""
    for _, at_once in groupby(messages, key=lambda one: one.at_us):
        said: dict[tuple[str, str], dict[str, int]] = {}
        for message in at_once:
            files = said.setdefault((message.member, message.text), {})
            files[message.file] = times = files.get(message.file, 0) + 1
            if all(times > others for file, others in files.items() if file != message.file):
                yield message
