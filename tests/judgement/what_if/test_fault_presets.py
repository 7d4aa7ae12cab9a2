"""Presets: what each makes of any number of members."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.commands.links import LinkConditions
from quarterdeck.backend.core.commands import CutLink, Partition
from quarterdeck.backend.judgement.what_if.blast_radius import (
    PRESET_NAMES,
    FaultPlan,
    NoSuchFault,
    PresetName,
    custom_fault,
    majority_reach,
    preset,
)

SIX = ("a", "b", "c", "d", "e", "f")


def names(count: int) -> tuple[str, ...]:
    return tuple(f"m{place}" for place in range(count))


def cut_pairs(plan: FaultPlan) -> set[tuple[str, str]]:
    conditions = LinkConditions()
    for command in plan.commands:
        conditions.apply(command)
    return set(conditions.conditions)


def test_each_preset_as_commands() -> None:
    assert preset("halves", SIX[:5]).commands == (Partition((("a", "b", "c"), ("d", "e"))),)
    assert preset("isolate", SIX, member="c").commands == (Partition((("a", "b", "d", "e", "f"), ("c",))),)
    assert preset("isolate", SIX).sides[1] == ("f",)
    assert preset("bridge", SIX, member="a").commands == (Partition((("b", "c", "d"), ("e", "f"))),)
    assert preset("racks", SIX).commands == (Partition((("c", "d"), ("e", "f"))),)
    assert preset("racks", SIX, racks=2).commands == (Partition((("a", "b", "c"), ("d", "e", "f"))),)
    assert preset("ring", SIX[:4]).commands == (CutLink(("a",), ("c",)), CutLink(("b",), ("d",)))
    zones = {"a": "z1", "b": "z2", "c": "z3", "d": "z2", "e": "z3"}
    by_zone = preset("racks", SIX, zones=zones)
    assert by_zone.sides == (("b", "d"), ("c", "e")) and "z1, z2, z3" in by_zone.title
    assert preset("halves", SIX).cutting_by("reset") == preset("halves", SIX, mode="reset")


@given(st.integers(4, 40))
def test_in_a_ring_everybody_sees_just_a_majority_and_no_two_the_same(count: int) -> None:
    labels = names(count)
    cut = cut_pairs(preset("ring", labels))
    seen = [frozenset(other for other in labels if (label, other) not in cut) for label in labels]
    reach = majority_reach(count)
    assert all(len(event) == 2 * reach + 1 for event in seen)
    assert count // 2 < 2 * reach + 1 <= count // 2 + 2
    assert len(set(seen)) == count
    assert all((other, one) in cut for one, other in cut)


@given(st.integers(1, 30), st.sampled_from(PRESET_NAMES), st.integers(0, 9), st.integers(0, 29))
def test_a_preset_cuts_something_or_says_why_not(count: int, name: PresetName, racks: int, which: int) -> None:
    labels = names(count)
    try:
        plan = preset(name, labels, member=labels[which % count], racks=racks)
    except NoSuchFault as problem:
        assert "at least" in str(problem)
        return
    cut = cut_pairs(plan)
    assert cut and all(one in labels and other in labels for one, other in cut)
    named = [label for side in plan.sides for label in side]
    assert len(named) == len(set(named))
    for one, other in combinations(plan.sides, 2):
        assert all((source, target) in cut for source in one for target in other)


def test_bad_wishes_are_told() -> None:
    for wish in (
        lambda: preset("halves", ("a",)),
        lambda: preset("ring", SIX[:3]),
        lambda: preset("bridge", SIX[:2]),
        lambda: preset("isolate", SIX, member="z"),
        lambda: preset("racks", SIX[:2], racks=3),
        lambda: preset("racks", SIX, racks=1),
        lambda: custom_fault([["a"], []]),
    ):
        with pytest.raises(NoSuchFault):
            wish()
    assert custom_fault([["a"], [], ["b", "c"]]).commands == (Partition((("a",), ("b", "c"))),)
