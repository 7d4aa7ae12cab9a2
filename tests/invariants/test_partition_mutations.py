"""Each invariant of partitions and data against a core that was broken on purpose: it is noticed. The sound core breaks none."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from quarterdeck.backend.core import member
from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CallMap,
    ChangeState,
    Command,
    CommandRefused,
    DropMessages,
    Heal,
    KillAt,
    KillMember,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.data.map_service import MapService
from quarterdeck.backend.core.data.replication import backups
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.operations import Get, Put
from quarterdeck.backend.core.partitions.arrangement import repartitioning
from quarterdeck.backend.core.partitions.messages import TableAck, TableAnswer, TableUpdate
from quarterdeck.backend.core.partitions.migration import migration, migration_queue, safe_commit
from quarterdeck.backend.core.partitions.migration.migration import PartitionMigration
from quarterdeck.backend.core.partitions.table import learning, partition_table, table_publishing
from quarterdeck.backend.core.partitions.table.partition_table import PackedRows, PartitionTable, Replicas
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US, Settings
from quarterdeck.backend.invariants import InvariantChecker, Violation
from quarterdeck.backend.invariants.invariant_checker import partition_invariants
from quarterdeck.backend.simulation.swarm_testing.trial import misplaced_replica
from quarterdeck.backend.simulation.virtual_time.world import World
from tests.invariants.mutation import SEEDS, Mutation, Patch

TRAINING = Settings.of({"hazelcast.partition.count": 7}, preset="training")
SETTLING_SECONDS = 12.0
CALL_EVERY_US = 100 * MILLISECOND_US
KEYS = 8

Step = tuple[Command, float]
"""What is done, and how many seconds pass after it."""


class Run:
    """A cluster of `n1` to `n5`, which are asked for puts and gets in turn; `late` runs only when it is started by a step."""

    def __init__(self, seed: int) -> None:
        self.invariant_checker = InvariantChecker()
        self.world = World(
            [*(f"n{place}" for place in range(1, 6)), "late"],
            seed=seed,
            settings=TRAINING,
            on_record=self.invariant_checker.observe,
        )
        self._calls = 0

    def play(self, steps: tuple[Step, ...]) -> None:
        """Take the steps, and then leave the members alone until all data should be safe."""
        for label in self.world.labels[:-1]:
            self.world.execute(StartMember(label))
            self.world.run_until(self.world.now_us + SECOND_US)
        for command, seconds in ((ArrangePartitions("n1"), 2), *steps, (Heal(), SETTLING_SECONDS)):
            self.take(command, seconds)
        for number in range(KEYS):
            self._ask("n5", Get("m", f"k{number}"))
        self.world.run_until(self.world.now_us + SECOND_US)

    def take(self, command: Command, seconds: float) -> None:
        self.world.execute(command)
        until_us = self.world.now_us + int(seconds * SECOND_US)
        while self.world.now_us < until_us:
            self._call(until_us)

    def _call(self, until_us: int) -> None:
        self._calls += 1
        key = f"k{self._calls % KEYS}"
        operation = Put("m", key, str(self._calls).encode()) if self._calls // KEYS % 2 else Get("m", key)
        self._ask(f"n{self._calls % 5 + 1}", operation)
        self.world.run_until(min(until_us, self.world.now_us + CALL_EVERY_US))

    def _ask(self, label: str, operation: Put | Get) -> None:
        try:
            self.world.execute(CallMap(label, operation))
        except CommandRefused:
            return  # it is down


def played(steps: tuple[Step, ...], seed: int) -> Run:
    run = Run(seed)
    run.play(steps)
    return run


SCENARIOS: dict[str, tuple[Step, ...]] = {
    "newcomer": ((StartMember("late"), 5),),
    "crash": ((KillMember("n3"), 5), (KillMember("n2"), 5)),
    "leaver": ((StopMember("n3"), 5),),
    "destination dies": ((KillAt("late", "migration-accepted"), 0), (StartMember("late"), 10)),
    "master dies in a commit": ((KillAt("n1", "migration-decided"), 0), (StartMember("late"), 15)),
    "participant behind": (
        (DropMessages(("n1",), ("n2",), ("table-update",)), 0),
        (StartMember("late"), 4),
        (KillMember("late"), 6),
    ),
    "no migrations": (
        (ChangeState("n1", "NO_MIGRATION"), 2),
        (StartMember("late"), 3),
        (ChangeState("n1", "ACTIVE"), 5),
    ),
    "two crashes": ((KillMember("n3"), 0.03), (KillMember("n1"), 10)),
}


# The mutations: each is one rule of the protocol that somebody forgot


def the_table_counts_its_changes(patch: Patch) -> None:
    def put(self: PartitionTable, row: Any) -> None:
        before = self.version
        sound(self, row)
        self.version = before + 1

    sound = PartitionTable.put
    patch.setattr(PartitionTable, "put", put)


def rows_are_published_the_other_way_round(patch: Patch) -> None:
    def packed(rows: Any) -> PackedRows:
        right = sound(rows)
        return msgspec.structs.replace(
            right, rows=tuple((partition, version, *reversed(places)) for partition, version, *places in right.rows)
        )

    sound = partition_table.packed
    patch.setattr(table_publishing, "packed", packed)


def a_destination_makes_the_table_itself(patch: Patch) -> None:
    def learn(state: MemberState, now: int, rows: Any, decided: Any, *, author: str, cause: Any) -> None:
        sound(state, now, rows, decided, author=state.uuid, cause=cause)

    sound = learning.learn
    patch.setattr(safe_commit, "learn", learn)


def a_failure_counts_like_a_success(patch: Patch) -> None:
    patch.setattr(migration, "FAILURE_INCREMENT", 1)


def a_backup_is_counted_twice(patch: Patch) -> None:
    def applied_to(self: PartitionMigration, replicas: Replicas) -> Replicas:
        after = sound(self, replicas)
        return after[1:] + after[1:]

    sound = PartitionMigration.applied_to
    patch.setattr(PartitionMigration, "applied_to", applied_to)


def a_migration_drops_a_backup(patch: Patch) -> None:
    sound = PartitionMigration.applied_to
    patch.setattr(PartitionMigration, "applied_to", lambda self, replicas: (*sound(self, replicas)[:-1], None))


def a_new_master_does_not_listen(patch: Patch) -> None:
    def listen(state: MemberState, now: int, sender: Any, answer: TableAnswer) -> None:
        sound(state, now, sender, TableAnswer(answer.token, PackedRows(), (), ()))

    sound = member.MESSAGE_HANDLERS[TableAnswer]
    patch.setitem(member.MESSAGE_HANDLERS, TableAnswer, listen)


def a_master_commits_by_itself(patch: Patch) -> None:
    def commit_at_once(state: MemberState, now: int, running: Any) -> None:
        safe_commit.decide(state, now, running, True, "", "")

    patch.setattr(migration_queue, "begin_commit", commit_at_once)


def participants_forget_what_they_take_part_in(patch: Patch) -> None:
    def finish(state: MemberState, now: int, decided: Any, **more: Any) -> None:
        state.partitions.active.pop(decided.migration.partition, None)

    patch.setattr(learning, "_finish", finish)


def acknowledgements_are_taken_for_granted(patch: Patch) -> None:
    def on_ack(state: MemberState, now: int, sender: Any, ack: TableAck) -> None:
        if state.partitions.master_role is not None:
            for follower in state.partitions.master_role.followers.values():
                follower.acknowledged = follower.sent
        sound(state, now, sender, ack)

    sound = member.MESSAGE_HANDLERS[TableAck]
    patch.setitem(member.MESSAGE_HANDLERS, TableAck, on_ack)


def owners_answer_before_their_backups_have_it(patch: Patch) -> None:
    patch.setattr(
        backups,
        "answer_when_safe",
        lambda state, now, partition, to, answer: backups.reply(state, now, to, answer),
    )
    patch.setattr(MemberState, "counted_backups", lambda state, row: iter(()))


def a_destination_takes_nothing_over(patch: Patch) -> None:
    def commit(self: MapService, now: int, event: Any) -> None:
        if event.endpoint == "source":
            sound(self, now, event)
        else:
            self._state.data.staged.pop(event.partition, None)

    sound = MapService.commit
    patch.setattr(MapService, "commit", commit)


def tables_may_be_taken_from_the_past(patch: Patch) -> None:
    def update(state: MemberState, now: int, sender: Any, update: TableUpdate) -> None:
        table = state.partitions.table
        if table is not None and sender == state.master:
            for line in update.rows.rows:
                table.versions[line[0]] = 0
                table.version = sum(table.versions)
        sound(state, now, sender, update)

    sound = member.MESSAGE_HANDLERS[TableUpdate]
    patch.setitem(member.MESSAGE_HANDLERS, TableUpdate, update)


def a_state_forbids_no_migrations(patch: Patch) -> None:
    for chapter in (repartitioning, migration_queue):
        patch.setattr(chapter, "allows_migrations", lambda state: True)


MUTATIONS = (
    Mutation("table version", the_table_counts_its_changes, "crash"),
    Mutation("table version", tables_may_be_taken_from_the_past, "participant behind"),
    Mutation("table content", rows_are_published_the_other_way_round, "newcomer"),
    Mutation("table author", a_destination_makes_the_table_itself, "newcomer"),
    Mutation("table steps", a_failure_counts_like_a_success, "destination dies"),
    Mutation("row", a_backup_is_counted_twice, "newcomer"),
    Mutation("replicas", a_migration_drops_a_backup, "newcomer"),
    Mutation("latest table", a_new_master_does_not_listen, "master dies in a commit"),
    Mutation("migrations allowed", a_state_forbids_no_migrations, "no migrations"),
    Mutation("one decision", a_new_master_does_not_listen, "master dies in a commit"),
    Mutation("commit order", a_master_commits_by_itself, "newcomer"),
    Mutation("one at a time", participants_forget_what_they_take_part_in, "crash"),
    Mutation("eviction", acknowledgements_are_taken_for_granted, "participant behind"),
    Mutation("no lost write", owners_answer_before_their_backups_have_it, "crash"),
    Mutation("no lost write", a_destination_takes_nothing_over, "newcomer"),
    Mutation("no lost write", a_destination_takes_nothing_over, "leaver"),
    Mutation("linearizability", owners_answer_before_their_backups_have_it, "crash"),
    Mutation("linearizability", a_destination_takes_nothing_over, "newcomer"),
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_broken_core_is_noticed(mutation: Mutation, monkeypatch: Patch) -> None:
    def violations(scenario: str, seed: int) -> Iterable[Violation]:
        run = Run(seed)
        with suppress(Exception):  # a broken core may also fall over, later
            run.play(SCENARIOS[scenario])
        return run.invariant_checker.violations

    mutation.must_be_noticed(monkeypatch, violations)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_sound_core_passes_the_same_run(scenario: str, seed: int) -> None:
    run = played(SCENARIOS[scenario], seed)
    assert run.invariant_checker.violations == []
    assert run.invariant_checker.tables.why_not_safe() == ""
    assert misplaced_replica(run.world, run.invariant_checker.tables) == ""
    assert run.invariant_checker.writes.why_uncertain() == "" or scenario == "two crashes"


def test_every_invariant_has_a_mutation() -> None:
    invariant_checker = InvariantChecker()
    of_data = invariant_checker.writes, invariant_checker.operations
    mine = {invariant.name for invariant in (*partition_invariants(invariant_checker.tables), *of_data)}
    # The mutant `two-replicas-in-one-zone` breaks groups; these members stand in no zones.
    assert {mutation.breaks for mutation in MUTATIONS} == mine - {"groups"}


def test_data_that_is_left_behind_is_noticed(monkeypatch: Patch) -> None:
    def placed(self: MapService, now: int, partition: int, before: int, index: int) -> None:
        if index != -1:
            sound(self, now, partition, before, index)

    sound = MapService.placed
    monkeypatch.setattr(MapService, "placed", placed)
    monkeypatch.setattr(MapService, "commit", lambda self, now, event: None)
    run = played(SCENARIOS["newcomer"], 1)
    assert "has data of partition" in misplaced_replica(run.world, run.invariant_checker.tables)
