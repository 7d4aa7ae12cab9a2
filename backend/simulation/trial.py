"""One swarm run and its verdict: faults with the invariants watched, then peace, in which the members must converge.

In the second phase everything is mended: links are plain, messages quick, the frozen thawed. An operator who knows what he
does puts back what operators did before: the cluster's state and the join lists. What is down stays down.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.commands import ChangeState, Command, CommandRefused, Heal, ResumeMember, SetJoinList
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.simulation.convergence import convergence_bound_us, table_bound_us, what_differs
from quarterdeck.backend.simulation.data_swarm import draw_with_data, members_with_data
from quarterdeck.backend.simulation.expectations import running
from quarterdeck.backend.simulation.invariants import Violation
from quarterdeck.backend.simulation.replica_check import what_is_misplaced
from quarterdeck.backend.simulation.run import SECOND_US, Interpreter, Journal, Ledger, SimulatedStage, read_everything
from quarterdeck.backend.simulation.scenario import Scenario
from quarterdeck.backend.simulation.swarm import FEWEST, MOST, Drawing, draw, members_drawn
from quarterdeck.backend.simulation.table_expectations import why_not_balanced
from quarterdeck.backend.simulation.world import PLAIN_LATENCY

Verdict = Literal["ok", "violation", "no-convergence", "crash", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("ok", "violation", "no-convergence", "crash", "unknown")
FAILURES: tuple[Verdict, ...] = ("violation", "no-convergence", "crash")

LIVELOCK = "no livelock"
REPLICAS_IN_PLACE = "replicas in place"
MOST_EVENTS_A_SECOND = 200
"""Events in a virtual second for each pair of members: all-to-all heartbeats need two to four."""


MOST_SETBACKS = 2
"""How often the members may fall apart again, as when an order that an operator gave before arrives late."""


class Trial(Struct, frozen=True):
    """How a run ended. `invariant` names what was violated; `text` says what went wrong, and is empty when nothing did.

    `converged_seconds` is how long the members took to become one cluster; `bound_seconds` how long they might.
    """

    seed: int
    verdict: Verdict
    invariant: str
    text: str
    witnesses: tuple[Record, ...]
    members: int
    events: int
    messages: int
    """Sent by all members, those included that were left out."""
    virtual_seconds: float
    converged_seconds: float | None
    bound_seconds: float
    fingerprint: str


def run_seed(seed: int, sizes: tuple[int, int] = (FEWEST, MOST), *, data: bool = False) -> Trial:
    """Draw the run of `seed`, of a cluster with `data` in use or without, and try it."""
    return try_out(drawing_of(seed, sizes, data=data).scenario, seed)


def drawing_of(seed: int, sizes: tuple[int, int], *, data: bool) -> Drawing:
    """The run of `seed`, of a cluster with `data` in use or without."""
    return draw_with_data(seed, sizes) if data else draw(seed, sizes)


def members_of(seed: int, sizes: tuple[int, int], *, data: bool) -> int:
    """How many members the run of `seed` has, without drawing all of it."""
    return members_with_data(seed, sizes) if data else members_drawn(seed, sizes)


def try_out(
    scenario: Scenario,
    seed: int,
    journal: Journal | None = None,
    *,
    run: str | None = None,
    elide_heartbeats: bool = True,
) -> Trial:
    """Run `scenario` under `seed` through both phases. Its expectations are left out: the trial judges by itself.

    `journal` is given every record, under the name `run`. With `elide_heartbeats` those that say nothing new are left out,
    so that `events` says nothing about how many messages there would be.
    """
    ledger = Ledger(journal)
    stage = TrialStage(scenario, seed, ledger, run, elide_heartbeats=elide_heartbeats)
    judged = _Judged(scenario, stage, ledger, seed)
    try:
        judged.run()
    except Livelock as endless:
        judged.fail("violation", LIVELOCK, str(endless))
    except Exception:  # noqa: BLE001 - whatever the core raises is what a trial is to find
        judged.fail("crash", "", traceback.format_exc())
    return judged.trial(seed)


class Livelock(Exception):
    """Members keep one another busy for good."""


class TrialStage(SimulatedStage):
    """A simulated stage that gives up when far more happens than can be right."""

    _second_ends_us = 0
    _events_before = 0

    def advance(self, by_us: int) -> None:
        """Let so much time pass. Raises `Livelock`."""
        world = self.world
        until_us = world.now_us + by_us
        most = MOST_EVENTS_A_SECOND * (len(world.labels) ** 2 + 50)
        while True:
            if world.now_us >= self._second_ends_us:
                self._second_ends_us, self._events_before = world.now_us + SECOND_US, world.events
            world.run_until(min(until_us, self._second_ends_us), self._events_before + most)
            if (count := world.events - self._events_before) > most:
                raise Livelock(f"{count} events within a second, at {world.now_us / SECOND_US:.1f} s")
            if world.now_us >= until_us:
                return


class _Judged:
    """The run of one trial, and what is known of its outcome."""

    def __init__(self, scenario: Scenario, stage: TrialStage, ledger: Ledger, seed: int) -> None:
        self._seed = seed
        self._scenario = scenario
        self._stage = stage
        self._ledger = ledger
        self._settings = scenario.timing()
        self._bound_us = convergence_bound_us(self._settings, len(scenario.members))
        self._converged_us: int | None = None
        self._verdict: Verdict = "ok"
        self._invariant = ""
        self._text = ""

    def run(self) -> None:
        """Raises `Livelock`, and whatever the core raises."""
        steps = tuple(step for step in self._scenario.steps if step.expect is None)
        if steps:
            faults = self._scenario.model_copy(update={"steps": steps})
            Interpreter(faults, self._stage, self._ledger, seed=self._seed).play()
        else:
            self._stage.start_members()
        self._make_peace()
        if not running(self._ledger.picture):
            self.fail("unknown", "", "no member is running after the faults")
        elif differs := self._wait_for_convergence():
            self.fail("no-convergence", "", differs)
        elif self._ledger.watch.tables.in_use:
            self._check_data()

    def fail(self, verdict: Verdict, invariant: str, text: str) -> None:
        self._verdict, self._invariant, self._text = verdict, invariant, text

    def trial(self, seed: int) -> Trial:
        """The outcome. A violated invariant outweighs everything else but a crash."""
        witnesses: tuple[Record, ...] = ()
        violations: Sequence[Violation] = self._ledger.watch.violations
        if not violations and self._verdict in ("ok", "unknown") and running(self._ledger.picture):
            # The members agree and have been left alone since: nobody may still owe anything.
            patience_us = self._settings.max_no_heartbeat_us
            violations = self._ledger.watch.conclude(self._stage.now_us(), patience_us).violations
        if violations and self._verdict != "crash":
            first = violations[0]
            self.fail("violation", first.invariant, first.text)
            witnesses = first.witnesses
        world = self._stage.world
        return Trial(
            seed=seed,
            verdict=self._verdict,
            invariant=self._invariant,
            text=self._text,
            witnesses=witnesses,
            members=len(self._scenario.members),
            events=world.events,
            messages=world.messages,
            virtual_seconds=round(world.now_us / SECOND_US, 3),
            converged_seconds=None if self._converged_us is None else round(self._converged_us / SECOND_US, 3),
            bound_seconds=round(self._bound_us / SECOND_US, 3),
            fingerprint=world.fingerprint(),
        )

    def _make_peace(self) -> None:
        world = self._stage.world
        world.execute(Heal())
        world.set_latency(PLAIN_LATENCY)
        for label, node in world.nodes.items():
            if node.paused:
                world.execute(ResumeMember(label))

    def _check_data(self) -> None:
        """All is quiet: every key can be read, and every replica is where the table says, and equal to its owner's."""
        ledger, writes = self._ledger, self._ledger.watch.writes
        read_everything(self._stage, ledger, self._settings.call_timeout_us)
        if unread := next(writes.unreadable(), ""):
            self.fail("no-convergence", "", f"after everything was mended, {unread}")
        elif misplaced := what_is_misplaced(self._stage.world, ledger.watch.tables):
            self.fail("violation", REPLICAS_IN_PLACE, misplaced)
        elif doubt := writes.doubt():
            self.fail("unknown", "", f"whether a write was lost cannot be judged: {doubt}")

    def _what_differs(self) -> str:
        """Why this is not one cluster, with its data safe and evenly spread if there is any; empty when it is."""
        tables = self._ledger.watch.tables
        differs = what_differs(self._ledger.picture)
        if differs or not tables.in_use:
            return differs
        if problem := tables.why_not_safe():
            return f"the data is not safe: {problem}"
        return why_not_balanced(tables, leniently=True)

    def _wait_for_convergence(self) -> str:
        """Wait until the members are one cluster, and see that they stay so; what differs when the time is over."""
        stage, ledger, settings = self._stage, self._ledger, self._settings
        began_us = stage.now_us()
        if ledger.watch.tables.in_use:
            self._bound_us += table_bound_us(settings)
        until_us = began_us + self._bound_us
        look_us = max(1, settings.heartbeat_interval_us // 2)
        mend_every_us = settings.state_lease_us + 2 * settings.heartbeat_interval_us
        mend_at_us = began_us
        for _ in range(MOST_SETBACKS + 1):
            while differs := self._what_differs():
                if stage.now_us() >= until_us:
                    return differs
                if stage.now_us() >= mend_at_us:
                    self._mend()
                    mend_at_us = stage.now_us() + mend_every_us
                stage.advance(look_us)
            self._converged_us = stage.now_us() - began_us
            stage.advance(settings.max_no_heartbeat_us + 2 * settings.heartbeat_interval_us)
            differs = self._what_differs()
            if not differs:
                return ""
        return f"they were one cluster and fell apart again {MOST_SETBACKS + 1} times: {differs}"

    def _mend(self) -> None:
        """Let every master's cluster be ACTIVE and look everywhere, as far as operators changed that."""
        ledger, world = self._ledger, self._stage.world
        everywhere = {node.address for node in world.nodes.values()}
        for label in ledger.picture.masters():
            belief = ledger.picture.members[label]
            if belief.cluster_state != "ACTIVE":
                self._order(ChangeState(label, "ACTIVE"))
            known = {*belief.join_list, belief.address}
            if not everywhere <= known:
                self._order(SetJoinList(label, world.labels))

    def _order(self, command: Command) -> None:
        """Give an order that may be refused as things stand: it is given again until it is obeyed."""
        try:
            self._stage.execute(command)
        except CommandRefused:
            return
