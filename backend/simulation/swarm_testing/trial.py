"""One swarm run and its verdict: first faults, then none, and the members must become one cluster. Invariants are always checked.

In the second phase all faults are healed: links are plain, messages quick, frozen members resumed. What operators changed is
set back: the cluster's state and the join lists. Members that are down stay down, as long as enough run to serve data.

A run that has proven nothing goes on: data is written, a member that holds some of it goes, and whatever was acknowledged must
still be there. As many members may go at once as there are backups; one does here.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Literal, Protocol

from msgspec import Struct

from quarterdeck.backend.core import commands as do
from quarterdeck.backend.core.data.map_service import entries_of, held_partitions
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.invariants import Violation
from quarterdeck.backend.invariants.convergence import convergence_bound_us, table_bound_us
from quarterdeck.backend.invariants.data.linearizability import JudgedWrites
from quarterdeck.backend.invariants.partition_tables import PartitionTables
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import follows_text
from quarterdeck.backend.scenarios.data_expectations import why_not_balanced
from quarterdeck.backend.scenarios.expectations import list_labels, running, suspect_labels
from quarterdeck.backend.scenarios.format.scenario import Scenario, ScenarioStep
from quarterdeck.backend.scenarios.interpreter import Interpreter, read_everything
from quarterdeck.backend.scenarios.run_state import RecordSink, RunState
from quarterdeck.backend.simulation.simulated_driver import SimulatedDriver
from quarterdeck.backend.simulation.swarm_testing.drawing import FEWEST, MOST, draw_scenario
from quarterdeck.backend.simulation.swarm_testing.fault_timeline import StepTree
from quarterdeck.backend.simulation.virtual_time.world import PLAIN_LATENCY, World

Verdict = Literal["ok", "violation", "no-convergence", "crash", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("ok", "violation", "no-convergence", "crash", "unknown")
FAILURES: tuple[Verdict, ...] = ("violation", "no-convergence", "crash")

LIVELOCK = "no livelock"
REPLICAS_IN_PLACE = "replicas in place"
MOST_EVENTS_A_SECOND = 200
"""Events in a virtual second for each pair of members: all-to-all heartbeats need two to four."""
MOST_EVENTS_A_PARTITION = 100
"""Besides, for each partition: all of them may move within a second, with every replica."""


MOST_SETBACKS = 2
"""How often the members may fall apart again, as when an order that an operator gave before arrives late."""


class Trial(Struct, frozen=True):
    """How a run ended. `invariant` names what was violated; `text` says what went wrong, and is empty when nothing did.

    `converged_seconds` is how long the members took to become one cluster; `bound_seconds` how long they might. `writes` says
    how much was judged, and `added` are the steps that the run took beyond its scenario, as a scenario file has them.
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
    writes: JudgedWrites
    added: tuple[dict[str, Any], ...] = ()


def run_seed(seed: int, sizes: tuple[int, int] = (FEWEST, MOST)) -> Trial:
    """Draw the run of `seed` and try it."""
    return run_trial(draw_scenario(seed, sizes).scenario, seed)


def run_trial(
    scenario: Scenario,
    seed: int,
    journal: RecordSink | None = None,
    *,
    run: str | None = None,
    elide_heartbeats: bool = True,
    run_state: RunState | None = None,
    bystander: Bystander | None = None,
) -> Trial:
    """Run `scenario` under `seed` through both phases. Its expectations are left out: the trial judges by itself.

    `journal` is given every record, under the name `run`. With `elide_heartbeats` those that say nothing new are left out,
    so that `events` says nothing about how many messages there would be. `run_state`, when it is given, follows the run, and
    `bystander` looks at it at moments of its own.
    """
    run_state = run_state or RunState(journal)
    driver = TrialDriver(scenario, seed, run_state, run, elide_heartbeats=elide_heartbeats)
    if bystander is not None:
        driver.bystander = bystander
        bystander.begin(driver.world)
    driver.partitions = scenario.timing().partition_count
    trial_run = _TrialRun(scenario, driver, run_state, seed)
    try:
        trial_run.run()
    except Livelock as endless:
        trial_run.fail("violation", LIVELOCK, str(endless))
    except Exception:  # noqa: BLE001 - whatever the core raises is what a trial is to find
        trial_run.fail("crash", "", traceback.format_exc())
    return trial_run.trial(seed)


class Livelock(Exception):
    """Members keep one another busy for good."""


