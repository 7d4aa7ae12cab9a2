"""Two clusters by hand that find each other and merge, and how far they have come."""

from quarterdeck.backend.core.membership.messages import SplitBrainAnswer
from quarterdeck.backend.core.membership.split_brain import cluster_search
from quarterdeck.backend.core.properties import Settings
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SETTINGS, SteppedCluster, training_settings

WITHOUT_PROOF = training_settings(disconnection_heartbeats=0)

MINUTE_US = 60_000_000

SLOW_TO_FREEZE = training_settings(
    state_lease_us=MINUTE_US,
    merge_next_run_delay_us=2 * MINUTE_US,
    max_no_heartbeat_us=MINUTE_US,
    max_no_master_confirmation_us=MINUTE_US,
)
"""A lease longer than a phase of the merge, as in production."""


def two(
    winner: str = "ABCD", loser: str = "EFG", settings: Settings = SETTINGS, version: int | None = None
) -> SteppedCluster:
    """Two clusters; the losing master knows the winning one."""
    world = SteppedCluster(settings)
    for name in winner + loser:
        world.born(name, winner[0] if name == loser[0] else "")
    world.settled(winner)
    world.settled(loser, version=version)
    return world


def begin(world: SteppedCluster, winner: str = "A", loser: str = "E") -> None:
    """The losing master learns of the winner and begins."""
    world.receive(loser, winner, SplitBrainAnswer(cluster_search.profile(state_of(world.machines[winner]))))


def phase(world: SteppedCluster, name: str = "E") -> str | None:
    merge = state_of(world.machines[name]).merge
    return merge.phase if merge else None


def until(world: SteppedCluster, wanted: str, name: str = "E") -> None:
    """Deliver one message at a time until the merge is in the phase `wanted`, whose messages wait then."""
    for _ in range(500):
        if phase(world, name) == wanted:
            return
        assert world.sent, f"nothing waits in phase {phase(world, name)}"
        sender, receiver, message = world.sent.pop(0)
        world.receive(receiver, sender, message)
    raise AssertionError(phase(world, name))


def united(world: SteppedCluster, names: str) -> bool:
    machines = [world.machines[name] for name in names]
    lists = {world.list_of(name) for name, machine in zip(names, machines, strict=True) if machine.joined}
    return all(machine.joined for machine in machines) and len(lists) == 1 and set(lists.pop()[1]) == set(names)


def states(world: SteppedCluster, names: str) -> set[str]:
    return {world.inspect(name).standing.state for name in names}
