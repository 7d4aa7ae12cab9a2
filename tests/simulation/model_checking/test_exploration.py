"""The search looks at every order of events once, finds planted faults, and says how to come to them."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from functools import cache

import msgspec
import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import KillMember, StartMember, SuspectMember
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import MemberAdmitted
from quarterdeck.backend.core.membership.facts import LinkProven
from quarterdeck.backend.core.membership.handlers import MESSAGE_RULES
from quarterdeck.backend.core.membership.messages import JoinRequest
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Leading
from quarterdeck.backend.core.membership.views import admission
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.partitions.arrangement import repartitioning
from quarterdeck.backend.core.partitions.migration.migration_planner import plan_migrations
from quarterdeck.backend.scenarios.format.scenario import ScheduleDoesNotFit
from quarterdeck.backend.simulation.model_checking import spilling
from quarterdeck.backend.simulation.model_checking.exploration import Exploration, Explorer
from quarterdeck.backend.simulation.model_checking.model import Bounds, Model, State, Transition
from quarterdeck.backend.simulation.model_checking.reading import load_model, shipped_models
from quarterdeck.backend.simulation.model_checking.schedule import ScheduledStep, repeated
from quarterdeck.backend.simulation.model_checking.share import ShareSettings, StateShare
from quarterdeck.backend.simulation.model_checking.share_processes import ShareProcesses
from quarterdeck.backend.simulation.model_checking.transitions import Transitions
from tests.thoroughness import examples, long_after

A_CRASH = Model("crash", "The master may crash.", ("a", "b", "c"), Bounds(crashes=1, ticks=8), calm_every=100)
MOST_STATES = 300_000
ENOUGH_STATES = examples(6_000)


def explored(model: Model, most_states: int = MOST_STATES) -> Exploration:
    return Explorer(model, most_states=most_states).explore()


@cache
def whole_crash() -> Exploration:
    """All that there is to see of `A_CRASH`: several tests compare with it."""
    return explored(A_CRASH)


def test_all_orders_of_a_crash_are_looked_at_and_none_does_harm() -> None:
    looked_through = whole_crash()
    assert looked_through.exhausted and looked_through.found is None
    assert looked_through.progress.states > 1_000
    assert looked_through.converged > 0
    assert {"process-killed", "claim-finished", "member-removed"} <= looked_through.seen.keys()


def test_the_search_is_the_same_in_every_process() -> None:
    program = (
        "from tests.simulation.model_checking.test_exploration import A_CRASH, explored;"
        "print(explored(A_CRASH, 200).progress.transitions)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert int(told) == explored(A_CRASH, 200).progress.transitions


def test_a_bound_is_a_bound() -> None:
    calm = explored(msgspec.structs.replace(A_CRASH, bounds=Bounds(ticks=8)))
    assert calm.exhausted
    assert "process-killed" not in calm.seen
    assert calm.progress.states < whole_crash().progress.states


def test_a_planted_fault_is_found_and_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A removal does not bump the version of the list."""
    sound = MemberList.without
    monkeypatch.setattr(
        MemberList, "without", lambda self, gone: msgspec.structs.replace(sound(self, gone), version=self.version)
    )
    found = explored(A_CRASH).found
    assert found is not None and found.violation.invariant == "version"
    again = repeated(A_CRASH, found.steps).violation
    assert again is not None
    assert (again.invariant, again.text) == (found.violation.invariant, found.violation.text)
    monkeypatch.undo()
    assert repeated(A_CRASH, found.steps).violation is None


def test_a_suspicion_is_ordered_by_label() -> None:
    model = Model("suspect", "", ("a", "b", "c"), Bounds(ticks=2), commands=(SuspectMember("b", "c"),))
    looked_through = explored(model)
    assert looked_through.exhausted and looked_through.seen["suspicion-raised"] > 0


def test_a_schedule_of_another_model_does_not_fit() -> None:
    with pytest.raises(ScheduleDoesNotFit, match="step 1: the model has no member 'z'"):
        repeated(A_CRASH, [ScheduledStep("crash", "z")])
    with pytest.raises(ScheduleDoesNotFit, match="step 2: nothing like Hello is on its way from a to b"):
        repeated(A_CRASH, [ScheduledStep("tick", "a"), ScheduledStep("deliver", "b", "a", "Hello")])


def test_processes_that_are_killed_and_started_are_other_incarnations() -> None:
    model = Model(
        *("restart", "", ("a", "b"), Bounds(ticks=4)),
        commands=(KillMember("b"), StartMember("b")),
    )
    looked_through = explored(model)
    assert looked_through.exhausted
    assert {"process-killed", "member-started", "member-admitted"} <= looked_through.seen.keys()


@pytest.mark.parametrize("name", shipped_models())
def test_some_states_of_every_shipped_model_are_sound(name: str) -> None:
    looked_through = explored(load_model(name), ENOUGH_STATES)
    assert looked_through.found is None
    assert looked_through.histories > 0 and looked_through.converged > 0