class Bystander(Protocol):
    """Looks at a run while it goes on, and changes nothing."""

    next_us: int
    """When it wants to look next; a look puts it off."""

    def begin(self, world: World) -> None: ...

    def look(self) -> None: ...


class TrialDriver(SimulatedDriver):
    """A simulated stage that gives up when far more happens than can be right."""

    partitions = 0
    bystander: Bystander | None = None
    _second_ends_us = 0
    _events_before = 0

    def advance(self, by_us: int) -> None:
        """Let so much time pass. Raises `Livelock`."""
        world = self.world
        until_us = world.now_us + by_us
        most = MOST_EVENTS_A_SECOND * (len(world.labels) ** 2 + 50) + MOST_EVENTS_A_PARTITION * self.partitions
        while True:
            if world.now_us >= self._second_ends_us:
                self._second_ends_us, self._events_before = world.now_us + SECOND_US, world.events
            stop_us = min(until_us, self._second_ends_us)
            if self.bystander is not None:
                while self.bystander.next_us <= world.now_us:
                    self.bystander.look()
                stop_us = min(stop_us, self.bystander.next_us)
            world.run_until(stop_us, self._events_before + most)
            if (count := world.events - self._events_before) > most:
                raise Livelock(f"{count} events within a second, at {world.now_us / SECOND_US:.1f} s")
            if world.now_us >= until_us:
                return


