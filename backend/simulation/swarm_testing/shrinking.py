"""Shrinking: from a scenario that fails, a much smaller one that fails in the same way.

Delta debugging on what a scenario file holds: steps, members, settings, waits, and the lists within actions are left out or
made smaller as long as the run still fails alike. Every attempt is a whole run under the same seed, so the result fails as
surely as what it was made from. Nothing is drawn: equal arguments give equal results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from quarterdeck.backend.invariants.convergence import convergence_bound_us, table_bound_us
from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.format.values import duration_text, parse_duration
from quarterdeck.backend.scenarios.format.writing import scenario_of_tree, scenario_text, scenario_tree
from quarterdeck.backend.simulation.swarm_testing.trial import Trial, run_trial

MOST_ATTEMPTS = 600
"""Runs spent on one scenario, unless said otherwise."""

SHORTEST_WAIT_US = 1_000
ROUND_US = (60_000_000, 10_000_000, 1_000_000, 100_000)

Tree = dict[str, Any]
"""A scenario in plain types."""


def shrink(scenario: Scenario, still_fails: Callable[[Scenario], bool], most_attempts: int = MOST_ATTEMPTS) -> Scenario:
    """Return the smallest scenario found that `still_fails` and from which nothing more can be taken.

    `still_fails` must hold for `scenario` itself, and answer alike for equal scenarios. The search ends after
    `most_attempts` questions with the smallest one so far.
    """
    search = _Shrinking(scenario_tree(scenario), still_fails, most_attempts)
    before: Tree | None = None
    while before != search.best and search.left:
        before = search.best
        for reduce in (_fewer_steps, _fewer_members, _fewer_parts, _smaller_actions, _shorter_waits):
            reduce(search)
    return scenario_of_tree(search.best)


def fails_alike(trial: Trial) -> Callable[[Scenario], bool]:
    """Whether a scenario fails as `trial` did under its seed: with the same verdict, invariant and kind of crash."""
    wanted = failure_signature(trial)

    def still_fails(scenario: Scenario) -> bool:
        return failure_signature(run_trial(scenario, trial.seed)) == wanted

    return still_fails


def failure_signature(trial: Trial) -> tuple[str, str, str]:
    """Return what two failures have in common when they have the same cause, as far as one can see.

    A crash is known by the last place that its traceback names, and by the kind of the exception.
    """
    if trial.verdict != "crash":
        return trial.verdict, trial.invariant, ""
    lines = trial.text.strip().splitlines()
    places = [line.strip() for line in lines if line.lstrip().startswith("File ")]
    return trial.verdict, places[-1] if places else "", lines[-1].partition(":")[0]


def shrunk_text(trial: Trial, scenario: Scenario) -> str:
    """Return the file of a shrunk scenario: how it fails stands above it. `read_scenario` reads it back to an equal one."""
    what = trial.text.strip().splitlines()[-1] if trial.text else ""
    heading = f"# Under seed {trial.seed}: {' '.join(filter(None, (trial.verdict, trial.invariant)))}: {what}"
    text = f"{heading}\n{scenario_text(scenario)}"
    assert read_scenario(text, "shrunk") == scenario, "a scenario that is written must be read back equal"
    return text


def with_ending(scenario: Scenario, added: Sequence[Tree] = ()) -> Scenario:
    """Return the scenario with what a trial does at its end written out, so that it can also be simulated and played live.

    So are the steps that the trial `added`, after each of which something had to go on as it should.
    """
    tree = scenario_tree(scenario)
    steps = [step for step in tree["steps"] if "expect" not in step]
    paused: dict[str, None] = {}
    for step in steps:
        ((word, what),) = step.get("do", {"": None}).items()
        if word == "pause":
            paused |= dict.fromkeys(what)
        elif word in ("resume", "kill", "restart"):
            paused = {label: None for label in paused if label not in what}
    settings = scenario.timing()
    bound_us = convergence_bound_us(settings, len(scenario.members))
    expected: dict[str, Any] = {"one-cluster": True}
    if any("load" in step.get("do", {}) for step in steps):
        bound_us += table_bound_us(settings)
        expected["safe"] = True
    steps.append({"do": {"heal": {}}})
    if paused:
        steps.append({"do": {"resume": list(paused)}})
    ending = {"expect": {"within": duration_text(bound_us), **expected}}
    steps.append(ending)
    for step in added:
        steps.append(step)
        ((word, _),) = step["do"].items()
        if word not in ("load", "wait"):
            steps.append(ending)
    return scenario_of_tree({**tree, "steps": steps})


class _Shrinking:
    """The smallest failing tree so far. Trees that were asked for before are not tried again."""

    def __init__(self, tree: Tree, still_fails: Callable[[Scenario], bool], most_attempts: int) -> None:
        self.best = tree
        self.left = most_attempts
        self._still_fails = still_fails
        self._refuted: set[str] = set()

    def accept(self, tree: Tree) -> bool:
        """Whether `tree` is a scenario that still fails; if so, it is the best from now on."""
        key = repr(tree)
        if not self.left or tree == self.best or key in self._refuted:
            return False
        try:
            scenario = scenario_of_tree(tree)
        except ValidationError:  # what was left out was needed: no scenario any more
            self._refuted.add(key)
            return False
        self.left -= 1
        if self._still_fails(scenario):
            self.best = tree
            return True
        self._refuted.add(key)
        return False

    def accept_with(self, **changed: Any) -> bool:
        return self.accept(
            {name: value for name, value in {**self.best, **changed}.items() if value not in ({}, [], "")}
        )


def _fewer_steps(search: _Shrinking) -> None:
    """Leave out runs of steps, half of them first, then shorter and shorter runs (delta debugging)."""
    _fewer(search, lambda: search.best["steps"], lambda steps: search.accept_with(steps=_joined(steps)))


def _fewer(search: _Shrinking, present: Callable[[], list[Any]], accept: Callable[[list[Any]], bool]) -> None:
    length = max(1, len(present()) // 2)
    while length:
        place = len(present()) - length
        while place > -length and search.left:
            items = present()
            kept = items[: max(0, place)] + items[max(0, place) + length :]
            if kept:
                accept(kept)
            place -= length
        length //= 2


def _fewer_members(search: _Shrinking) -> None:
    """Leave out members wherever they are named; the last ones first, so that mastership stays where it was."""
    for label in reversed(search.best["members"]):
        if len(search.best["members"]) > 1:
            # The tree without `label`; actions that then concern no member are left out.
            less = _without(deepcopy(search.best), label)
            less["steps"] = _joined([step for step in less["steps"] if _has_sense(step)])
            search.accept({name: value for name, value in less.items() if value not in ({}, [])})


def _without(node: Any, label: str) -> Any:
    match node:
        case dict():
            return {key: _without(value, label) for key, value in node.items() if key != label and value != label}
        case list():
            return [_without(part, label) for part in node if part != label]
    return node


def _has_sense(step: Tree) -> bool:
    if "do" not in step:
        return True
    ((word, what),) = step["do"].items()
    if word == "heal":
        return not what or bool(what.get("from") and what.get("to"))
    if word == "partition":
        what["groups"] = [group for group in what["groups"] if group]
        return len(what["groups"]) > 1
    if word in ("put", "get", "remove", "load"):
        return bool(what.get("at"))
    if isinstance(what, dict) and "from" in what:
        return bool(what["from"] and what["to"])
    return bool(what)


def _fewer_parts(search: _Shrinking) -> None:
    """Leave out what has a default: latency, clocks, late members, join lists, and settings, each whole and by parts."""
    search.accept_with(summary="")
    for name in ("latency", "clocks", "late", "join-lists", "zones", "lite", "settings"):
        if name not in search.best or search.accept_with(**{name: {}}):
            continue
        for part in list(search.best[name]):
            now = search.best[name]
            if isinstance(now, list):
                search.accept_with(**{name: [other for other in now if other != part]})
            else:
                search.accept_with(**{name: {key: value for key, value in now.items() if key != part}})


def _smaller_actions(search: _Shrinking) -> None:
    for place in range(len(search.best["steps"])):
        for path in list(_lists_in(search.best["steps"][place].get("do", {}))):
            _shorten_list(search, place, path)


def _lists_in(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _lists_in(value, (*path, key))
    elif isinstance(node, list):
        if all(isinstance(part, str) for part in node):
            yield path
        else:
            for number, value in enumerate(node):
                yield from _lists_in(value, (*path, number))


def _shorten_list(search: _Shrinking, place: int, path: Sequence[str | int]) -> None:
    def present() -> list[Any]:
        found = search.best["steps"][place]["do"]
        for key in path:
            found = found[key]
        return list(found)

    def accept(shorter: list[Any]) -> bool:
        tree = deepcopy(search.best)
        holder = tree["steps"][place]["do"]
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = shorter
        return search.accept(tree)

    if len(present()) > 1:
        _fewer(search, present, accept)


def _shorter_waits(search: _Shrinking) -> None:
    """Let each wait last a round time that is shorter, or half as long."""
    for place in range(len(search.best["steps"])):
        wait = search.best["steps"][place].get("do", {}).get("wait")
        while wait is not None and search.left:
            texts = _shorter(parse_duration(wait))
            wait = next((text for text in texts if search.accept_with(steps=_waiting(search, place, text))), None)


def _waiting(search: _Shrinking, place: int, text: str) -> list[Tree]:
    steps: list[Tree] = deepcopy(search.best["steps"])
    steps[place]["do"]["wait"] = text
    return steps


def _shorter(duration_us: int) -> Iterator[str]:
    if duration_us <= SHORTEST_WAIT_US:
        return
    half_us = duration_us // 2
    if half_us >= SHORTEST_WAIT_US:
        yield duration_text(half_us // SHORTEST_WAIT_US * SHORTEST_WAIT_US)
    for unit_us in ROUND_US:
        if 0 < (rounded_us := duration_us // unit_us * unit_us) < duration_us:
            yield duration_text(rounded_us)
            return


def _joined(steps: list[Tree]) -> list[Tree]:
    joined: list[Tree] = []
    for step in steps:
        before = joined[-1].get("do", {}) if joined else {}
        wait = step.get("do", {}).get("wait")
        if wait is not None and "wait" in before:
            both_us = parse_duration(before["wait"]) + parse_duration(wait)
            joined[-1] = {"do": {"wait": duration_text(both_us)}}
        else:
            joined.append(step)
    return joined
