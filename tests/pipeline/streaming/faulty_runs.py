"""Runs for the stream: a simulated cluster whose records are spoilt here and there, so that many rules find something."""

from __future__ import annotations

from functools import cache
from random import Random

import msgspec

from quarterdeck.backend.core.commands import ArrangePartitions, CallMap, KillMember, StartMember
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.operations import Get, Put
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.simulation.virtual_time.world import World

LABELS = ("n1", "n2", "n3", "n4")


@cache
def sound_run() -> tuple[Record, ...]:
    """Four members, some data, one killed and back."""
    records: list[Record] = []
    settings = Settings.of({"hazelcast.partition.count": 7}, preset="training")
    world = World(list(LABELS), seed=5, settings=settings, on_record=records.append)
    for label in LABELS:
        world.execute(StartMember(label))
        world.run_until(world.now_us + SECOND_US)
    world.execute(ArrangePartitions("n1"))
    world.run_until(world.now_us + SECOND_US)
    for number in range(60):
        operation = Put("m", f"k{number % 9}", b"%d" % number) if number % 3 else Get("m", f"k{number % 9}")
        world.execute(CallMap("n1", operation))
        world.run_until(world.now_us + SECOND_US // 20)
    world.execute(KillMember("n3"))
    world.run_until(world.now_us + 9 * SECOND_US)
    world.execute(StartMember("n3"))
    world.run_until(world.now_us + 5 * SECOND_US)
    return tuple(records)


def faulty_run(name: str, seed: int) -> list[Record]:
    """The sound run under another name, with one to four records spoilt or gone."""
    draw = Random(seed)
    records = [msgspec.structs.replace(record, run=name) for record in sound_run()]
    for _ in range(draw.randint(1, 4)):
        kind = draw.choice(("gone", "older", "other", "stranger"))
        if kind == "gone":
            del records[draw.randrange(len(records))]
            continue
        lists = [place for place, record in enumerate(records) if isinstance(record.event, ListInstalled)]
        place = draw.choice(lists)
        event = records[place].event
        assert isinstance(event, ListInstalled)
        if kind == "older":
            event = msgspec.structs.replace(event, version=max(1, event.version - 2))
        elif kind == "other":
            event = msgspec.structs.replace(event, members=event.members[::-1])
        else:
            event = msgspec.structs.replace(event, members=event.members[:1])
        records[place] = msgspec.structs.replace(records[place], event=event)
    return records