class _TrialRun:
    """The run of one trial, and what is known of its outcome."""

    def __init__(self, scenario: Scenario, driver: TrialDriver, run_state: RunState, seed: int) -> None:
        self._seed = seed
        self._scenario = scenario
        self._driver = driver
        self._run_state = run_state
        self._settings = scenario.timing()
        self._bound_us = convergence_bound_us(self._settings, len(scenario.members))
        self._converged_us: int | None = None
        self._verdict: Verdict = "ok"
        self._invariant = ""
        self._text = ""
        self._added: list[dict[str, Any]] = []

    def run(self) -> None:
        """Play the faults, heal them, and wait for convergence until enough is proven.

        Raises:
            Livelock: Members keep one another busy for good.
        """
        steps = tuple(step for step in self._scenario.steps if step.expect is None)
        faults = self._scenario.model_copy(update={"steps": steps})
        Interpreter(faults, self._driver, self._run_state, seed=self._seed).play()
        self._heal_everything()
        uses_data = any(step.do is not None and step.do.name == "load" for step in self._scenario.steps)
        tables, writes = self._run_state.invariant_checker.tables, self._run_state.invariant_checker.writes
        # Its workload is its own: calls that were due while none were made are not made up for.
        proving = Interpreter(self._scenario, self._driver, self._run_state, seed=self._seed)
        for proofs in range(MOST_PROOFS + 1):
            if not running(self._run_state.picture):
                self.fail("unknown", "", "no member is running after the faults")
                return
            if differs := self._wait_for_convergence():
                self.fail("no-convergence", "", differs)
            elif tables.in_use:
                self._check_data()
            if self._verdict != "ok" or self._run_state.invariant_checker.violations or not uses_data:
                return
            if writes.survived():
                return
            holding = {tables.label(uuid) for row in tables.newest.values() for uuid in row.holders if uuid}
            more = proving_steps(self._driver.world, self._scenario, holding, self._seed, proofs)
            if not more or proofs == MOST_PROOFS:
                self.fail("unknown", "", "nothing that was written could have been lost and was looked at again")
                return
            for step in more:
                self._added.append(step)
                proving.take(ScenarioStep.model_validate(step))

    def fail(self, verdict: Verdict, invariant: str, text: str) -> None:
        self._verdict, self._invariant, self._text = verdict, invariant, text

    def trial(self, seed: int) -> Trial:
        """Return the outcome. A violated invariant outweighs everything else but a crash."""
        witnesses: tuple[Record, ...] = ()
        violations: Sequence[Violation] = self._run_state.invariant_checker.violations
        if not violations and self._verdict in ("ok", "unknown") and running(self._run_state.picture):
            # The members agree and have been left alone since: no member may still owe anything.
            timeout_us = self._settings.max_no_heartbeat_us
            violations = self._run_state.invariant_checker.conclude(self._driver.now_us(), timeout_us).violations
        if violations and self._verdict != "crash":
            first = violations[0]
            self.fail("violation", first.invariant, first.text)
            witnesses = first.witnesses
        world = self._driver.world
        return Trial(
            seed=seed,
            verdict=self._verdict,
            invariant=self._invariant,
            text=self._text,
            witnesses=witnesses,
            members=len(self._scenario.members),
            events=world.events,
            messages=world.network.messages,
            virtual_seconds=round(world.now_us / SECOND_US, 3),
            converged_seconds=None if self._converged_us is None else round(self._converged_us / SECOND_US, 3),
            bound_seconds=round(self._bound_us / SECOND_US, 3),
            fingerprint=world.fingerprint(),
            writes=self._run_state.invariant_checker.judged_writes(),
            added=tuple(self._added),
        )

    def _heal_everything(self) -> None:
        world = self._driver.world
        world.execute(do.Heal())
        world.set_latency(PLAIN_LATENCY)
        for label, node in world.nodes.items():
            if node.paused:
                world.execute(do.ResumeMember(label))
            node.kill_point = None
        # Two at least and enough to serve data, one of whom may hold some.
        least = max(2, self._settings.minimum_cluster_size)
        for label in sorted(world.labels, key=world.is_lite):
            alive = running(self._run_state.picture)
            if label not in alive and (len(alive) < least or all(map(world.is_lite, alive))):
                self._added.append({"do": {"start": [label]}})
                world.execute(do.StartMember(label))

    def _check_data(self) -> None:
        run_state, writes = self._run_state, self._run_state.invariant_checker.writes
        alive = running(run_state.picture)
        if all(map(self._driver.world.is_lite, alive)) or len(alive) < self._settings.minimum_cluster_size:
            return
        read_everything(self._driver, run_state, self._settings.call_timeout_us)
        if unread := next(writes.unreadable(), ""):
            self.fail("no-convergence", "", f"after everything was mended, {unread}")
        elif misplaced := misplaced_replica(self._driver.world, run_state.invariant_checker.tables):
            self.fail("violation", REPLICAS_IN_PLACE, misplaced)

    def _why_not_converged(self) -> str:
        """Why this is not one cluster, with its data safe and evenly spread if there is any; empty when it is."""
        tables = self._run_state.invariant_checker.tables
        differs = why_not_converged(self._run_state.picture)
        if differs or not tables.in_use:
            return differs
        if problem := tables.why_not_safe():
            return f"the data is not safe: {problem}"
        return why_not_balanced(tables, leniently=True)

    def _wait_for_convergence(self) -> str:
        """Wait until the members are one cluster, and see that they stay so; what differs when the time is over."""
        driver, run_state, settings = self._driver, self._run_state, self._settings
        began_us = driver.now_us()
        bound_us = convergence_bound_us(settings, len(self._scenario.members))
        if run_state.invariant_checker.tables.in_use:
            bound_us += table_bound_us(settings)
        until_us = began_us + bound_us
        poll_us = max(1, settings.heartbeat_interval_us // 2)
        restore_every_us = settings.state_lease_us + 2 * settings.heartbeat_interval_us
        restore_at_us = began_us
        for _ in range(MOST_SETBACKS + 1):
            while differs := self._why_not_converged():
                if driver.now_us() >= until_us:
                    return differs
                if driver.now_us() >= restore_at_us:
                    self._restore_settings()
                    restore_at_us = driver.now_us() + restore_every_us
                driver.advance(poll_us)
            if self._converged_us is None:
                self._converged_us, self._bound_us = driver.now_us() - began_us, bound_us
            driver.advance(settings.max_no_heartbeat_us + 2 * settings.heartbeat_interval_us)
            differs = self._why_not_converged()
            if not differs:
                return ""
        return f"they were one cluster and fell apart again {MOST_SETBACKS + 1} times: {differs}"

    def _restore_settings(self) -> None:
        """Let every master's cluster be ACTIVE and look everywhere, as far as operators changed that."""
        run_state, world = self._run_state, self._driver.world
        everywhere = {node.address for node in world.nodes.values()}
        for label in run_state.picture.masters():
            belief = run_state.picture.members[label]
            if belief.cluster_state != "ACTIVE":
                self._command(do.ChangeState(label, "ACTIVE"))
            known = {*belief.join_list, belief.address}
            if not everywhere <= known:
                self._command(do.SetJoinList(label, world.labels))

    def _command(self, command: do.Command) -> None:
        """Give an order that may be refused as things stand: it is given again until it is obeyed."""
        with suppress(do.CommandRefused):
            self._driver.execute(command)


def misplaced_replica(world: World, tables: PartitionTables) -> str:
    """Return the first replica that is missing, left over or different from its owner's, in words; empty when none is."""
    held: dict[str, dict[int, dict[tuple[str, str], bytes]]] = {}
    for label in world.labels:
        machine = world.machine(label)
        if machine is not None and machine.uuid in tables.by_incarnation:
            state = machine.inspect()
            held[machine.uuid] = {partition: entries_of(state, partition) for partition in held_partitions(state)}
    for uuid, replicas in held.items():
        rows = tables.by_incarnation[uuid].rows
        for partition, row in rows.items():
            if (uuid in row.holders) != (partition in replicas):
                word = "has data of" if partition in replicas else "has no data of"
                return f"{tables.label(uuid)} {word} partition {partition}, which {tables.names(row.holders)} hold"
            owner = row.holders[0]
            if partition in replicas and owner in held and held[owner].get(partition) != replicas[partition]:
                return f"{tables.label(uuid)} and the owner {tables.label(owner)} differ in partition {partition}"
    return ""


def why_not_converged(picture: Picture) -> str:
    """Why the running members are not one healthy cluster, in words; empty when they are.

    They are when all hold one list of exactly themselves, none is suspected, and all hold the cluster to be ACTIVE.
    """
    alive = running(picture)
    if not alive:
        return "no member is running"
    first_label, first = next(iter(alive.items()))
    for label, belief in alive.items():
        if belief.status != "member":
            return f"{label} belongs to no cluster"
        if (belief.lineage, belief.version) != (first.lineage, first.version) or belief.master != first.master:
            lists = len({(belief.lineage, belief.version) for belief in alive.values()})
            return (
                f"{_standing(picture, first_label)}, but {_standing(picture, label)}; "
                f"{lists} different lists among {len(alive)} members"
            )
    for label, belief in alive.items():
        if set(list_labels(picture, belief)) != set(alive):
            return f"{_standing(picture, label)}, but {', '.join(alive)} are running"
    for label, belief in alive.items():
        if belief.suspicions:
            return f"{label} suspects {', '.join(suspect_labels(picture, belief))}"
        if belief.cluster_state != "ACTIVE":
            return f"{label} believes that the cluster is {belief.cluster_state}"
    return ""


def _standing(picture: Picture, label: str) -> str:
    belief = picture.members[label]
    master = picture.label_of(belief.master) if belief.master else ""
    return f"{follows_text(label, master)} with v{belief.version} {', '.join(list_labels(picture, belief))}"


MOST_PROOFS = 4
"""A run that has proven nothing by then ends as unknown."""

RATE = 20
WRITING = "1s"
SETTLING = "500ms"
"""How long answers may take."""


def proving_steps(world: World, scenario: Scenario, holding: Collection[str], seed: int, number: int) -> list[StepTree]:
    """Return the steps of the next proof, as a scenario file has them; none when no member's going would prove anything.

    `holding`: the members that hold data.
    """
    draws = Random(f"{seed}/proof {number}")
    up = [label for label in world.labels if world.machine(label) is not None]
    down = [label for label in world.labels if label not in up]
    holders = [label for label in up if not world.is_lite(label)]
    settings = scenario.timing()
    least = max(2, settings.minimum_cluster_size)
    changes: list[dict[str, Any]] = []
    if len(holders) > 1 and len(up) > least:
        goes = draws.choice([label for label in holders if label in holding] or holders)
        changes = [{"stop": [goes]}, *([{"kill": [goes]}] * 2 if settings.backups else [])]
    if missing := [label for label in down if not world.is_lite(label)]:
        changes.append({"start": [draws.choice(missing)]})
    if not changes and len(holders) > 1:
        goes = next((label for label in holders if label in holding), holders[0])
        changes = [{"restart": [goes]}] if settings.backups else [{"stop": [goes]}]
    if not changes:
        return []
    # The keys of one map may all miss the few partitions that move: the last proof tries others.
    name = "proof" if number < MOST_PROOFS - 1 else "last-proof"
    load = {"at": up, "map": name, "keys": 30, "rate": RATE, "for": WRITING, "reads": 0}
    actions = ({"load": load}, {"wait": WRITING}, {"wait": SETTLING}, draws.choice(changes))
    return [{"do": action} for action in actions]
