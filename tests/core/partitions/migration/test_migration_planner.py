"""The plan of a partition's migrations: Avoid Data Loss on Migration's examples, every row of 3 and 4 replicas, and random rows
of 5 to 7."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.backend.core.partitions.migration.migration_planner import (
    BadRows,
    MigrationStep,
    Plan,
    cancelled,
    plan_migrations,
    why_each_step,
)
from quarterdeck.backend.core.partitions.table.partition_table import Row
from tests.thoroughness import examples


def row(text: str) -> Row:
    """A row as the document prints it, one letter per member and - for nobody."""
    return tuple(None if letter == "-" else letter for letter in text)


def in_words(steps: tuple[MigrationStep, ...] | list[MigrationStep]) -> list[str]:
    """Each step as kind, source with its indices, destination with its indices."""
    return [
        f"{step.type} {step.source or '-'} {step.source_current} {step.source_new}"
        f" {step.destination or '-'} {step.destination_current} {step.destination_new}"
        for step in steps
    ]


EXAMPLES = [
    ("ABC", "DBC", ["MOVE A 0 -1 D -1 0"]),
    ("A-C", "ADC", ["COPY - -1 -1 D -1 1"]),
    ("A-C", "DAC", ["SHIFT DOWN A 0 1 D -1 0"]),
    ("A-BC", "ABC-", ["SHIFT UP - -1 -1 B 2 1", "SHIFT UP - -1 -1 C 3 2"]),
    ("ABCD", "ACDE", ["MOVE D 3 -1 E -1 3", "MOVE C 2 -1 D -1 2", "MOVE B 1 -1 C -1 1"]),
    ("ABCD", "BDC-", ["SHIFT UP B 1 -1 D 3 1", "MOVE A 0 -1 B -1 0"]),
]


@pytest.mark.parametrize(("current", "target", "steps"), EXAMPLES)
def test_the_examples_of_the_document(current: str, target: str, steps: list[str]) -> None:
    plan = plan_migrations(row(current), row(target))
    assert in_words(plan.steps) == steps
    assert plan.target_after_cycle_fix == row(target)
    assert in_words(by_the_document(row(current), row(target))) == steps


@pytest.mark.parametrize(
    ("current", "target", "fixed", "steps"),
    [
        ("ABC", "CAB", "ABC", []),
        ("ABCD", "CABE", "ABCE", ["MOVE D 3 -1 E -1 3"]),
        ("ABCDE", "BADCF", "ABCDF", ["MOVE E 4 -1 F -1 4"]),
        ("AB-", "BAC", "ABC", ["COPY - -1 -1 C -1 2"]),
    ],
)
def test_cyclic_migrations_are_cancelled(current: str, target: str, fixed: str, steps: list[str]) -> None:
    plan = plan_migrations(row(current), row(target))
    assert plan.target_after_cycle_fix == row(fixed)
    assert in_words(plan.steps) == steps
    kept = [holder for holder, wanted in zip(row(fixed), row(target), strict=True) if holder != wanted]
    assert cancelled(row(target), plan) == kept


@pytest.mark.parametrize(
    ("current", "target", "steps"),
    [
        # The document's order leaves one copy after its first step; COPY has to come first.
        ("F-E", "ED-", ["COPY - -1 -1 D -1 1", "SHIFT UP F 0 -1 E 2 0"]),
        # No order of steps straight to the target keeps three copies: E and D wait in a hole each.
        ("ED-B", "BED-", ["SHIFT UP E 0 2 B 3 0", "SHIFT UP D 1 3 E 2 1", "SHIFT UP - -1 -1 D 3 2"]),
        # Both shifts in one step.
        ("A-B", "BA-", ["SHIFT UP A 0 1 B 2 0"]),
        ("ABC", "A--", ["CLEAR C 2 -1 - -1 -1", "CLEAR B 1 -1 - -1 -1"]),
        ("ABC", "AB-", ["CLEAR C 2 -1 - -1 -1"]),
        # A COPY goes before a MOVE at a hotter index (3.2.3).
        ("AB-", "DBE", ["COPY - -1 -1 E -1 2", "MOVE A 0 -1 D -1 0"]),
        ("---", "AB-", ["COPY - -1 -1 A -1 0", "COPY - -1 -1 B -1 1"]),
        ("---", "---", []),
        ("", "", []),
    ],
)
def test_orders(current: str, target: str, steps: list[str]) -> None:
    plan = plan_migrations(row(current), row(target))
    assert in_words(plan.steps) == steps
    assert not any(step.unavoidable for step in plan.steps)


@pytest.mark.parametrize(
    ("current", "target", "message"),
    [
        ("AB", "ABC", "target: has 3 replicas and current has 2"),
        ("ABCDEFGH", "ABCDEFGH", "current: has 8 replicas; a partition has at most 7"),
        ("AAB", "AAB", "current: the same member is at index 0 and 1"),
        ("AAB", "ABC", "current: the same member is at index 0 and 1"),
        ("ABC", "A-A", "target: the same member is at index 0 and 2"),
    ],
)
def test_bad_rows(current: str, target: str, message: str) -> None:
    with pytest.raises(BadRows) as raised:
        plan_migrations(row(current), row(target))
    assert message in str(raised.value)


# What every plan must be


def replicas(of: Row) -> int:
    return len(of) - of.count(None)


def loses(before: Row, after: Row, target: Row) -> bool:
    return replicas(after) < min(replicas(before), replicas(target))


def after_step(before: Row, step: MigrationStep) -> Row:
    """The row after a step, which has to be a legal one of its kind and to say of the row what is so."""
    after = list(before)
    shape = (step.source is not None, step.source_new >= 0, step.destination is not None, step.destination_current >= 0)
    assert (
        shape
        in {
            "MOVE": [(True, False, True, False)],
            "COPY": [(False, False, True, False)],
            "SHIFT DOWN": [(True, True, True, False)],
            "SHIFT UP": [(False, False, True, True), (True, False, True, True), (True, True, True, True)],
            "CLEAR": [(True, False, False, False)],
        }[step.type]
    )
    if step.source is not None:
        assert before[step.source_current] == step.source
        after[step.source_current] = None
        if step.source_new >= 0:
            assert before[step.source_new] is None
            assert step.source_new > step.source_current
            after[step.source_new] = step.source
    if step.destination is not None:
        assert step.destination not in before or step.destination_current > step.destination_new
        if step.destination_current >= 0:
            assert before[step.destination_current] == step.destination
            after[step.destination_current] = None
        assert after[step.destination_new] is None
        after[step.destination_new] = step.destination
    present = [member for member in after if member is not None]
    assert len(present) == len(set(present))
    return tuple(after)


def rows_of(current: Row, steps: tuple[MigrationStep, ...] | list[MigrationStep]) -> list[Row]:
    """The row before the first step and after each."""
    return list(itertools.accumulate(steps, after_step, initial=current))


def is_of_a_repaired_table(current: Row, target: Row) -> bool:
    """Whether the partition has an owner, and its target has one and no hole in front of a replica."""
    return bool(current and current[0] and target[0]) and None not in target[: replicas(target)]


def check(current: Row, target: Row) -> Plan:
    """All that holds of every plan."""
    plan = plan_migrations(current, target)
    final = plan.target_after_cycle_fix
    rows = rows_of(current, plan.steps)
    assert rows[-1] == final
    for step, (before, after) in zip(plan.steps, itertools.pairwise(rows), strict=True):
        assert step.unavoidable == loses(before, after, final)
    assert len(why_each_step(current, plan)) == len(plan.steps)
    if is_of_a_repaired_table(current, final):
        check_repaired(current, plan, rows)
    return plan


def check_repaired(current: Row, plan: Plan, rows: list[Row]) -> None:
    """What holds where the table was repaired and the target arranged."""
    final = plan.target_after_cycle_fix
    assert not any(step.unavoidable for step in plan.steps)
    assert all(after[0] is not None for after in rows)
    for step, before in zip(plan.steps, rows, strict=False):
        # A newcomer may fail right after its step: nobody was sent away for it who had an empty place waiting.
        if step.source and step.destination and step.source_new < 0 and step.source in final:
            assert before[final.index(step.source)] is not None
    by_document = by_the_document(current, final)
    rows_by_document = rows_of(current, by_document)
    if not any(loses(*pair, final) for pair in itertools.pairwise(rows_by_document)):
        assert len(plan.steps) <= len(by_document)
    for one, other in itertools.pairwise(plan.steps):
        # 3.2.3: what fills a place goes before a non-conflicting step that does not, or fills a colder one.
        if other.type in ("COPY", "SHIFT UP") and other.source is None:
            apart = not {one.source, one.destination} & {other.destination}
            assert not (apart and one.type == "MOVE")
            assert not (apart and one.type == "SHIFT DOWN" and one.source_new > other.destination_new)


def check_hottest_first(current: Row, plan: Plan) -> None:
    """No other legal order of the same steps that loses as little has the hottest places filled earlier."""
    filled = [[member is not None for member in after] for after in rows_of(current, plan.steps)]
    for order in itertools.permutations(plan.steps):
        try:
            rows = rows_of(current, order)
        except AssertionError:
            continue
        losses = sum(loses(*pair, plan.target_after_cycle_fix) for pair in itertools.pairwise(rows))
        given_up = sum(replicas(after) < replicas(before) for before, after in itertools.pairwise(rows))
        if losses == sum(step.unavoidable for step in plan.steps) and given_up == sum(
            sum(before) > sum(after) for before, after in itertools.pairwise(filled)
        ):
            assert [[member is not None for member in after] for after in rows] <= filled


# Every row of 3 and 4 replicas


def every_row(length: int, members: str) -> list[Row]:
    return [
        places
        for places in itertools.product((None, *members), repeat=length)
        if replicas(places) == len(set(places) - {None})
    ]


def pattern(current: Row, target: Row) -> tuple[Row, Row]:
    """The same rows with the members named in order of their first occurrence."""
    names: dict[str | None, str | None] = {None: None}
    renamed = [names.setdefault(member, "ABCDEFGHIJKLMN"[len(names) - 1]) for member in (*current, *target)]
    return tuple(renamed[: len(current)]), tuple(renamed[len(current) :])


def patterns_of(length: int, members: str, *, repaired: bool) -> dict[tuple[Row, Row], int]:
    """Every pattern of two rows, and how many pairs of rows have it."""
    counted: dict[tuple[Row, Row], int] = {}
    rows = every_row(length, members)
    for current in rows:
        if pattern(current, ())[0] != current:
            continue  # Of rows that differ by names alone one is enough.
        alike = sum(pattern(other, ())[0] == current for other in rows)
        for target in rows:
            if not repaired or is_of_a_repaired_table(current, target):
                key = pattern(current, target)
                counted[key] = counted.get(key, 0) + alike
    return counted


@pytest.mark.parametrize(
    ("length", "members", "rows", "patterns", "lost_by_the_document"),
    [(3, "ABCDEF", 29_016, 94, 120), (4, "ABCDE", 74_825, 558, 1_920)],
)
def test_every_row_of_a_repaired_table(
    length: int, members: str, rows: int, patterns: int, lost_by_the_document: int
) -> None:
    counted = patterns_of(length, members, repaired=True)
    assert sum(counted.values()) == rows
    fixed = set()
    lost = 0
    for (current, target), count in counted.items():
        plan = check(current, target)
        check_hottest_first(current, plan)
        final = plan.target_after_cycle_fix
        fixed.add(pattern(current, final))
        taken_in_turn = rows_of(current, by_the_document(current, final, prioritised=False))
        lost += count * any(loses(*pair, final) for pair in itertools.pairwise(taken_in_turn))
    assert len(fixed) == patterns
    assert lost == lost_by_the_document


@pytest.mark.parametrize(("length", "members"), [(3, "ABCDEF"), (4, "ABCDE")])
def test_a_step_is_unavoidable_only_where_an_exhaustive_search_finds_no_way(length: int, members: str) -> None:
    marked = 0
    for current, target in patterns_of(length, members, repaired=False):
        plan = check(current, target)
        if any(step.unavoidable for step in plan.steps):
            marked += 1
            assert not can_be_kept(current, plan.target_after_cycle_fix)
    assert marked


def can_be_kept(current: Row, target: Row) -> bool:
    """Whether any legal steps at all lead to the target without losing a replica that both rows count on."""
    members = sorted({member for member in (*current, *target) if member is not None})
    seen = {current}
    ahead = [current]
    while ahead:
        before = ahead.pop()
        for after in next_rows(before, members):
            if after not in seen and not loses(before, after, target):
                if after == target:
                    return True
                seen.add(after)
                ahead.append(after)
    return False


def next_rows(before: Row, members: list[str]) -> Iterator[Row]:
    """What any step of the five kinds makes of a row, written down here once more by itself."""
    for index, present in enumerate(before):
        without = [None if place == index else member for place, member in enumerate(before)]
        if present is not None:
            yield tuple(without)
        for member in members:
            if member in before[: index + 1]:
                continue
            come = [None if other == member else other for other in without]
            come[index] = member
            yield tuple(come)
            for hole in range(index + 1, len(before)):
                if present is not None and before[hole] is None:
                    yield tuple(present if place == hole else other for place, other in enumerate(come))


# More replicas


@st.composite
def pairs_of_rows(draw: st.DrawFn, *, repaired: bool) -> tuple[Row, Row]:
    length = draw(st.integers(5, 7))
    members = "ABCDEFGHIJKLMN"[: length + draw(st.integers(0, length))]
    rows = [draw(st.permutations(members))[:length] for _ in range(2)]
    holes = [draw(st.sets(st.integers(0, length - 1))) for _ in range(2)]
    if repaired:
        holes = [holes[0] - {0}, set(range(draw(st.integers(1, length)), length))]
    current, target = (
        tuple(None if place in empty else member for place, member in enumerate(members))
        for members, empty in zip(rows, holes, strict=True)
    )
    return current, target


@settings(max_examples=examples(400))
@given(pairs_of_rows(repaired=True))
def test_rows_of_a_repaired_table_with_5_to_7_replicas(rows: tuple[Row, Row]) -> None:
    check(*rows)


@settings(max_examples=examples(60))
@given(pairs_of_rows(repaired=False))
def test_any_rows_with_5_to_7_replicas(rows: tuple[Row, Row]) -> None:
    check(*rows)


@settings(deadline=None)
@given(pairs_of_rows(repaired=True), st.permutations([f"10.0.0.{number}:5701" for number in range(14)]))
def test_names_do_not_matter(rows: tuple[Row, Row], names: list[str]) -> None:
    name_of: dict[str | None, str | None] = {None: None, **dict(zip("ABCDEFGHIJKLMN", names, strict=True))}
    plan, renamed = (
        plan_migrations(*rows),
        plan_migrations(*(tuple(name_of[member] for member in given) for given in rows)),
    )
    assert [(step.type, name_of[step.source], name_of[step.destination]) for step in plan.steps] == [
        (step.type, step.source, step.destination) for step in renamed.steps
    ]


# The document's algorithm, to compare with


def by_the_document(current: Row, target: Row, *, prioritised: bool = True) -> list[MigrationStep]:
    """Avoid Data Loss on Migration's rules in turn over a row without cycles and a target without holes (3.2.2), and then their
    prioritisation."""
    steps: list[MigrationStep] = []
    state = current
    index = 0
    while index < len(state):
        step = _step_by_the_document(state, target, index)
        if step is None:
            index += 1
        else:
            steps.append(step)
            state = after_step(state, step)
    assert state == target
    return _prioritised(steps) if prioritised else steps


def _step_by_the_document(state: Row, target: Row, index: int) -> MigrationStep | None:
    """What the rules do next for `index`, or None when it is done with."""
    present, final = state[index], target[index]
    if present == final:
        return None
    if final is None:
        return MigrationStep("CLEAR", present, index, -1, None, -1, -1)
    if present is None:
        came_from = _index(state, final)
        return MigrationStep("COPY" if came_from < 0 else "SHIFT UP", None, -1, -1, final, came_from, index)
    if final in state:
        return _at_a_colder_index(state, target, index)
    goes = _index(target, present)
    if goes >= 0 and state[goes] is None:
        return MigrationStep("SHIFT DOWN", present, index, goes, final, -1, index)
    return MigrationStep("MOVE", present, index, -1, final, -1, index)


def _at_a_colder_index(state: Row, target: Row, index: int) -> MigrationStep:
    """The last rule: look for a SHIFT UP or a MOVE at a colder index that makes way."""
    while True:
        final, present = target[index], state[index]
        colder = _index(state, final)
        wanted_there = target[colder]
        if wanted_there is None:
            goes = _index(target, present)
            goes = goes if goes >= 0 and state[goes] is None else -1
            return MigrationStep("SHIFT UP", present, index if present else -1, goes, final, colder, index)
        if wanted_there not in state:
            return MigrationStep("MOVE", state[colder], colder, -1, wanted_there, -1, colder)
        index = colder


def _prioritised(steps: list[MigrationStep]) -> list[MigrationStep]:
    """COPY, and SHIFT UP into a hole, go forward until they meet their like, their participant, or a hotter SHIFT DOWN."""
    ordered: list[MigrationStep] = []
    for step in steps:
        place = len(ordered)
        if step.source is None:
            while place and not (
                ordered[place - 1].source is None
                or step.destination in (ordered[place - 1].source, ordered[place - 1].destination)
                or 0 <= ordered[place - 1].source_new < step.destination_new
            ):
                place -= 1
        ordered.insert(place, step)
    return ordered


def _index(of: Row, member: str | None) -> int:
    return of.index(member) if member is not None and member in of else -1
