"""What an audit observes, compared with what members logged and with what was done: who, when, how long, how often, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.judgement.observations.observation import Observation, ObservationKind
from tests.hazelcast.real.judges import Statement, Verdict
from tests.hazelcast.real.loss_rules import loss_text
from tests.hazelcast.real.text_judges import suspicion_of
from tests.hazelcast.real.truth import Truth, TruthAtMoment
from tests.hazelcast.real.window import (
    AGE_SLACK_US,
    EVER_US,
    ONE,
    SECOND_US,
    LogIsOver,
    NotLogged,
    Window,
    age_us,
    members,
)

Judge = Callable[[Observation, Window], bool]

STORM_ROUNDS = 3
HEARTBEATS_US = 15 * SECOND_US
"""A claim may take so long after the suspicion from which it follows."""
NUMERALS = {"once": 1, "twice": 2}
ENDING = "is SHUTTING_DOWN|is SHUTDOWN|Running shutdown hook"
"""What a member logs of its end."""


def judge_observation(said: Statement, truth: Truth, *, one_sided: bool) -> Verdict:
    """Return whether an observation is true as it stands at that moment. One of a kind that no script causes is false."""
    found = said.value
    assert isinstance(found, Observation)
    judged = JUDGES.get(found.kind)
    window = Window(said, truth, one_sided=one_sided)
    try:
        return "true" if judged is not None and judged(found, window) else "false"
    except NotLogged:
        return "not compared"


# Members that left


def _member_lost(found: Observation, window: Window) -> bool:
    lost = [Address(it) for it in found.members]
    for member in lost:
        held = [_is_held(member, truth) for truth in window.moments]
        if held[-1] is None:  # all of the others were asked to end, and log no list any more
            raise LogIsOver
        if False not in held:
            return False
    if "led from then on" in found.headline:
        leader = members(found.headline.rpartition("; ")[2])[0]
        led = (held for held in window.truth.logged[leader] if held.at_us <= window.last_us)
        if not any(held.addresses[0] == leader for held in led):
            if window.done("stop", member=leader):
                raise LogIsOver
            return False
    if "the master" in found.headline and not any(
        held.addresses[0] == lost[0] for lists in window.truth.logged.values() for held in lists
    ):
        return False
    if found.cause.startswith("No process listens"):  # one that stops has closed its port before its process ends
        return all(window.done("kill", "end", "stop", member=it) for it in lost)
    return all(window.done("kill", "stop", "freeze", "cut", member=it) for it in lost)


def _is_held(member: Address, truth: TruthAtMoment) -> bool | None:
    """Return whether all others that have a list have a member on it; None where none of them logs any more.

    While all of the others start, it is on no list.
    """
    others = truth.running.difference((member, *truth.leaving))
    views = [truth.lists[it] for it in others if it in truth.lists]
    return (bool(views) and all(member in view.addresses for view in views)) if others else None


def _restart(found: Observation, window: Window) -> bool:
    """Compare how often each was started again, and before how many starts its log has no word of an end."""
    starts = [
        (member, step.at_us)
        for step in window.truth.done
        for member in step.members
        if step.kind == "start" and step.at_us <= window.last_us
    ]
    again = [
        (member, before_us, at_us)
        for member in dict.fromkeys(it for it, _ in starts)
        for before_us, at_us in pairwise(us for it, us in starts if it == member)
    ]
    named: list[tuple[Address, int, int]] = []
    for name, often in re.findall(rf"({ONE.pattern}) (once|twice|\d+ times)", found.headline):
        of_member = [it for it in again if it[0] == name]
        count = NUMERALS.get(often) or int(often.split()[0])
        if len(of_member) < count:
            return False
        named += of_member[:count]
    spelt_out = members(found.headline)
    return _is_goodbye_count(
        found, window, named + [it for it in again if it[0] not in spelt_out and it[0] in found.members]
    )


def _is_goodbye_count(found: Observation, window: Window, ends: list[tuple[Address, int, int]]) -> bool:
    """Return whether so many ended without a word in their log, of these ends, each between two moments.

    Nothing is said of that where no log is read.
    """
    silent = sum(not window.truth.logs(ENDING, since_us, until_us, member) for member, since_us, until_us in ends)
    goodbye = re.search(r"\((\d+) without a goodbye\)", found.headline)
    return goodbye is None or int(goodbye[1]) == silent


def _full_stop(found: Observation, window: Window) -> bool:
    number = int(re.search(r"all (\d+) members", found.headline)[1])  # type: ignore[index]
    before = [window.truth.at(step.at_us - 1) for step in window.truth.done if step.kind in ("stop", "kill")]
    ended = [it for it in before if it.at_us <= window.last_us and len(it.running) == number]
    none = any(
        not window.truth.at(step.at_us + 1).running
        for step in window.truth.done
        if found.start_utc < step.at_us + AGE_SLACK_US
    )
    ends = [
        (member, step.at_us, window.last_us)
        for step in window.truth.done
        for member in step.members
        if step.kind in ("stop", "kill") and step.at_us <= window.last_us
    ]
    said = _is_goodbye_count(found, window, ends)
    return bool(ended) and none and said and found.is_open == ("started again" not in found.headline)


def _unresponsive(found: Observation, window: Window) -> bool:
    ends = {"freeze": "thaw", "blind": "see"}
    frozen = [
        (
            step.at_us,
            next(
                (it.at_us for it in window.truth.done if it.kind == ends[step.kind] and it.at_us > step.at_us), 10**18
            ),
        )
        for step in window.truth.done
        if step.kind in ends and set(step.members) >= set(found.members)
    ]
    if (
        not window.done("freeze", "cut", member=Address(found.members[0]))
        and set(found.members) <= window.said.unreached
    ):
        raise NotLogged  # how the connection of one client fares
    return any(
        (
            begin - AGE_SLACK_US <= found.start_utc <= begin + 4 * AGE_SLACK_US
            and found.end_utc <= end + AGE_SLACK_US
            and found.is_open == (window.last_us < end)
        )
        or (found.is_open and end <= window.last_us <= end + 2 * AGE_SLACK_US)
        for begin, end in frozen
    )


# Clusters apart


def _apart(found: Observation, window: Window) -> bool:
    truth = window.truth
    spans = _split_spans(truth, window.last_us)
    spans = [(a, b) for a, b in spans if b >= found.start_utc - AGE_SLACK_US and a <= found.end_utc + AGE_SLACK_US]
    if not spans:
        return False
    moments = [it for a, b in spans for it in truth.between(a, b)]
    for name, size in re.findall(rf"({ONE.pattern}) \((\d+) members?\)", found.headline):
        if not any(_leads(it, Address(name), int(size)) for it in moments):
            return False
    lone = re.match(rf"({ONE.pattern}) led itself alone", found.headline)
    if lone is not None and not any(_leads(it, Address(lone[1]), 1) for it in moments):
        return False
    length = re.findall(r"[\d.]+ (?:s|min|h)(?: \d+ (?:s|min))?", found.headline.split("; they met")[0])
    least, most = age_us(length[-1]) if length else (0, 0)
    actual = sum(b - a for a, b in spans)
    if "lost sight of" in found.headline:  # it lasts on
        most = EVER_US
    if length and not least - 2 * AGE_SLACK_US <= actual <= most + 2 * AGE_SLACK_US:
        return False
    if "lost sight of" not in found.headline and not window.any(lambda it: (len(it.leading) > 1) == found.is_open):
        return False
    return _is_why(found, window)


def _is_why(found: Observation, window: Window) -> bool:
    """Compare the cause and the remedy with what was done and logged."""
    began, lately = found.start_utc - AGE_SLACK_US, map(Address, found.members)
    met = bool(window.truth.logs("should merge to", began, window.first_us))
    merges = bool(window.truth.logs("is MERG", began, window.last_us + 10 * SECOND_US))
    checks = {
        "ended without a merge": not merges and window.done("kill", "end", "start"),
        "They have merged": merges,
        "No side says that it met the other": not met,
        "agree which one is to merge": bool(window.truth.logs("should merge to", began, window.last_us)),
        # On a busy machine a member stands still without being made to: then another one misses its heartbeats.
        "The network between the sides was cut for a time": window.done("cut", "freeze")
        or bool(window.truth.logs("has not sent any heartbeats", began - HEARTBEATS_US, found.end_utc, *lately)),
    }
    text = f"{found.cause} {found.remedy}"
    return all(holds for words, holds in checks.items() if words in text)


def _leads(truth: object, master: Address, size: int) -> bool:
    held = truth.lists.get(master)  # type: ignore[attr-defined]
    return held is not None and held.addresses[0] == master and len(held.addresses) == size


def _split_spans(truth: Truth, until_us: int) -> list[tuple[int, int]]:
    """Return when there was more than one master, up to a moment."""
    spans: list[tuple[int, int]] = []
    moments = truth.between(truth.done[0].at_us, until_us)
    for one, after in pairwise(moments):
        if len(one.leading) > 1:
            if spans and spans[-1][1] == one.at_us:
                spans[-1] = spans[-1][0], after.at_us
            else:
                spans.append((one.at_us, after.at_us))
    return spans


def _flapping(found: Observation, window: Window) -> bool:
    """Return whether each was put off a list of one master, and on it again, at least as often as is said."""
    often = re.search(r"readmitted (once|twice|\d+ times)", found.headline)
    count = 0 if often is None else NUMERALS.get(often[1]) or int(often[1].split()[0])

    def returns(member: Address) -> int:
        most = 0
        for lists in window.truth.logged.values():
            known = [member in held.addresses for held in lists if held.at_us <= window.last_us]
            most = max(most, sum(not a and b for a, b in pairwise(known)))
        return most

    return sum(map(returns, map(Address, found.members))) >= count


# Suspicions, claims, clocks


def _lasting_suspicion(found: Observation, window: Window) -> bool:
    """Return whether those that suspect logged it so long ago, and the suspects stayed on their lists."""
    least, _ = age_us(re.search(r"for ([^,]+)", found.headline)[1])  # type: ignore[index]
    both = re.match(rf"({ONE.pattern}) and ({ONE.pattern}) suspected each other", found.headline)
    if both is not None:
        pairs = [(both[1], both[2]), (both[2], both[1])]
    else:
        observers, _, suspect = found.headline.partition(" suspected ")
        pairs = [(it, members(suspect)[0]) for it in members(observers)]
    for observer, suspect in pairs:
        raised = window.truth.logs(
            rf"Member \[{suspect.split(':')[0]}\]:\d+ - \S+ is suspected", 0, window.last_us, Address(observer)
        )
        if not raised or window.said.at_us - raised[0][1].at_us < least - AGE_SLACK_US:
            return False
        lists = [
            it for it in window.truth.logged[Address(observer)] if raised[0][1].at_us <= it.at_us <= window.first_us
        ]
        if any(suspect not in it.addresses for it in lists) and found.is_open:
            return False
    return True


def _clock_jump(found: Observation, window: Window) -> bool:
    member = Address(found.members[0])
    frozen = [it.at_us for it in window.truth.done if it.kind == "freeze" and member in it.members]
    thawed = [it.at_us for it in window.truth.done if it.kind == "thaw" and member in it.members]
    set_to = [(it.at_us, abs(int(it.value))) for it in window.truth.done if it.kind == "clock" and member in it.members]
    least, most = age_us(re.search(r"for ([^;]+)", found.headline)[1])  # type: ignore[index]
    if set_to and "stood still for" not in found.headline:
        steps = {abs(b - a) for (_, a), (_, b) in pairwise([(0, 0), *set_to])}
        return any(least - 2 * AGE_SLACK_US <= it * SECOND_US <= most + 2 * AGE_SLACK_US for it in steps)
    lengths = [b - a for a, b in zip(frozen, thawed, strict=False) if abs(found.start_utc - a) < 2 * AGE_SLACK_US]
    accused = members(found.headline.partition("; ")[2])
    all_accused = all(window.logged(suspicion_of(member), EVER_US, it) for it in accused)
    return any(least - 2 * AGE_SLACK_US <= it <= most + 2 * AGE_SLACK_US for it in lengths) and all_accused


def _shut(found: Observation, window: Window) -> bool:
    """Judge a state that a script has set: it begins with its step and lasts until the next one."""
    states = [(it.at_us, it.value.upper()) for it in window.truth.done if it.kind == "state"]
    ends = [at_us for at_us, _ in states[1:]] + [10**18]
    return any(
        state in found.headline
        and abs(found.start_utc - began_us) <= AGE_SLACK_US
        and (window.first_us < end_us if found.is_open else end_us <= window.last_us)
        for (began_us, state), end_us in zip(states, ends, strict=True)
    )


def _claim(found: Observation, window: Window) -> bool:
    return window.logged("Starting mastership claim", EVER_US, *map(Address, found.members))


def _storm(found: Observation, window: Window) -> bool:
    plans = [
        int(re.search(r"Migration tasks count: (\d+)", it.text)[1])  # type: ignore[index]
        for _, it in window.truth.logs(r"Migration tasks count: \d+", found.start_utc - AGE_SLACK_US, window.last_us)
    ]
    return len(plans) >= STORM_ROUNDS and int(found.headline.split()[0]) <= sum(plans)


def _partition_lost(found: Observation, window: Window) -> bool:
    said = re.fullmatch(".*", found.headline)
    assert said is not None
    holds = loss_text(said, window)
    if holds is None:
        raise NotLogged
    return holds


JUDGES: Mapping[ObservationKind, Judge] = {
    "member-lost": _member_lost,
    "restart": _restart,
    "full-stop": _full_stop,
    "unresponsive": _unresponsive,
    "halves-apart": _apart,
    "lone-master": _apart,
    "flapping": _flapping,
    "oscillation": _flapping,
    "lasting-suspicion": _lasting_suspicion,
    "clock-jump": _clock_jump,
    "claim-not-accepted": _claim,
    "migration-storm": _storm,
    "partition-lost": _partition_lost,
    "frozen": _shut,
}
