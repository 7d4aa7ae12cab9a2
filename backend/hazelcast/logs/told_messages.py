"""What the members of a run said, in the order of time, each message with the records that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from msgspec import Struct

from quarterdeck.backend.core.events import MemberRemoved, Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.event_reconstruction import EventReconstruction
from quarterdeck.backend.hazelcast.logs.log_set import LogSet, MemberMessage
from quarterdeck.backend.hazelcast.logs.parsed_messages import NoEvent, ParsedMessage
from quarterdeck.backend.hazelcast.logs.patterns.matching import match_message

_REMOVED_BEFORE_US = 5 * SECOND_US
"""So long after its removal a member that goes on without the others would have said something."""


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
    """The messages that are `in_order`, with their records. Those of one member are in the order in which it spoke."""
    for run, messages in groupby(placed, key=lambda one: one.run):
        teller = MessageTeller(run, whole.run_began_us(run))
        for message in messages:
            yield from teller.take(message)
        yield from teller.end(whole.spoke_until_us(run))


class MessageTeller:
    """Takes what the members of one run said, in order. Call `end` when nothing more comes.

    Logs that were copied, or written to two files at once, say everything twice: that counts once.
    """

    def __init__(self, run: str, began_us: int) -> None:
        self._run = run
        self._began_us = began_us
        self._members: dict[str, EventReconstruction] = {}
        self._lasts: dict[str, MemberMessage] = {}
        self._removals: dict[str, tuple[int, str]] = {}
        """By incarnation, when it was removed last, and by whom."""
        self._at_us: int | None = None
        self._said: dict[tuple[str, str], dict[str, int]] = {}
        """What was said at that time, by member and text: how often in each file."""

    def take(self, message: MemberMessage) -> Iterator[ToldMessage]:
        """The message with its records; nothing when another file has said it already, or nobody understands it."""
        if self._is_repeated(message):
            return
        matched = match_message(message.text, message.logger)
        if matched is None:
            return
        known = self._members.get(message.member)
        if known is None:
            known = self._members[message.member] = EventReconstruction(self._run, message.member, self._began_us)
        records = tuple(known.take(message.at_us, message.utc, matched.parsed, message.thread))
        for record in records:
            if isinstance(record.event, MemberRemoved):
                self._removals[record.event.removed_uuid] = (message.at_us, message.member)
        self._lasts[message.member] = message
        yield ToldMessage(message, message.at_us - self._began_us, matched.parsed, records)

    def end(self, spoke_until_us: Mapping[str, int]) -> Iterator[ToldMessage]:
        """What is known of each member when nothing more comes; `spoke_until_us` says when it said anything last."""
        for name, member in self._members.items():
            last = self._lasts[name]
            at_us = last.at_us - self._began_us
            until_us = self._began_us + max(spoke_until_us.get(name, 0), at_us)
            gone = _gone(self._removals.get(member.uuid), until_us)
            yield ToldMessage(last, at_us, NoEvent(), tuple(member.end(until_us, gone)))

    def _is_repeated(self, message: MemberMessage) -> bool:
        """Whether it was said of the same member at the same time in another file, as often as there."""
        if message.at_us != self._at_us:
            self._at_us = message.at_us
            self._said.clear()
        files = self._said.setdefault((message.member, message.text), {})
        files[message.file] = times = files.get(message.file, 0) + 1
        return not all(times > others for file, others in files.items() if file != message.file)


def _gone(removal: tuple[int, str] | None, until_us: int) -> str:
    """Why a member that logs until `until_us` is held to be gone then: others removed it, and it has nothing to say of that."""
    if removal is None or removal[0] < until_us - _REMOVED_BEFORE_US:
        return ""
    return f"its log ends here, and {removal[1]} removed it"
