"""Recordings of members of Hazelcast whose data a client counted: the losses that are said must be those that happened."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import msgspec

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.picture.fold.picture import Picture

RECORDINGS = Path(__file__).parent / "recordings"


def moments(name: str) -> Iterator[tuple[str, Judge]]:
    """Yield the time of day and the judge of each second of a recording."""
    records = [
        msgspec.json.decode(line, type=Record)
        for line in gzip.decompress((RECORDINGS / f"{name}.jsonl.gz").read_bytes()).splitlines()
    ]
    picture, place, first = Picture(), 0, records[0]
    for at_us in range(first.at, records[-1].at + SECOND_US, SECOND_US):
        while place < len(records) and records[place].at <= at_us:
            picture.apply(records[place])
            place += 1
        utc = datetime.fromtimestamp((at_us + first.utc - first.at) / SECOND_US, UTC)
        yield utc.strftime("%H:%M:%S"), Judge(picture, now_us=at_us)


@cache
def said(name: str) -> dict[str, list[tuple[str, int, tuple[str, ...], int | None]]]:
    """Return by time of day the losses that stand: state, partitions, maps, entries."""
    return {
        time: [(loss.state, loss.partitions, loss.maps, loss.entries) for loss in judge.losses if loss.stands]
        for time, judge in moments(name)
    }


def test_each_loss_is_said_as_the_client_counted_it() -> None:
    losses = said("second-loss-swallowed")
    first = ("confirmed", 67, ("nobackup",), 489)
    fell = ("feared", 68, ("asyncb", "nobackup", "orders", "two"), 4 * 456)
    second = ("confirmed", 68, ("nobackup",), 527)
    third = ("confirmed", 86, ("asyncb", "nobackup", "orders"), 318 + 475 + 318)
    assert losses["16:59:59"] == []
    assert losses["17:00:01"] == [(*first[:3], None)], "it is said at once, and the number when all have reported"
    assert losses["17:00:30"] == [first]
    assert losses["17:01:30"] == [first], "the cluster is FROZEN: partitions without an owner are not lost"
    assert losses["17:04:30"] == [first, fell], "a member that was started again in FROZEN has begun empty"
    assert losses["17:05:10"] == [(*second[:3], None), first, fell]
    assert losses["17:05:34"] == [second, first, fell]
    assert losses["17:06:10"] == [third, second, first, fell]


def test_no_end_is_taken_back_when_the_next_process_begins() -> None:
    states = {time: [state for state, *_ in losses] for time, losses in said("second-loss-swallowed").items()}
    assert all(found.count("confirmed") == 3 for time, found in states.items() if "17:05:36" <= time < "17:06:53")


def test_a_watcher_that_is_cut_from_one_side_never_says_that_its_data_is_gone() -> None:
    assert not any(
        state == "confirmed" for losses in said("split-console-cut-from-one-side").values() for state, *_ in losses
    )
    newest = next(judge.losses[0] for time, judge in moments("split-console-cut-from-one-side") if time == "16:58:00")
    assert (newest.partitions, newest.doubt) == (102, "not-reached")
    assert newest.held_by == tuple(f"10.77.0.{place}:5701" for place in range(1, 5))


def test_what_the_loser_of_a_merge_had_lost_is_healed() -> None:
    found = said("split-console-cut-from-one-side")
    assert len(found["16:56:40"]) == 3, "each of the three sides misses what the others have"
    assert [(state, partitions) for state, partitions, *_ in found["16:57:30"]] == [("feared", 75)]


def test_members_that_are_killed_in_one_zone_lose_nothing_where_the_other_has_the_backups() -> None:
    assert not any(said("member-lost-age").values())
