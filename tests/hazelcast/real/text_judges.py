"""What each text claims, compared with what members logged: one rule for each form of text.

A rule says True or False, or None where the text says that something is not known. A text that no rule knows fails the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise

from quarterdeck.backend.core.address import Address
from tests.hazelcast.real.absence_rules import (
    ABSENT,
    AGE,
    is_absent,
    is_not_heard,
    is_so_many_of,
    led_when_heard,
    misses_a_member,
)
from tests.hazelcast.real.judges import LOSS_LATE_US, Statement, Verdict
from tests.hazelcast.real.loss_rules import is_missing_entries, is_ownerless, loss_text
from tests.hazelcast.real.truth import Truth, TruthAtMoment
from tests.hazelcast.real.window import (
    AGE_SLACK_US,
    EVER_US,
    METRICS_US,
    ONE,
    SECOND_US,
    SETTLE_US,
    LogIsOver,
    NotLogged,
    Window,
    age_us,
    members,
    was_about,
)  # fmt: skip

PARTITIONS = 271
Rule = Callable[[re.Match[str], Window], bool | None]


# Status


def _split(match: re.Match[str], window: Window) -> bool:
    if not window.two_masters():
        return False
    moments = window.truth.between(window.truth.done[0].at_us, window.last_us)
    began = [after.at_us for one, after in pairwise(moments) if len(one.masters) < len(after.masters) > 1]
    return match["since"] is None or was_about(match["since"], began, window.said.at_us)


def _agree(match: re.Match[str], window: Window) -> bool:
    holders, size = int(match["holders"]), int(match["size"] or match["holders"])

    def holds(truth: TruthAtMoment) -> bool:
        counts = [
            sum(it.uuids == held.uuids for it in truth.lists.values())
            for held in truth.lists.values()
            if len(held.uuids) == size
        ]
        return max(counts, default=0) >= holders

    return window.any(holds)


def _suspected(match: re.Match[str], window: Window) -> bool:
    number = int(match["number"])

    def by(suspect: Address) -> int:
        return len({member for member, _ in window.truth.logs(suspicion_of(suspect), 0, window.last_us)})

    return all(by(it) >= number for it in members(match["who"]))


def _masters(match: re.Match[str], window: Window) -> bool:
    sizes = [int(it) for it in re.findall(r"\d+", match["sizes"])]
    return all(window.leads(it, size) for it, size in zip(members(match["who"]), sizes, strict=False))


def _gone(match: re.Match[str], window: Window) -> bool:
    return all(window.any(lambda truth, it=it: not truth.answers(it)) for it in members(match["who"]))  # type: ignore[misc]


def _misses_cp(match: re.Match[str], window: Window) -> bool:
    """Return whether so many were killed: one that is started again is no CP member until an operator promotes it."""
    killed = {it for step in window.truth.done if step.kind == "kill" for it in step.members}
    return len(killed) >= int(match["number"]) and window.done("kill")


def _unsettled(match: re.Match[str], window: Window) -> bool:
    return all(map(window.is_unsettled, members(match["who"])))


STATUS: list[tuple[str, Rule]] = [
    ("healthy", lambda _, window: window.any(lambda truth: truth.whole)),
    (r"SPLIT(?: since (?P<since>.*))?", _split),
    ("DATA LOST", loss_text),
    ("changing|degraded", lambda _, window: _is_troubled(window)),
    ("unknown|no member is reached", lambda *_: None),
    ("down|no member runs: .*", lambda _, window: window.any(lambda truth: not truth.lists.keys() - truth.leaving)),
    (r"(?P<holders>\d+)(?: of (?P<size>\d+))? members? ?(agree)?", _agree),
    (r"(?P<present>\d+) of (?P<total>\d+)", is_so_many_of),
    (ABSENT, is_absent),
    (rf"(?P<who>.*), not heard for {AGE}", is_not_heard),
    ("PASSIVE: writes are refused", lambda _, window: window.is_shut()),
    (r"(?P<who>.*) suspected by (?P<number>\d+)", _suspected),
    (r"(?P<who>.*) frozen", lambda match, window: window.any(lambda truth: set(members(match["who"])) <= truth.frozen)),
    (r"(?P<who>.*) gone", _gone),
    (r"(?P<who>.*) (not reached|silent|not ready|joining)|not seen: (?P<unseen>.*)", lambda match, window: all(map(
        window.is_unsettled, members(match["who"] or match["unseen"])))),
    (r"\d+ members? joining, no member list yet", lambda _, window: window.done("start", back_us=60 * SECOND_US)),
    (r"(?P<who>.*) claims? the mastership", lambda match, window: window.logged(
        "Starting mastership claim", SETTLE_US, *members(match["who"]))),
    (r"(?P<sizes>[\d+ ]+), masters (?P<who>.*)", _masters),
    ("writes may go to (both|all)", lambda _, window: window.two_masters()),
    (r"\d+ member lists, another one at (?P<who>.*)", lambda match, window: window.any(
        lambda truth: len({it.uuids for it in truth.lists.values()}) > 1)),
    ("no master is seen", lambda _, window: window.any(lambda truth: not truth.leading)),
    (".*not reported.*|backups unknown|owners of .* unknown|.*…", lambda *_: None),
    ("no data yet", lambda _, window: not window.logged("Repartitioning|Initializing cluster partition table", EVER_US)),
    (r"\d+ partitions? without an owner", is_ownerless),
    (r"(?P<number>\d+) CP members? missing", _misses_cp),
    (r".*(lost|partitions? of ).*", loss_text),
]  # fmt: skip


def _is_troubled(window: Window) -> bool:
    """Return whether it was not whole, something went on before, a member is suspected or missing, or data is lost."""
    if window.any(lambda truth: not truth.whole or truth.quiet_us < SETTLE_US):
        return True
    if misses_a_member(window) or is_missing_entries(window):
        return True
    return any(map(window.truth.suspicions, (window.first_us, window.last_us))) or window.truth.loss is not None


# Questions


def _half(text: str, window: Window) -> bool:
    match = re.search(rf"({ONE.pattern}) leads (\d+) members?, list v(\d+) of lineage (\w+)", text)
    return match is not None and window.leads(Address(match[1]), int(match[2]), int(match[3]), match[4])


def _removed(match: re.Match[str], window: Window) -> bool:
    remover, removed, said_us = Address(match["by"]), set(members(match["who"])), window.said.at_us
    lists = window.truth.logged.get(remover, ())
    found = [
        (new.at_us, new.addresses[0] != old.addresses[0])
        for old, new in pairwise(lists)
        if removed & {old.addresses[old.uuids.index(it)] for it in {*old.uuids} - {*new.uuids}}
    ]
    when = [at_us for at_us, claims in found if claims == bool(match["claims"])]
    began_us = said_us - age_us(match["ago"])[0] + SECOND_US
    lately = [step.kind for step in window.truth.done if remover in step.members and step.at_us <= began_us]
    if lately[-1:] in (["stop"], ["end"]):
        raise LogIsOver
    if not was_about(match["ago"], when, said_us):
        return False
    gone = {
        old.addresses[old.uuids.index(it)]
        for old, new in pairwise(lists)
        for it in {*old.uuids} - {*new.uuids}
        if new.at_us in _near(when, 4 * SECOND_US, [new.at_us])
    }
    return removed <= gone and all(_is_reason(it, remover, removed, window) for it in match["why"].split("; "))


def _near(moments_us: Iterable[int], slack_us: int, candidates: Iterable[int]) -> list[int]:
    return [it for it in candidates if any(abs(it - at_us) <= slack_us for at_us in moments_us)]


def _is_reason(reason: str, remover: Address, removed: set[Address], window: Window) -> bool:
    """Return whether the remover logged this reason of one of those, or one of those logged its own end."""
    if "not reported" in reason or "no reason was given" in reason:
        return True
    if reason == "it asked its master to let it leave":
        return all(window.done("stop", member=it) for it in removed)
    if reason.startswith("it stopped"):
        return any(window.done("stop", "end", member=it) for it in removed)
    if "no acceptance" in reason:  # it claimed, and had nothing against them before
        return not window.logged(suspicion_of(*removed), EVER_US, remover)
    words = [re.sub(r"[\[\]]", "", it.text) for it in window.truth.words.get(remover, ())]
    parts = re.sub(r"[\[\]]", "", reason).removesuffix("…").removeprefix("No connection: ")
    return any(parts in it for it in words)


def _none_removed(_: re.Match[str], window: Window) -> bool:
    """Return whether no master had removed any member by then, since the first record that the console remembers."""
    removals = (
        new.at_us
        for lists in window.truth.logged.values()
        for old, new in pairwise(lists)
        if new.addresses[0] == new.addresses[new.uuids.index(new.member_uuid)]
        and old.member_uuid == new.member_uuid
        and {*old.uuids} - {*new.uuids}
    )
    return not any(window.said.since_us < it < window.first_us for it in removals)


def _stays(match: re.Match[str], window: Window) -> bool:
    """Return whether two suspect each other by their own logs, and go on so while both run and the script lasts."""
    one, other = members(match["who"])
    pairs = ((one, other), (other, one))
    raised = [window.truth.logs(suspicion_of(suspect), 0, window.last_us, by) for by, suspect in pairs]
    cleared = any(
        window.truth.logs(rf"Removed suspicion of Member {re.escape(_logged_name(suspect))}", 0, 10**18, by)
        for by, suspect in pairs
    )
    return all(raised) and not cleared


def _migrated(match: re.Match[str], window: Window) -> bool:
    """Return whether a master logged a round of so many migrations, or so many were planned in all.

    A backup that is made the owner's copy is reported like a migration, in a round of its own, and stands in no log.
    """
    planned = [
        int(re.search(r"Migration tasks count: (\d+)", it.text)[1])  # type: ignore[index]
        for _, it in window.truth.logs(r"Migration tasks count: \d+", 0, window.last_us)
    ]
    if planned and int(match["number"]) <= sum(planned):
        return True
    if (
        window.done("kill", "end", "cut", "freeze", "clock", "latency")
        and int(match["number"]) <= sum(planned) + PARTITIONS
    ):
        raise NotLogged
    return False


def _none_ended(_: re.Match[str], window: Window) -> bool:
    """Return whether no member had logged the end of a round before the latest metrics."""
    return not window.truth.logs("All migration tasks have been completed", 0, window.said.at_us - METRICS_US)


def _migrates_all_the_time(window: Window) -> bool:
    """Return whether a running master was amid a round of migrations since before the latest metrics."""
    began_us = window.said.at_us - METRICS_US
    return window.any(lambda truth: any(_is_amid_round(it, began_us, window) for it in truth.leading))


def _is_amid_round(master: Address, began_us: int, window: Window) -> bool:
    planned = window.truth.logs(r"Migration tasks count: [1-9]", 0, began_us, master)
    ended = "All migration tasks have been completed"
    return bool(planned) and not window.truth.logs(ended, planned[-1][1].at_us, window.last_us, master)


def _queued(_: re.Match[str], window: Window) -> bool:
    """Return whether a master had reason to plan or check: something was done or a list changed not long before."""
    return window.any(lambda truth: truth.quiet_us < SETTLE_US) or _migrates_all_the_time(window)


def _not_logged(*_: object) -> bool:
    """Leave a value uncompared that members log nowhere, as the stamps of their tables."""
    raise NotLogged


QUESTIONS: list[tuple[str, Rule]] = [
    ("is it one cluster: yes, .*", lambda match, window: window.at_most_one() and _half(match[0], window)),
    (r"is it one cluster: no: (?P<number>\d+) masters.*", lambda match, window: window.any(
        lambda truth: len(truth.masters) >= int(match["number"]))),
    ("is it one cluster: not known: .*; (?P<who>.*) (merge|merges)", lambda match, window: _half(match[0], window) and all(
        window.logged("is MERGING", SETTLE_US, it) for it in members(match["who"]))),
    ("is it one cluster: not known: .*; (?P<who>.*) (is|are) not seen.*", lambda match, window: _half(
        match[0], window) and _unsettled(match, window)),
    ("is it one cluster: not known: .*; (?P<who>.*) (was|were) removed from its list and .*", lambda match, window: _half(
        match[0], window) and all(window.any(lambda truth, it=it: any(  # type: ignore[misc]
            it not in listed.addresses for listed in truth.lists.values())) for it in members(match["who"]))),
    ("is it one cluster: not seen: (?P<who>.*); whom they follow now is not known", lambda match, window: _unsettled(
        match, window) and not any(_has_ended(it, window) for it in members(match["who"]))),
    ("is it one cluster: ended: (?P<who>.*)", _gone),
    ("is it one cluster: no master is seen", lambda _, window: window.any(lambda truth: not truth.leading)),
    ("is it one cluster: .* leads .*", lambda match, window: _half(match[0], window)),
    (rf"is it one cluster: (?P<who>{ONE.pattern}) led (?P<size>\d+) members? when it was heard last, {AGE} ago", led_when_heard),
    ("which calls fail now: \\d+ partitions? without an owner", is_ownerless),
    (r"which calls fail now: (?P<number>\d+) CP members? missing", _misses_cp),
    ("which calls fail now: PASSIVE: writes are refused", lambda _, window: window.is_shut()),
    ("why do they not merge: there are no two masters in sight", lambda _, window: window.at_most_one()),
    ("why do they not merge: (?P<who>\\S+ and \\S+: .*)", lambda match, window: _pair(match["who"], window)),
    ("why do they not merge: not known of (?P<who>.*), of which nothing is heard", lambda match, window: window.any(
        lambda truth: set(members(match["who"])) <= truth.masters)),
    ("why do they not merge: what helps: .*", lambda _, window: window.one_sided),
    ("who was removed, and why: no member, as far back.*", _none_removed),
    ("who was removed, and why: (?P<who>.*?) by (?P<by>\\S+?)"
     "(?P<claims>, which claimed the mastership)?, (?P<ago>[^:]*) ago: (?P<why>.*)", _removed),
    ("who was removed, and why: and \\d+ times before", lambda *_: True),
    ("which suspicions stay: (?P<who>\\S+ and \\S+) suspect each other.*", _stays),
    (r"have all the same partition table: yes: (?P<number>\d+) members?.*", lambda match, window: window.any(
        lambda truth: len(truth.leading) < 2 and int(match["number"]) <= len(truth.lists)) and _not_logged(match, window)),
    ("have all the same partition table: not known: .*", lambda *_: None),
    ("have all the same partition table: no: .*", lambda _, window: window.two_masters() or window.any(
        lambda truth: truth.quiet_us < SETTLE_US)),
    ("have all the same partition table: (no table is known.*)", lambda _, window: not window.logged(
        "Initializing cluster partition table", EVER_US)),
    ("have all the same partition table: (table|.*stamp).*", _not_logged),
    ("which data was lost: none that was recorded here", lambda _, window: window.truth.loss is None
     or window.said.at_us < window.truth.loss.at_us + LOSS_LATE_US),
    ("which data was lost: .*not reported.*", lambda *_: None),
    ("which data was lost: .*", loss_text),
    (r"is the migration stuck: (no: )?(\S+: )?(no migration was seen to end|nothing has migrated)", _none_ended),
    ("is the migration stuck: no master is seen that migrates", lambda _, window: window.any(
        lambda truth: truth.leading <= window.said.unreached)),
    ("is the migration stuck: no: all (?P<number>\\d+) of the last round are done.*", _migrated),
    ("is the migration stuck: it stands still.*", lambda _, window: window.done("kill", "freeze", "cut")),
    ("is the migration stuck: .*(?P<number>\\d+) of .*", _migrated),
    (r"is the migration stuck: (no: )?(\S+: )?(?P<number>\d+) tasks? in the migration queue.*", _queued),
    ("which health answers mislead: cluster-safe and cluster-size .*", lambda _, window: window.two_masters()),
    ("which health answers mislead: node-state .*", lambda _, window: window.is_shut()),
    ("which health answers mislead: /hazelcast/health waits .*", lambda _, window: window.done(
        "kill", "stop", "freeze", "cut", "end", "clock", "latency") or window.any(
            lambda truth: len(truth.lists) < len(truth.running))),
    ("which health answers mislead: none.*", lambda _, window: window.any(lambda truth: len(truth.masters) < 2
     and all(set(it.addresses) <= truth.running for it in truth.lists.values()))),
    ("which member owns a key: type .*", lambda *_: None),
    (".*not reported.*", lambda *_: None),
]  # fmt: skip


def _has_ended(member: Address, window: Window) -> bool:
    return not any(member in truth.running for truth in window.moments)


def _pair(text: str, window: Window) -> bool:
    """Return whether two lead at once, whether the sizes are theirs, and whether what one says of the other stands in its log."""
    one, other = members(text)[:2]
    if not window.any(lambda truth: {one, other} <= truth.masters):
        return False
    sizes = re.findall(rf"({ONE.pattern}) has (\d+)(?: data members)?|and ({ONE.pattern}) has (\d+)", text)
    if not all(window.leads(Address(a or c), int(b or d)) for a, b, c, d in sizes):
        return False
    met = re.search(rf"({ONE.pattern}) met ({ONE.pattern}) (\d+ \w+) ago: (.*)", text)
    if met is not None:
        name = re.escape(_logged_name(Address(met[2])))
        said = window.truth.logs(
            rf"merge to {name}|should merge to|{name}.*(merge|split|Cannot)", 0, window.last_us, Address(met[1])
        )
        quoted = re.search(r"could not merge then, (.*?);", text)
        found = [words for _, words in said if quoted is None or quoted[1] in words.text]
        return was_about(met[3], (words.at_us for words in found), window.said.at_us)
    if "neither" in text:
        return window.one_sided
    if "freezes its cluster before it merges" in text:  # of an operator's order nothing is in these scripts
        return window.logged("is merging|is MERGING", SETTLE_US, one, other)
    if "on its way into" in text:
        return window.logged("is merging|is MERGING", SETTLE_US, one, other)
    both = re.search(r"both list (.*?);", text)
    if both is not None:
        shared = set(members(both[1]))
        return window.any(
            lambda truth: all(shared <= set(truth.lists[it].addresses) for it in (one, other) if it in truth.lists)
        )
    still = re.search(rf"({ONE.pattern}) still lists ({ONE.pattern})", text)
    if still is not None:
        return window.any(lambda truth: still[2] in (truth.lists[one].addresses if one in truth.lists else ()))
    return "not reported" in text and "if so, it finds it" in text


def suspicion_of(*suspects: str) -> str:
    """Return a pattern of what is logged of a suspicion."""
    return rf"Member ({'|'.join(re.escape(_logged_name(it)) for it in suspects)}) - \S+ is suspected to be dead"


def _logged_name(member: str) -> str:
    host, port = member.split(":")
    return f"[{host}]:{port}"


# Migrations and marks

MIGRATIONS: list[tuple[str, Rule]] = [
    ("no migration was seen to end", _none_ended),
    (r"seen to end: (?P<number>\d+) migrations?", _migrated),
    ("none waits by the master's metrics", lambda _, window: not _migrates_all_the_time(window)),
    (r"(?P<number>\d+) tasks? in the migration queue.*", _queued),
    (".*not reported.*", lambda *_: None),
    (r".*: 0 running, 0 planned, (?P<number>\d+) done.*", _migrated),
    (r"reported as long as the cluster of (?P<who>\S+) exists", lambda match, window: window.any(
        lambda truth: set(members(match["who"])) <= truth.masters)),
    (r".*(lost|entries|gone|partitions? of ).*", loss_text),
]  # fmt: skip

MARKS: list[tuple[str, Rule]] = [
    (r"S two masters: (?P<who>.*)", lambda match, window: all(
        window.any(lambda truth, it=it: it in truth.masters) for it in members(match["who"])) and window.two_masters()),  # type: ignore[misc]
    (r"M one master: (?P<who>.*)", lambda match, window: window.any(lambda truth: set(members(match["who"])) == truth.leading)
     and window.logged("is MERG(ING|ED)", SETTLE_US)),
    (r"C \S+ claims.*", lambda match, window: window.logged("Starting mastership claim", AGE_SLACK_US, *members(match[0]))),
    (r"D \S+ is done.*", lambda match, window: window.logged("Mastership is claimed", AGE_SLACK_US, *members(match[0]))),
    (r"E (?P<who>\S+): .*", lambda match, window: _unsettled(match, window)),
]  # fmt: skip

RULES = {"status": STATUS, "question": QUESTIONS, "migrations": MIGRATIONS, "mark": MARKS}


def _logs_end(said: Statement, window: Window) -> bool:
    """Return whether what is said hangs on a list that a leaving member logs no more, though clients are still sent it.

    A text that names members hangs on those alone; of members that stay the logs show all.
    """
    named = set(members(str(said.value)))
    return said.kind in ("status", "question") and window.any(
        lambda it: bool(it.leaving & named if named else it.leaving)
    )


def _is_of_reach(text: str, said: Statement, window: Window) -> bool:
    """Return whether a text says only whom the console does not reach: no log shows how a connection of one client fares.

    It must say so of those alone that it does not reach.
    """
    if "no master is seen" in text:
        return window.any(lambda truth: set(truth.leading) <= said.unreached)
    unseen = re.search(
        r"(?P<before>.*?) (is|are) not (reached|seen)|not seen: (?P<after>[^;]*)|(?P<bare>.*) not reached", text
    )
    if unseen is None:
        return False
    named = members((unseen["before"] or "").rpartition("; ")[2] or unseen["after"] or unseen["bare"] or "")
    return bool(named) and set(named) <= said.unreached


def judge_text(said: Statement, truth: Truth, *, one_sided: bool) -> Verdict:
    """Return whether a text was true at some moment of its window."""
    for pattern, rule in RULES[said.kind]:
        match = re.fullmatch(pattern, str(said.value))
        if match is not None:
            window = Window(said, truth, one_sided=one_sided)
            try:
                holds = rule(match, window)
            except NotLogged:
                return "not compared"
            if holds is False and (_logs_end(said, window) or _is_of_reach(match[0], said, window)):
                return "not compared"
            return "not reported" if holds is None else "true" if holds else "false"
    return "no rule"
