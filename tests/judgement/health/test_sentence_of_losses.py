"""The one sentence never leaves out that data was lost, whatever else is to be said, and however long the names are."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hypothesis import example, given, settings
from hypothesis import strategies as st

from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, ConnectionState, MemberWitnessed
from quarterdeck.backend.judgement.health.cluster_health import LONGEST
from quarterdeck.backend.judgement.judge import Judge
from tests.app.fakes.fake_cluster import FakeCluster, fold

SECOND = 1_000_000


@dataclass(frozen=True)
class State:
    """What is so now, beside a loss of the first member's side."""

    letters: int
    """In the name of each member."""
    sides: tuple[int, ...]
    """How many members each side has; several are a split."""
    lost: tuple[int, ...]
    """How many partitions each side has lost, first one first."""
    ago_s: int
    maps: tuple[str, ...] = ()
    backups: int = 1
    suspected: int = 0
    connections: tuple[ConnectionState, ...] = ()
    """Of members, last one first."""
    divided: bool = False
    """The last member of the first side has another list of the same lineage."""


STATES = st.builds(
    State,
    letters=st.integers(3, 120),
    sides=st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
    lost=st.lists(st.integers(0, 30), min_size=1, max_size=4).map(lambda lost: (lost[0] + 1, *lost[1:])),
    ago_s=st.sampled_from((1, 30, 500, 700, 90_000)),
    maps=st.lists(st.text("orders*", min_size=1, max_size=120), max_size=3).map(tuple),
    backups=st.sampled_from((0, 1, 2, ALL_LOST)),
    suspected=st.integers(0, 5),
    connections=st.lists(st.sampled_from(("gone", "silent", "refused", "merging")), max_size=4).map(tuple),
    divided=st.booleans(),
)


@settings(max_examples=30)
@given(STATES)
@example(State(90, (1,), (1,), 700))
@example(State(60, (2, 2), (3,), 700, ("o" * 100,)))
@example(State(110, (4, 3, 2, 1), (3, 1, 1), 30))
@example(State(110, (4,), (3,), 700, suspected=3, connections=("gone", "silent", "merging")))
def test_a_loss_is_in_the_sentence_of_every_state(state: State) -> None:
    names = [f"{place}-".ljust(state.letters, "m") for place in range(sum(state.sides))]
    cluster = FakeCluster(names, source="hazelcast")
    for name in names:
        cluster.happen(name, MemberWitnessed(("client-protocol",), ("owners", "losses")))
        cluster.happen(name, ConnectionChanged("connected"))
    sides = []
    for place, size in enumerate(state.sides):
        sides.append(names[sum(state.sides[:place]) :][:size])
        for name in sides[-1]:
            cluster.install(name, 7, sides[-1], lineage=f"of {sides[-1][0]}")
    for side, count in zip(sides, state.lost, strict=False):
        for partition in range(count):
            event = PartitionLost(partition, state.backups, True, state.maps)
            cluster.happen(side[0], event, after_us=1_000)
    if state.divided and len(sides[0]) > 1:
        cluster.install(sides[0][-1], 8, sides[0][:1] + sides[0][-1:], lineage=f"of {names[0]}")
    for suspect in names[1 : 1 + state.suspected]:
        cluster.suspect(names[0], suspect)
    for name, connection in zip(names[:0:-1], state.connections, strict=False):
        cluster.happen(name, ConnectionChanged(connection, "said so"))
    picture = fold(cluster)
    health = Judge(picture, now_us=cluster.now_us() + state.ago_s * SECOND).health
    assert health.losses
    assert len(health.sentence) <= LONGEST
    assert re.search(r"lost \d+ partition|DATA LOST · \d+ partition", health.sentence), health.sentence
