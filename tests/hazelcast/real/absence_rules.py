"""Rules for texts of members that are missing: how many there are of how many, how each is absent, and since when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from quarterdeck.backend.core.address import Address
from tests.hazelcast.real.truth import TruthAtMoment
from tests.hazelcast.real.window import AGE_SLACK_US, METRICS_US, NotLogged, Window, age_us, members, was_about

AGE = r"(?P<ago>\d[\d.]* (?:s|min|h)(?: [\d.]+ s)?)"
SIGN = r"(?: \((?P<sign>[^)]*)\))?"
ABSENT = rf"(?P<who>.*) (?P<way>gone|frozen|silent|out of reach) {AGE} ago{SIGN}"


def is_so_many_of(match: re.Match[str], window: Window) -> bool:
    """Return whether a list has so many members, and so many in all are on it or were before and said no goodbye."""
    size, total = int(match["present"]), int(match["total"])

    def holds(truth: TruthAtMoment) -> bool:
        for held in truth.lists.values():
            left = _listed_before(truth, window) - {*held.addresses}
            unannounced = {it for it in left if _latest_step(it, truth, window) not in ("stop", "end")}
            if len(held.addresses) == size and len(unannounced) <= total - size <= len(left):
                return True
        return False

    return window.any(holds)


def misses_a_member(window: Window) -> bool:
    """Return whether a member that was on a list is on none, and neither runs nor said goodbye."""
    return window.any(
        lambda truth: any(
            _latest_step(it, truth, window) == "kill" for it in _listed_before(truth, window) - truth.running
        )
    )


def is_absent(match: re.Match[str], window: Window) -> bool:
    """Return whether members left a list at that time, and are absent in the way and by the sign that is stated."""
    named, way, sign = members(match["who"]), match["way"], match["sign"]
    if not all(was_about(match["ago"], removals_us(it, window), window.said.at_us) for it in named):
        return False
    if way == "frozen":
        return window.any(lambda truth: truth.frozen.issuperset(named))
    if way == "gone" and sign == "its process was started again":
        since_us = window.said.at_us - age_us(match["ago"])[1] - AGE_SLACK_US
        return all(window.truth.was_started(it, since_us, window.last_us) for it in named)
    if way == "gone":
        return all(window.any(lambda truth, it=it: not truth.answers(it)) for it in named)  # type: ignore[misc]
    if all(map(window.is_unsettled, named)):
        return True
    if window.said.unreached.issuperset(named):
        raise NotLogged  # the members agree on when it was removed, and no log shows whom a console reaches
    return False


def is_not_heard(match: re.Match[str], window: Window) -> bool:
    """Return whether the watchers were cut off from members so long ago, or the members stopped or stood still then."""
    least, most = age_us(match["ago"])
    return all(
        any(
            least - METRICS_US <= window.said.at_us - step.at_us <= most + METRICS_US
            for step in window.truth.done
            if step.kind in ("blind", "kill", "stop", "end", "freeze") and it in step.members
        )
        for it in members(match["who"])
    )


def led_when_heard(match: re.Match[str], window: Window) -> bool:
    """Return whether a master that is not heard led so many members when it was heard last."""
    heard_us = window.said.at_us - age_us(match["ago"])[0]
    moments = window.truth.between(heard_us - METRICS_US, heard_us + METRICS_US)
    master, size = Address(match["who"]), int(match["size"])
    lists = (truth.lists[master] for truth in moments if master in truth.lists)
    return any(it.addresses[0] == master and len(it.addresses) == size for it in lists)


def removals_us(member: Address, window: Window) -> Iterator[int]:
    """Yield when a list was first without a member."""
    for lists in window.truth.logged.values():
        for old, new in pairwise(lists):
            if member in old.addresses and old.uuids[old.addresses.index(member)] not in new.uuids:
                yield new.at_us


def _listed_before(truth: TruthAtMoment, window: Window) -> set[Address]:
    lists = (held for logged in window.truth.logged.values() for held in logged if held.at_us <= truth.at_us)
    return {address for held in lists for address in held.addresses}


def _latest_step(member: Address, truth: TruthAtMoment, window: Window) -> str:
    """Return what was done last to a member that ends or begins its process; empty where nothing was."""
    steps = (it for it in window.truth.done if it.at_us <= truth.at_us + window.truth.ends_late_us)
    kinds = [it.kind for it in steps if member in it.members and it.kind in ("start", "kill", "stop", "end")]
    return kinds[-1] if kinds else ""