@pytest.mark.parametrize("name", long_after(0, shipped_models()))
def test_all_states_of_every_shipped_model_are_sound(name: str) -> None:
    looked_through = Explorer(load_model(name), most_states=2_000_000).explore()
    assert looked_through.found is None
    assert looked_through.exhausted


def test_a_late_request_of_an_earlier_incarnation_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the question whether it lives, an incarnation that is dead takes the place of the one that has joined."""
    model = msgspec.structs.replace(load_model("rejoin"), bounds=Bounds(late=1, ticks=1))
    assert explored(model).found is None

    def believe(state: Membership, leading: Leading, now: int, sender: Address, request: JoinRequest) -> None:
        admission.on_join_request(state, leading, now, sender, request)
        if asked := state.incarnation_checks.get(sender):
            state.report(LinkProven(sender, request.uuid, False, asked.token))

    monkeypatch.setitem(MESSAGE_RULES[JoinRequest], Leading, believe)
    found = explored(model).found
    assert found is not None and found.violation.invariant == "incarnation order"


def test_a_leaver_that_drops_its_copies_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rule that nothing is cleared at a member that is still there, one crash loses what it held."""
    monkeypatch.setattr(repartitioning, "_steps", lambda row, target, leaving: plan_migrations(row, target).steps)
    found = explored(load_model("graceful-stop")).found
    assert found is not None and found.violation.invariant == "no lost write"


def test_what_is_recorded_on_the_way_into_a_known_state_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member lies about an admission each time that it does nothing else: the lie leads to no new state."""
    model = Model("idle", "Nothing happens.", ("a",), Bounds(ticks=1))
    lie = MemberAdmitted(Address("127.0.0.1:5701"), "nobody", 1, 0, 0)
    sound, share = Transitions.after, StateShare(ShareSettings(model), 0)

    def after(self: Transitions, state: State, choice: Transition) -> State:
        sound(self, state, choice)
        if self.on_record is not None:
            self.on_record(Record("idle", "a", "uuid", 1, state.now_us, state.now_us, lie))
        return state

    share.begin()
    share.go_deeper()
    monkeypatch.setattr(Transitions, "after", after)
    share.look(10)
    broken = share.report().broken
    assert broken is not None and broken.violation.invariant == "admission"


@pytest.mark.parametrize("processes", long_after(1, [2, 3]))
def test_so_many_processes_find_the_same_states(processes: int) -> None:
    alone = whole_crash()
    together = Explorer(A_CRASH, most_states=MOST_STATES, processes=processes).explore()
    assert together.exhausted and together.found is None
    told = [(run.progress.states, run.progress.transitions, run.seen) for run in (alone, together)]
    assert told[0] == told[1]
    assert together.converged == alone.converged + processes - 1  # each has a last state


def test_processes_find_what_one_finds() -> None:
    """Two members that never hear of each other found a cluster each."""
    model = Model(
        *("divided", "", (), Bounds(ticks=1), (StartMember("a"), StartMember("b")), ("a", "b")),
        join_lists={"a": ("a",), "b": ("b",)},
        calm_every=1,
    )
    for processes in (1, 2):
        found = Explorer(model, most_states=MOST_STATES, processes=processes).explore().found
        assert found is not None and found.violation.invariant == "convergence"
        again = repeated(model, found.steps).violation
        assert again is not None and again.text == found.violation.text


def test_a_bound_of_steps_ends_every_run() -> None:
    few = explored(msgspec.structs.replace(A_CRASH, bounds=Bounds(crashes=1, ticks=8, steps=3)))
    assert few.exhausted and few.progress.depth <= 3
    assert few.progress.states < whole_crash().progress.states


def test_with_little_memory_the_states_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilling, "SEGMENT", 7)
    monkeypatch.setattr(spilling, "MOST_RUNS", 3)
    enough = whole_crash()
    little = Explorer(A_CRASH, most_states=MOST_STATES, memory_bytes=100_000).explore()
    assert little.exhausted
    assert (little.progress.states, little.progress.transitions) == (
        enough.progress.states,
        enough.progress.transitions,
    )


def test_states_may_be_told_apart_by_their_histories() -> None:
    by_history = Explorer(A_CRASH, most_states=MOST_STATES, by_history=True).explore()
    assert by_history.exhausted and by_history.found is None
    assert by_history.progress.states > whole_crash().progress.states


@pytest.mark.long
def test_a_search_of_which_a_process_has_ended_says_so() -> None:
    shares = ShareProcesses(ShareSettings(A_CRASH, shares=2))
    try:
        ended = multiprocessing.active_children()[0]
        ended.kill()
        ended.join()
        with pytest.raises(RuntimeError, match="a process of the search has ended"):
            shares.ask("begin")
    finally:
        shares.close()
