"""The virtual-time driver: determinism, faults, and the whole protocol under many seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from random import Random

import pytest

from quarterdeck.backend.core.commands import (
    Command,
    CommandRefused,
    CutLink,
    Heal,
    KillMember,
    LoseOnLink,
    Partition,
    PauseMember,
    ResumeMember,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.invariants import InvariantChecker
from quarterdeck.backend.simulation.virtual_time.world import World
from tests.thoroughness import long_after

TRAINING = Settings.of(preset="training")


def formed(size: int, seed: int, invariant_checker: InvariantChecker | None = None) -> World:
    world = World(
        [f"n{place}" for place in range(1, size + 1)],
        seed=seed,
        settings=TRAINING,
        on_record=invariant_checker.observe if invariant_checker else None,
    )
    for label in world.labels:
        world.execute(StartMember(label))
        world.run_until(world.now_us + SECOND_US)
    return world


def labels_believed(world: World, label: str) -> tuple[int, tuple[str, ...]]:
    machine = world.machine(label)
    assert machine is not None
    members = machine.inspect().members
    assert members is not None
    names = {node.address: node.label for node in world.nodes.values()}
    return members.version, tuple(names[address] for address in members.addresses)


def suspected(world: World, label: str) -> set[str]:
    machine = world.machine(label)
    assert machine is not None
    return {node.label for node in world.nodes.values() if node.address in machine.inspect().suspected_addresses}


def random_fault(world: World, draws: Random) -> Command:
    some = draws.sample(world.labels, draws.randint(1, len(world.labels) - 1))
    rest = [label for label in world.labels if label not in some]
    one, other = draws.sample(world.labels, 2)
    return draws.choice(
        [
            Partition((tuple(some), tuple(rest))),
            CutLink((one,), (other,), one_way=draws.random() < 0.5),
            LoseOnLink(tuple(some), tuple(rest), draws.random() / 2),
            KillMember(one),
            StopMember(one),
            StartMember(one),
            PauseMember(one),
            ResumeMember(one),
            Heal(),
        ]
    )


def chaos(seed: int, *, size: int = 6, faults: int = 14) -> tuple[World, InvariantChecker]:
    """A run with a fault every few seconds, drawn from the seed; faults that make no sense just then are skipped."""
    invariant_checker = InvariantChecker()
    draws = Random(f"{seed}/faults")
    world = formed(size, seed, invariant_checker)
    for _ in range(faults):
        try:
            world.execute(random_fault(world, draws))
        except CommandRefused:
            pass
        world.run_until(world.now_us + int(draws.random() * 7 * SECOND_US))
    world.run_until(world.now_us + 20 * SECOND_US)
    return world, invariant_checker


def test_one_seed_is_one_run_in_any_process_and_under_any_hash_seed() -> None:
    program = "from tests.simulation.virtual_time.test_world import chaos; print(chaos(5)[0].fingerprint())"
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "777", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert told == chaos(5)[0].fingerprint()


def test_another_seed_is_another_run() -> None:
    assert formed(3, 1).fingerprint() != formed(3, 2).fingerprint()


def test_a_run_does_not_depend_on_how_it_is_cut_into_steps() -> None:
    whole, stepwise = formed(5, 3), formed(5, 3)
    whole.run_until(60 * SECOND_US)
    while stepwise.now_us < 60 * SECOND_US:
        stepwise.run_until(stepwise.now_us + 1_337)
    stepwise.run_until(60 * SECOND_US)
    whole.run_until(stepwise.now_us)
    assert whole.fingerprint() == stepwise.fingerprint()
    assert whole.events == stepwise.events


@pytest.mark.parametrize("block", long_after(2, range(10)))
def test_many_seeds_break_no_invariant(block: int) -> None:
    for seed in range(block * 25, block * 25 + 25):
        _, invariant_checker = chaos(seed)
        assert not invariant_checker.violations, f"seed {seed}: {invariant_checker.violations[0].text}"


@pytest.mark.parametrize("seed", long_after(10, range(40)))
def test_after_the_faults_all_members_become_one_cluster(seed: int) -> None:
    world, invariant_checker = chaos(seed)
    world.execute(Heal())
    for label in world.labels:
        node = world.nodes[label]
        if node.paused:
            world.execute(ResumeMember(label))
        if node.machine is None:
            world.execute(StartMember(label))
        world.run_until(world.now_us + 2 * SECOND_US)
    world.run_until(world.now_us + 90 * SECOND_US)
    believed = {label: labels_believed(world, label) for label in world.labels}
    assert len(set(believed.values())) == 1, f"seed {seed}: {believed}"
    assert set(believed[world.labels[0]][1]) == set(world.labels)
    assert not any(suspected(world, label) for label in world.labels)
    assert not invariant_checker.violations


def test_two_halves_have_two_masters_within_the_timeout_and_two_intervals() -> None:
    world = formed(5, 1)
    world.execute(Partition((("n1", "n2", "n3"), ("n4", "n5"))))
    world.run_until(world.now_us + TRAINING.max_no_heartbeat_us + 2 * TRAINING.heartbeat_interval_us)
    for label in ("n1", "n2", "n3"):
        assert labels_believed(world, label) == (7, ("n1", "n2", "n3"))
    for label in ("n4", "n5"):
        assert labels_believed(world, label) == (6, ("n4", "n5"))
    world.execute(Heal())
    world.run_until(world.now_us + 30 * SECOND_US)
    version, members = labels_believed(world, "n5")
    assert version > 7
    assert members[:3] == ("n1", "n2", "n3") and set(members) == set(world.labels)
    assert all(labels_believed(world, label) == (version, members) for label in world.labels)


def test_a_frozen_master_is_replaced_and_comes_back_as_the_youngest_when_it_wakes() -> None:
    world = formed(4, 2)
    world.execute(PauseMember("n1"))
    world.run_until(world.now_us + 10 * SECOND_US)
    assert labels_believed(world, "n2")[1] == ("n2", "n3", "n4")
    world.execute(ResumeMember("n1"))
    world.run_until(world.now_us + 30 * SECOND_US)
    assert labels_believed(world, "n1")[1] == ("n2", "n3", "n4", "n1")
    assert labels_believed(world, "n2") == labels_believed(world, "n1")


def test_commands_that_make_no_sense_are_refused_and_change_nothing() -> None:
    world = formed(3, 1)
    before = world.fingerprint()
    for command in (
        StartMember("n1"),
        StartMember("n9"),
        ResumeMember("n1"),
        CutLink(("n1",), ("n7",)),
        Partition((("n1",), ("n1", "n2"))),
    ):
        with pytest.raises(CommandRefused):
            world.execute(command)
    assert world.fingerprint() == before


def test_the_records_of_a_life_are_numbered_without_gaps() -> None:
    records: list[Record] = []
    world = World(["a", "b"], seed=1, settings=TRAINING, on_record=records.append)
    for label in world.labels:
        world.execute(StartMember(label))
    world.run_until(10 * SECOND_US)
    world.execute(KillMember("b"))
    world.run_until(20 * SECOND_US)
    by_uuid: dict[str, list[int]] = {}
    for record in records:
        by_uuid.setdefault(record.uuid, []).append(record.seq)
    assert len(by_uuid) == 3
    assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in by_uuid.values())
    assert any(isinstance(record.event, ListInstalled) for record in records)
