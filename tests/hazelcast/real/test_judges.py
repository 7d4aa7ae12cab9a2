"""What is true by the logs of members and by what was done to them, and what is judged by it."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.address import Address
from tests.hazelcast.real.judges import Kind, Statement, Verdict, judge, table
from tests.hazelcast.real.member_logs import LoggedList, LoggedWords, lists_of
from tests.hazelcast.real.text_judges import judge_text
from tests.hazelcast.real.truth import DoneStep, EntryCount, Truth

ONE, TWO = (Address(f"10.77.0.{it}:5701") for it in (1, 2))
UUIDS = {it: f"00000000-0000-4000-8000-00000000000{number}" for number, it in enumerate((ONE, TWO), start=1)}
SECOND = 1_000_000


def logged(own: Address, version: int, second: int, *members: Address) -> LoggedList:
    rows = "\n".join(
        f"\tMember [{it.split(':')[0]}]:5701 - {UUIDS[it]}{' this' if it == own else ''}" for it in members
    )
    head = f"2026-11-21 12:15:{second:02d},000 INFO [ClusterService] [{own}] \n\nMembers "
    (found,) = lists_of(f"{head}{{size:{len(members)}, ver:{version}}} [\n{rows}\n]\n".replace("] \n\n", "] "))
    return found


BEGAN = logged(ONE, 1, 0, ONE).at_us
BOTH = (ONE, TWO)
SPLIT = Truth(
    {
        ONE: [logged(ONE, 2, 1, *BOTH), logged(ONE, 3, 20, ONE)],
        TWO: [logged(TWO, 2, 1, *BOTH), logged(TWO, 3, 20, TWO)],
    },
    [
        DoneStep(BEGAN, "start", BOTH),
        DoneStep(BEGAN + 14 * SECOND, "cut", links=frozenset({BOTH})),
        DoneStep(BEGAN + 40 * SECOND, "heal"),
    ],
)
KILLED = Truth(
    {ONE: [logged(ONE, 2, 1, *BOTH)]}, [DoneStep(BEGAN, "start", BOTH), DoneStep(BEGAN + 9 * SECOND, "kill", (TWO,))]
)
REMOVED = Truth({ONE: [logged(ONE, 2, 1, *BOTH), logged(ONE, 3, 10, ONE)]}, KILLED.done)
COUNTED = Truth(
    REMOVED.logged,
    REMOVED.done,
    maps={"orders": 50, "two": 50},
    counts=[
        EntryCount(BEGAN + 8 * SECOND, BEGAN + 8 * SECOND + 1, {"orders": 50, "two": 50}),
        EntryCount(BEGAN + 9 * SECOND, BEGAN + 12 * SECOND, {"orders": None, "two": 50}),
        EntryCount(BEGAN + 14 * SECOND, BEGAN + 14 * SECOND + 1, {"orders": 30, "two": 50}),
    ],
)


@pytest.mark.parametrize(
    ("truth", "second", "kind", "about", "value", "verdict"),
    [
        (SPLIT, 10, "whole", (), True, "true"),
        (SPLIT, 30, "whole", (), True, "false"),
        (SPLIT, 22, "whole", (), True, "true"),
        (SPLIT, 30, "whole", (), None, "not reported"),
        (SPLIT, 30, "one cluster", (), True, "false"),
        (SPLIT, 30, "one cluster", (), False, "true"),
        (SPLIT, 30, "links up", BOTH, True, "false"),
        (SPLIT, 45, "links up", BOTH, True, "true"),
        (SPLIT, 30, "list", (ONE,), (UUIDS[ONE],), "true"),
        (SPLIT, 30, "list", (ONE,), tuple(UUIDS.values()), "false"),
        (SPLIT, 30, "gone", (TWO,), True, "false"),
        (KILLED, 15, "gone", (TWO,), True, "true"),
        (KILLED, 15, "frozen", (TWO,), True, "false"),
        (KILLED, 15, "entries lost", (), 5, "false"),
        (KILLED, 15, "entries lost", (), False, "true"),
    ],
)
def test_a_statement_is_judged_by_what_was_so_in_the_last_seconds(
    truth: Truth, second: int, kind: Kind, about: tuple[Address, ...], value: object, verdict: Verdict
) -> None:
    assert judge(Statement(BEGAN + second * SECOND, kind, about, value), truth) == verdict


def test_the_table_counts_each_kind() -> None:
    said = Statement(BEGAN, "whole", (), True)
    assert table([(said, "true"), (said, "false"), (said, "not reported"), (said, "true")])[1:] == [
        f"whole               4{2:>13}{1:>13}{1:>13}{0:>13}{0:>13}"
    ]


@pytest.mark.parametrize(
    ("second", "kind", "text", "verdict"),
    [
        (10, "status", "healthy", "true"),
        (30, "status", "healthy", "false"),
        (30, "status", f"1 + 1, masters {ONE}, {TWO}", "true"),
        (30, "status", f"2 + 1, masters {ONE}, {TWO}", "false"),
        (30, "status", f"{TWO} gone", "false"),
        (30, "status", "SPLIT since 10 s", "true"),
        (30, "status", "SPLIT since 25 s", "false"),
        (
            30,
            "question",
            f"is it one cluster: yes, as far as is seen: {ONE} leads 1 member, list v3 of lineage 00000000",
            "false",
        ),
        (30, "question", f"who was removed, and why: {TWO} by {ONE}, 10 s ago: why is not reported: give logs", "true"),
        (30, "question", f"who was removed, and why: {TWO} by {ONE}, 3 s ago: why is not reported: give logs", "false"),
        (30, "question", "a heading that is new: a text that is new", "no rule"),
        (20, "mark", f"S two masters: {ONE}, {TWO}", "true"),
        (10, "mark", f"S two masters: {ONE}, {TWO}", "false"),
    ],
)
def test_a_text_is_compared_with_what_is_logged(second: int, kind: Kind, text: str, verdict: Verdict) -> None:
    said = Statement(BEGAN + second * SECOND, kind, (), text)
    assert judge_text(said, SPLIT, one_sided=False) == verdict


@pytest.mark.parametrize(
    ("second", "kind", "text", "verdict"),
    [
        (15, "status", "1 of 2", "true"),
        (15, "status", "1 of 3", "false"),
        (15, "status", "2 of 2", "false"),
        (15, "status", f"{TWO} gone 5 s ago (its process has ended)", "true"),
        (30, "status", f"{TWO} gone 5 s ago (its process has ended)", "false"),
        (15, "status", f"{ONE} gone 5 s ago (its process has ended)", "false"),
        (15, "status", f"{TWO} frozen 5 s ago", "false"),
        (15, "status", f"{TWO} gone 5 s ago (its process was started again)", "false"),
        (15, "status", f"2 partitions of orders, 5 s ago after {TWO} went", "true"),
        (15, "status", f"2 partitions of two, 5 s ago after {TWO} went", "false"),
        (15, "status", f"2 partitions of orders, 5 s ago after {ONE} went", "false"),
        (40, "status", f"2 partitions of orders, 5 s ago after {TWO} went", "false"),
        (
            15,
            "question",
            f"which data was lost: {ONE} maybe lost 2 partitions, 5 s ago after {TWO} went",
            "not reported",
        ),
        (15, "question", f"which data was lost: {ONE} maybe lost 2 partitions, 5 s ago after {ONE} went", "false"),
        (15, "question", "which calls fail now: 2 partitions without an owner", "true"),
        (8, "question", "which calls fail now: 2 partitions without an owner", "false"),
        (30, "question", "which calls fail now: 2 partitions without an owner", "false"),
        (15, "question", "which calls fail now: PASSIVE: writes are refused", "false"),
    ],
)
def test_a_missing_member_and_its_data_are_compared_with_lists_steps_and_counts(
    second: int, kind: Kind, text: str, verdict: Verdict
) -> None:
    said = Statement(BEGAN + second * SECOND, kind, (), text)
    assert judge_text(said, COUNTED, one_sided=False) == verdict


@pytest.mark.parametrize(("age", "verdict"), [("10 s", "true"), ("60 s", "false")])
def test_a_side_is_not_heard_since_its_watchers_were_cut_off(age: str, verdict: Verdict) -> None:
    truth = Truth(SPLIT.logged, [*SPLIT.done[:2], DoneStep(BEGAN + 30 * SECOND, "blind", (TWO,))])
    said = Statement(BEGAN + 40 * SECOND, "status", (), f"{TWO}, not heard for {age}")
    assert judge_text(said, truth, one_sided=False) == verdict
    text = f"is it one cluster: {TWO} led 1 member when it was heard last, {age} ago"
    assert judge_text(said._replace(kind="question", value=text), truth, one_sided=False) == verdict


def test_promotions_are_reported_and_stand_in_no_log() -> None:
    """A member that is killed leaves backups that become owners' copies, each member's in a round of its own."""
    text = "is the migration stuck: no: all 15 of the last round are done, 0 s ago"
    said = Statement(BEGAN + 10 * SECOND, "question", (), text)
    assert judge_text(said, KILLED, one_sided=False) == "not compared"
    assert judge_text(said, SPLIT, one_sided=False) == "false"


def test_a_last_list_of_a_master_that_has_left_to_merge_leads_nobody() -> None:
    words = {TWO: [LoggedWords(BEGAN + 41 * SECOND, f"INFO [LifecycleService] [{TWO}] is MERGING")]}
    logged_lists = {**SPLIT.logged, TWO: [*SPLIT.logged[TWO], logged(TWO, 4, 42, TWO)]}
    truth = Truth(logged_lists, SPLIT.done, None, words)
    assert truth.at(BEGAN + 40 * SECOND).leading == {ONE, TWO}
    assert truth.at(BEGAN + 42 * SECOND).leading == {ONE}
