"""Rules for texts of lost data: with which members it went, when, and what a client counted of it."""

from __future__ import annotations

import re
from itertools import chain

from quarterdeck.backend.core.address import Address
from tests.hazelcast.real.absence_rules import removals_us
from tests.hazelcast.real.loss_judges import COUNTED_US
from tests.hazelcast.real.window import METRICS_US, SECOND_US, NotLogged, Window, members, was_about

SPREAD_S = 8
"""So long after its cause a loss may be dated: the list is without the dead when their connections have failed."""


def loss_text(match: re.Match[str], window: Window) -> bool | None:
    """Return whether a loss has the cause that is stated; what was lost is compared with counts of entries."""
    text, truth = match[0], window.truth
    if not _has_cause(text, window):
        return False
    if "maybe lost" in text or "refuted: " in text:
        return None
    if truth.counts:
        return _is_counted(text, window)
    if truth.loss is None or window.said.at_us < truth.loss.at_us:
        return False
    entries = re.search(r"about ([\d,]+) entr", text)
    return entries is None or abs(int(entries[1].replace(",", "")) - truth.loss.entries) <= truth.loss.entries / 20


def is_ownerless(_: re.Match[str], window: Window) -> bool:
    """Return whether a client's count got no answer or waited for one; without a client, whether members went."""
    if not window.truth.counts:
        return window.done("kill", "end", "cut", "freeze")
    around = [
        it for it in window.truth.counts if it.from_us <= window.last_us and it.until_us >= window.first_us - COUNTED_US
    ]
    return any(None in it.entries.values() or it.until_us - it.from_us > SECOND_US for it in around)


def is_missing_entries(window: Window) -> bool:
    """Return whether a client's count was short of entries by then."""
    truth = window.truth
    return any(max(truth.missing(it, window.first_us - METRICS_US, window.last_us), default=0) > 0 for it in truth.maps)


def _has_cause(text: str, window: Window) -> bool:
    """Return whether members that are named went, or were started again, and whether that was so long before."""
    cause = re.search(r"after (.*?) (went|started again)", text)
    if cause is None:
        return True
    named = members(cause[1])
    if cause[2] == "started again" and not all(window.done("start", member=it) for it in named):
        return False
    if cause[2] == "went" and not all(_went(it, window) for it in named):
        return False
    ago = re.search(r"([\d.]+ (?:s|min|h)) ago", text)
    steps_us = [
        it.at_us + second * SECOND_US
        for it in window.truth.done
        for second in range(SPREAD_S)
        if not {*named}.isdisjoint(it.members)
    ]
    removed_us = chain.from_iterable(removals_us(it, window) for it in named)
    return ago is None or was_about(ago[1], [*steps_us, *removed_us], window.said.at_us)


def _went(member: Address, window: Window) -> bool:
    """Return whether a member ended, stood still or was cut off, or was put off a list, by whatever made others do that."""
    is_disturbed = window.done("kill", "stop", "end", "freeze", "cut", member=member)
    return is_disturbed or any(at_us <= window.last_us for at_us in removals_us(member, window))


def _is_counted(text: str, window: Window) -> bool:
    """Return whether a client's counts are short of entries of a map that is named, or of any where none is."""
    truth, until_us = window.truth, window.said.at_us + COUNTED_US
    named = [it for it in truth.maps if re.search(rf"\b{it}\b", text)] or [*truth.maps]
    missing = [count for name in named for count in truth.missing(name, 0, until_us)]
    if "healed: " in text:
        latest = [counts[-1] for name in named if (counts := truth.missing(name, 0, until_us))]
        if not latest or window.two_masters():  # a client counts what the other side lacks as missing, too
            raise NotLogged
        return min(latest) <= 0
    return max(missing, default=0) > 0
