"""What each text claims, compared with what members logged: one rule for each form of text.

A rule says True or False, or None where the text says that something is not known. A text that no rule knows is not compared, and
counts as such in the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise

from quarterdeck.backend.core.address import Address
from tests.hazelcast.real.judges import EARLY_US, LATE_US, LOSS_LATE_US, Statement, Verdict
from tests.hazelcast.real.truth import Truth, TruthAtMoment

SECOND_US = 1_000_000
AGE_SLACK_US = 4 * SECOND_US
"""How much later than its log line something may be said to have been."""
SETTLE_US = 20 * SECOND_US
"""A member that was started, stopped, thawed or merged so recently may be on its way still."""
POLLED_US = 1_500_000
"""How much later than it was an end may be noted."""
EVER_US = 10**12
ONE = re.compile(r"10\.77\.0\.\d+:5701")

Rule = Callable[[re.Match[str], "Window"], bool | None]


class LogIsOver(Exception):
    """A member that was asked to end logs no more, and what it does after that is not known.

    Its runtime closes the log at the same signal.
    """


class Window:
    """The moments of which a statement may speak, and what was logged and done up to them."""

    def __init__(self, said: Statement, truth: Truth, *, one_sided: bool) -> None:
        self.said, self.truth, self.one_sided = said, truth, one_sided
        self.first_us, self.last_us = said.at_us - LATE_US, said.at_us + EARLY_US
        self.moments = truth.between(self.first_us, self.last_us)

    def any(self, holds: Callable[[TruthAtMoment], bool]) -> bool:
        """Return whether it was so at some moment."""
        return any(map(holds, self.moments))

    def logged(self, pattern: str, back_us: int, *members: Address) -> bool:
        """Return whether a member logged this within so long before."""
        return bool(self.truth.logs(pattern, self.said.at_us - back_us, self.last_us, *members))

    def done(self, *kinds: str, back_us: int = EVER_US, member: Address | None = None) -> bool:
        """Return whether any of this was done within so long before, to this member or any."""
        return any(
            step.kind in kinds
            and self.said.at_us - back_us <= step.at_us <= self.last_us + (POLLED_US if step.kind == "end" else 0)
            and (member is None or member in step.members or any(member in link for link in step.links))
            for step in self.truth.done
        )

    def leads(self, master: Address, size: int, version: int | None = None, lineage: str = "") -> bool:
        """Return whether a member leads so many, by its own list."""

        def holds(truth: TruthAtMoment) -> bool:
            held = truth.lists.get(master)
            return (
                held is not None
                and held.addresses[0] == master
                and len(held.addresses) == size
                and version in (None, held.version)
                and held.uuids[0].startswith(lineage)
            )

        return self.any(holds)

    def at_most_one(self) -> bool:
        """Return whether at most one led at some moment."""
        return self.any(lambda truth: len(truth.leading) < 2)

    def two_masters(self) -> bool:
        """Return whether more than one led at some moment."""
        return self.any(lambda truth: len(truth.masters) > 1)

    def is_unsettled(self, member: Address) -> bool:
        """Return whether a member does not answer, or has not for long: it starts, ends, stands still or merges."""
        if self.any(lambda truth: not truth.answers(member) or member in truth.frozen):
            return True
        changed = self.done("start", "end", "kill", "stop", "freeze", "thaw", back_us=SETTLE_US, member=member)
        return changed or self.logged(r"is MERG(ING|ED)", SETTLE_US, member)


def members(text: str) -> list[Address]:
    """Return the members that a text names."""
    return [Address(it) for it in ONE.findall(text)]


def age_us(text: str) -> tuple[int, int]:
    """Return the least and the most that an age may be: `39 s`, `2 min`, `1 h`, `1.5 s`, `3 min 20 s`."""
    parts = re.findall(r"([\d.]+) (h|min|s)", text)
    units = {"h": 3_600 * SECOND_US, "min": 60 * SECOND_US, "s": SECOND_US}
    least = round(sum(float(number) * units[unit] for number, unit in parts))
    return least, least + units[parts[-1][1]]


def was_about(text: str, moments_us: Iterable[int], said_us: int) -> bool:
    """Return whether one of these moments lies so long before as a text says."""
    least, most = age_us(text)
    return any(least - SECOND_US <= said_us - it <= most + AGE_SLACK_US for it in moments_us)


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


def _unsettled(match: re.Match[str], window: Window) -> bool:
    return all(map(window.is_unsettled, members(match["who"])))


def _loss(match: re.Match[str], window: Window) -> bool:
    loss = window.truth.loss
    if loss is None or window.said.at_us < loss.at_us:
        return False
    entries = re.search(r"about ([\d,]+) entr", match[0])
    if entries is not None and abs(int(entries[1].replace(",", "")) - loss.entries) > loss.entries / 20:
        return False
    after = re.search(r"after (.*?) went", match[0])
    killed = {it for step in window.truth.done if step.kind == "kill" for it in step.members}
    ago = re.search(r"([\d.]+ (?:s|min|h)) ago", match[0])
    when = ago is None or was_about(ago[1], [loss.at_us + it * SECOND_US for it in range(8)], window.said.at_us)
    return when and (after is None or set(members(after[1])) <= killed)


STATUS: list[tuple[str, Rule]] = [
    ("healthy", lambda _, window: window.any(lambda truth: truth.whole)),
    (r"SPLIT(?: since (?P<since>.*))?", _split),
    ("DATA LOST", _loss),
    ("changing|degraded", lambda _, window: _is_troubled(window)),
    ("unknown|no member is reached", lambda *_: None),
    ("down|no member runs: .*", lambda _, window: window.any(lambda truth: not truth.lists.keys() - truth.leaving)),
    (r"(?P<holders>\d+)(?: of (?P<size>\d+))? members? ?(agree)?", _agree),
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
    (".*not reported.*|backups unknown|.*…", lambda *_: None),
    ("no data yet", lambda _, window: not window.logged("Repartitioning|Initializing cluster partition table", EVER_US)),
    (r"\d+ partitions? without an owner", lambda _, window: window.done("kill", "end", "cut", "freeze")),
    (r".*(lost|partitions? of ).*", _loss),
]  # fmt: skip


def _is_troubled(window: Window) -> bool:
    """Return whether it was not whole at some moment, or something went on just before, or a member is suspected."""
    if window.any(lambda truth: not truth.whole) or window.any(lambda truth: truth.quiet_us < SETTLE_US):
        return True
    return window.logged("is suspected to be dead", EVER_US) or window.truth.loss is not None


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
    """Return whether no master had removed any member by then, in any list that was logged after the first common one."""
    removals = (
        new.at_us
        for lists in window.truth.logged.values()
        for old, new in pairwise(lists)
        if new.addresses[0] == new.addresses[new.uuids.index(new.member_uuid)]
        and old.member_uuid == new.member_uuid
        and {*old.uuids} - {*new.uuids}
    )
    return not any(it < window.first_us for it in removals)


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
    """Return whether a master logged a round of so many migrations, or so many were planned in all."""
    planned = [
        int(re.search(r"Migration tasks count: (\d+)", it.text)[1])  # type: ignore[index]
        for _, it in window.truth.logs(r"Migration tasks count: \d+", 0, window.last_us)
    ]
    return bool(planned) and int(match["number"]) <= sum(planned)


QUESTIONS: list[tuple[str, Rule]] = [
    ("is it one cluster: yes, .*", lambda match, window: window.at_most_one() and _half(match[0], window)),
    (r"is it one cluster: no: (?P<number>\d+) masters.*", lambda match, window: window.any(
        lambda truth: len(truth.masters) >= int(match["number"]))),
    ("is it one cluster: not known: .*; (?P<who>.*) (merge|merges)", lambda match, window: _half(match[0], window) and all(
        window.logged("is MERGING", SETTLE_US, it) for it in members(match["who"]))),
    ("is it one cluster: not known: .*; (?P<who>.*) (is|are) not seen.*", lambda match, window: _half(
        match[0], window) and _unsettled(match, window)),
    ("is it one cluster: not seen: (?P<who>.*); whom they follow now is not known", lambda match, window: _unsettled(
        match, window) and not any(_has_ended(it, window) for it in members(match["who"]))),
    ("is it one cluster: ended: (?P<who>.*)", _gone),
    ("is it one cluster: no master is seen", lambda _, window: window.any(lambda truth: not truth.leading)),
    ("is it one cluster: .* leads .*", lambda match, window: _half(match[0], window)),
    ("why do they not merge: there are no two masters in sight", lambda _, window: window.at_most_one()),
    ("why do they not merge: (?P<who>\\S+ and \\S+: .*)", lambda match, window: _pair(match["who"], window)),
    ("why do they not merge: what helps: .*", lambda _, window: window.one_sided),
    ("who was removed, and why: nobody.*", _none_removed),
    ("who was removed, and why: (?P<who>.*?) by (?P<by>\\S+?)"
     "(?P<claims>, which claimed the mastership)?, (?P<ago>[^:]*) ago: (?P<why>.*)", _removed),
    ("who was removed, and why: and \\d+ times before", lambda *_: True),
    ("which suspicions stay: (?P<who>\\S+ and \\S+) suspect each other.*", _stays),
    (r"have all the same partition table: yes: (?P<number>\d+) members?.*", lambda match, window: window.any(
        lambda truth: len(truth.leading) < 2 and int(match["number"]) <= len(truth.lists))),
    ("have all the same partition table: no: .*", lambda _, window: window.two_masters() or window.any(
        lambda truth: truth.quiet_us < SETTLE_US)),
    ("have all the same partition table: (no table is known.*)", lambda _, window: not window.logged(
        "Initializing cluster partition table", EVER_US)),
    ("have all the same partition table: (table|.*stamp).*", lambda *_: True),
    ("which data was lost: none that was recorded here", lambda _, window: window.truth.loss is None
     or window.said.at_us < window.truth.loss.at_us + LOSS_LATE_US),
    ("which data was lost: .*not reported.*", lambda *_: None),
    ("which data was lost: .*", _loss),
    ("is the migration stuck: (no migration was seen to end|nothing has migrated)", lambda _, window: not window.logged(
        "All migration tasks have been completed", EVER_US) or window.truth.at(window.first_us).quiet_us < SETTLE_US),
    ("is the migration stuck: no: all (?P<number>\\d+) of the last round are done.*", _migrated),
    ("is the migration stuck: it stands still.*", lambda _, window: window.done("kill", "freeze", "cut")),
    ("is the migration stuck: .*(?P<number>\\d+) (of|migrations? waiting).*", _migrated),
    ("which health answers mislead: cluster-safe and cluster-size .*", lambda _, window: window.two_masters()),
    ("which health answers mislead: node-state .*", lambda _, window: window.logged("Changing cluster state", SETTLE_US)),
    ("which health answers mislead: /hazelcast/health waits .*", lambda _, window: window.done(
        "kill", "stop", "freeze", "cut", "end") or window.any(lambda truth: len(truth.lists) < len(truth.running))),
    ("which health answers mislead: none.*|which member owns a key: .*", lambda *_: True),
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
        said = window.truth.logs(rf"should merge to|{name}.*(merge|split|Cannot)", 0, window.last_us, Address(met[1]))
        return was_about(met[3], (words.at_us for _, words in said), window.said.at_us)
    if "neither" in text:
        return window.one_sided
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
    ("no migration was seen to end", QUESTIONS[0][1]),
    (r"seen to end: (?P<number>\d+) migrations?", lambda match, window: _migrated(match, window)),
    (".*none waits by the master's metrics", lambda *_: True),
    (r"(?P<number>\d+) migrations? waiting.*", _migrated),
    (".*not reported.*", lambda *_: None),
    (r".*: 0 running, 0 planned, (?P<number>\d+) done.*", _migrated),
    (r"reported as long as the cluster of (?P<who>\S+) exists", lambda match, window: window.any(
        lambda truth: set(members(match["who"])) <= truth.masters)),
    (r".*(lost|entries|gone|partitions? of ).*", _loss),
]  # fmt: skip
MIGRATIONS[0] = (
    MIGRATIONS[0][0],
    lambda _, window: (
        not window.logged("All migration tasks have been completed", EVER_US)
        or window.truth.at(window.first_us).quiet_us < SETTLE_US
    ),
)

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
    """Return whether members are leaving: they log nothing more, and clients are still sent their lists."""
    return said.kind in ("status", "question") and window.any(lambda it: bool(it.leaving))


def _is_of_reach(text: str, said: Statement) -> bool:
    """Return whether a text says only what the console does not reach: no log shows how a connection of one client fares."""
    return re.search("not reached|not seen|no master is seen", text) is not None and bool(said.unreached)


def judge_text(said: Statement, truth: Truth, *, one_sided: bool) -> Verdict:
    """Return whether a text was true at some moment of its window."""
    for pattern, rule in RULES[said.kind]:
        match = re.fullmatch(pattern, str(said.value))
        if match is not None:
            window = Window(said, truth, one_sided=one_sided)
            try:
                holds = rule(match, window)
            except LogIsOver:
                return "not compared"
            if holds is False and (_logs_end(said, window) or _is_of_reach(match[0], said)):
                return "not compared"
            return "not reported" if holds is None else "true" if holds else "false"
    return "not compared"
