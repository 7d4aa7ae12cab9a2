"""The checker of `tests.bench.chaos` finds what is lost, replaced and resurrected, and does not pass what it has not judged."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled, SuspicionRaised
from quarterdeck.backend.core.membership.views.identity import Member
from tests.bench.support.chaos_judgement import DIVIDING, TOGETHER, TROUBLE, Phase, Problem, judgement
from tests.bench.support.chaos_writers import Register, Writer


def written(*values: str | None, may_be: tuple[str | None, ...] = (), refused: Sequence[str] = ()) -> Register:
    """A key to which these writes were acknowledged, one after the other; None takes it out."""
    register = Register(1, may_be=may_be, refused=set(refused))
    for value in values:
        register.acknowledge(value)
    return register


@pytest.mark.parametrize(
    ("register", "found"),
    [
        (written(), None),
        (written("a"), "a"),
        (written("a", "b"), "b"),
        (written("a", None), None),
        (written("a", may_be=("b",)), "a"),
        (written("a", may_be=("b",)), "b"),
        (written("a", may_be=(None,)), None),
        (written("a", refused=["b"]), "a"),
    ],
)
def test_what_may_be_read(register: Register, found: str | None) -> None:
    assert not register.problem_with(found)


@pytest.mark.parametrize(
    ("register", "found", "problem"),
    [
        (written("a"), None, "gone: None instead of 'a'"),
        (written("a"), "x", "replaced: 'x' instead of 'a'"),
        (written("a", "b"), "a", "resurrected: 'a' instead of 'b'"),
        (written("a", None), "a", "resurrected: 'a' instead of None"),
        (written("a", "b", None), "a", "resurrected: 'a' instead of None"),
        (written("a", refused=["b"]), "b", "refused, but there: 'b' instead of 'a'"),
        (written("a", may_be=("b",)), None, "gone: None instead of 'a'"),
        (written(), "x", "replaced: 'x' instead of None"),
    ],
)
def test_what_may_not_be_read(register: Register, found: str | None, problem: str) -> None:
    assert register.problem_with(found) == problem


def test_what_was_open_is_settled_by_the_first_look() -> None:
    register = written("a", may_be=("b",))
    assert not register.problem_with("b")
    assert register.problem_with("a") == "resurrected: 'a' instead of 'b'"
    register = written("a", may_be=(None,))
    assert not register.problem_with(None)
    assert register.problem_with("a") == "resurrected: 'a' instead of None"


def phases(*kinds: str, divided: int = 0, problem: str = "", rested: bool = False) -> list[Phase]:
    """The first so many of them divided the members without a cause; the first had a problem."""
    made = [Phase(number, kind, 0, keys=10) for number, kind in enumerate(kinds, 1)]
    for phase in made[:divided]:
        phase.divided = "n1"
    if problem:
        made[0].problems = [Problem(f"phase 1 ({made[0].kind}), k: {problem}", rested)]
    return made


def trouble(found: list[Phase]) -> list[str]:
    result = judgement(found, {}, {}, (), 0)
    return [name for name in TROUBLE if result[name]]


def test_a_run_that_lost_nothing_passes() -> None:
    assert trouble(phases(*TOGETHER, *DIVIDING)) == []


@pytest.mark.parametrize(("kind", "lost", "wrong"), [("gone", 1, 0), ("replaced", 0, 1), ("resurrected", 0, 1)])
def test_what_is_lost_or_wrong_where_all_were_together_fails_it(kind: str, lost: int, wrong: int) -> None:
    found = phases("kill", "leave", problem=f"{kind}: 'a' instead of 'b'")
    assert trouble(found) == ["problems"]
    result = judgement(found, {}, {}, (), 0)
    assert (result["lost"], result["wrong"]) == (lost, wrong)


def test_also_when_it_is_found_only_at_the_end() -> None:
    found = phases("kill")
    found[0].problems_later = [Problem("phase 1 (kill), k: gone: None instead of 'a'")]
    assert trouble(found) == ["problems_later"]


def test_what_is_lost_where_they_were_divided_is_counted() -> None:
    found = phases("split", "kill", problem="gone: None instead of 'a'")
    assert trouble(found) == []
    assert judgement(found, {}, {}, (), 0)["divided"]["keys_gone"] == 1


@pytest.mark.parametrize("kind", [*DIVIDING, "long flapping"])
def test_no_division_excuses_the_loss_of_what_rested(kind: str) -> None:
    found = phases(kind, "kill", divided=kind not in DIVIDING, problem="gone: None instead of 'a'", rested=True)
    assert trouble(found) == ["problems"]
    assert judgement(found, {}, {}, (), 0)["lost"] == 1
    found[0].divided_early = True
    assert trouble(found) == []


ADDRESSES = [Address(f"10.0.0.{number}:5701") for number in (1, 2, 3)]


def suspicion(at: int, suspect: int) -> Record:
    return Record("r", "n1", "u", at, at, at, SuspicionRaised(ADDRESSES[suspect], "u", "no heartbeat"))


def installed(at: int, *members: int) -> Record:
    listed = tuple(Member(ADDRESSES[place], "u", 1) for place in members)
    return Record("r", "n1", "u", at, at, at, ListInstalled(at, "l", ADDRESSES[0], listed, ADDRESSES[0], "removal"))


@pytest.mark.parametrize(
    ("records", "is_divided", "early"),
    [
        ([suspicion(11, 1)], False, False),  # and withdrawn
        ([suspicion(11, 1), installed(12, 0, 1, 2)], False, False),
        ([installed(12, 0, 2)], False, False),  # thrown out without a reason, which excuses nothing
        ([suspicion(11, 1), installed(12, 0, 2)], True, False),
        ([suspicion(5, 1), installed(12, 0, 2)], True, False),
        ([suspicion(5, 1), installed(6, 0, 2)], True, True),
        ([suspicion(11, 2), installed(12, 0, 1)], False, False),  # its process has ended
    ],
)
def test_what_divides_the_members(records: list[Record], is_divided: bool, early: bool) -> None:
    phase = Phase(1, "long flapping", 0, fault_us=10, ended_members=(ADDRESSES[2],))
    phase.note_division(records, ADDRESSES)
    assert (bool(phase.divided), phase.divided_early, phase.judged) == (is_divided, early, not is_divided)


def test_only_what_was_clear_before_the_fault_rests() -> None:
    writer = Writer(0, (), 1)
    writer.begin_phase(2)
    writer.keys = {"earlier": Register(1), "clear": Register(2), "open": Register(2, may_be=("a",))}
    writer.rest()
    writer.keys["later"] = Register(2)
    assert [key for key, register in writer.keys.items() if register.rested] == ["clear"]


def test_a_run_in_which_most_was_excused_by_divisions_fails() -> None:
    assert trouble(phases("kill", "leave", "pause", divided=2)) == ["too_little_judged"]
    assert trouble(phases("kill", "leave", "pause", divided=1)) == []
    assert trouble(phases("kill", divided=1, problem="gone: None instead of 'a'")) == ["too_little_judged"]


def test_a_run_that_judged_nothing_fails() -> None:
    assert trouble([]) == ["too_little_judged"]
    assert trouble(phases(*DIVIDING)) == ["too_little_judged"]
    nothing_written = phases("kill", "leave")
    for phase in nothing_written:
        phase.keys = 0
    assert trouble(nothing_written) == ["too_little_judged"]


def test_partitions_lost_where_all_were_together_fail_it() -> None:
    found = phases("kill", "split")
    assert judgement(found, {}, {1: ["p"], 2: ["q"]}, (), 0)["partitions_lost"] == ["p"]
