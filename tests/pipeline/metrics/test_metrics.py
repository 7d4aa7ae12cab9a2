"""Metrics of golden runs: each equals what the run's own timeline says, in virtual time."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from quarterdeck.backend.core.data.events import CallFinished
from quarterdeck.backend.core.membership.events import (
    JoinRequested,
    ListInstalled,
    MemberMerging,
    MemberRemoved,
    MemberStarted,
    SuspicionRaised,
)
from quarterdeck.backend.core.partitions.events import (
    MigrationCopied,
    MigrationDecided,
    MigrationsPlanned,
    MigrationStarted,
    TableChanged,
)
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.pipeline.metrics.measuring import TABLE_NAMES
from quarterdeck.backend.pipeline.metrics.run_tables import RunTables
from quarterdeck.backend.pipeline.metrics.summary import METRICS, RunSamples, samples_of, scenario_of, summary
from quarterdeck.backend.pipeline.tables.run_events import RunLines
from tests.pipeline.tables.golden_runs import HAND, events, golden_records

pytestmark = pytest.mark.long

Rows = list[dict[str, Any]]
Ask = Callable[..., Rows]


@pytest.fixture(scope="module")
def tables() -> dict[str, RunTables]:
    lines = RunLines()
    for records in golden_records().values():
        for record in records:
            lines.add(msgspec.json.encode(record), "", 0, "")
    return {run: RunTables.of_lines(run, lines) for run in golden_records()}


@pytest.fixture(scope="module")
def samples(tables: dict[str, RunTables]) -> dict[str, RunSamples]:
    return {run: samples_of(of_run) for run, of_run in tables.items()}


@pytest.fixture(scope="module")
def ask(tables: dict[str, RunTables]) -> Ask:
    """Rows of a table of metrics, of one run, with these values."""

    def rows(name: str, run: str, **wanted: object) -> Rows:
        made = METRICS[name].rows(tables[run])
        assert all(list(row) == METRICS[name].schema.names and row["run"] == run for row in made)
        return [row for row in made if all(row[key] == value for key, value in wanted.items())]

    return rows


def noticings(run: str, observer: str, victim_uuid: str) -> list[int]:
    """When `observer` suspected or removed that life."""
    suspected = [
        event.at for event in events(run, SuspicionRaised, member=observer) if event.event.suspect_uuid == victim_uuid
    ]
    removed = [
        event.at for event in events(run, MemberRemoved, member=observer) if event.event.removed_uuid == victim_uuid
    ]
    return sorted(suspected + removed)


def drops(run: str, observer: str, victim_uuid: str, after: int) -> int:
    """When `observer` first held a list without that life, after that moment."""
    lists = [event for event in events(run, ListInstalled, member=observer) if event.at > after]
    return next(
        member_list.at for member_list in lists if all(entry.uuid != victim_uuid for entry in member_list.event.members)
    )


def test_a_frozen_member_is_found_out(ask: Ask) -> None:
    run, froze = "freeze-seed-1", 10 * SECOND_US + 30_000
    rows = ask("detection", run)
    assert sorted((row["fault"], row["victim"], row["observer"], row["from_at"], row["to_at"]) for row in rows) == [
        ("pause", "c", observer, froze, froze + 10 * SECOND_US) for observer in "ab"
    ]
    for row in rows:
        told = [at for at in noticings(run, row["observer"], row["victim_uuid"]) if at >= froze]
        assert row["noticed_at"] == (told[0] if told else None)
        assert row["removed_at"] == drops(run, row["observer"], row["victim_uuid"], froze)
        assert row["removed_us"] == row["removed_at"] - froze
    master = next(row for row in rows if row["master"])
    # The timeout is 4 s and the interval 1 s.
    assert (master["how"], master["least_us"], master["most_us"]) == ("heartbeat", 3 * SECOND_US, 5 * SECOND_US)
    assert master["least_us"] <= master["noticed_us"] <= master["most_us"]
    assert master["detector"] == "deadline"


def test_a_dead_process_is_found_out_by_its_connections(ask: Ask) -> None:
    run = "twice-seed-1"
    rows = ask("detection", run)
    died = [5 * SECOND_US + 30_000, 15 * SECOND_US + 30_000]
    assert sorted((row["from_at"], row["observer"]) for row in rows) == [
        (at, observer) for at in died for observer in "ac"
    ]
    assert len({row["victim_uuid"] for row in rows}) == 2
    for row in rows:
        told = noticings(run, row["observer"], row["victim_uuid"])
        assert row["noticed_at"] == (told[0] if told else None)
        if told:
            assert (row["how"], row["least_us"], row["most_us"]) == ("connection", 300_000, None)
            assert 300_000 <= row["noticed_us"] < 310_000


def test_a_cut_is_found_out_on_both_sides(ask: Ask) -> None:
    run, cut = "halves-seed-1", 5 * SECOND_US + 50_000
    rows = ask("detection", run)
    assert len(rows) == 12
    for row in rows:
        assert (row["victim"] in "abc") != (row["observer"] in "abc")
        told = [at for at in noticings(run, row["observer"], row["victim_uuid"]) if at >= cut]
        assert row["noticed_at"] == (told[0] if told else None)
        assert row["removed_at"] == drops(run, row["observer"], row["victim_uuid"], cut)
        if row["noticed_us"] is not None:
            assert row["least_us"] <= row["noticed_us"] <= row["most_us"]


def test_split_brains(ask: Ask) -> None:
    run, healed = "halves-seed-1", 15 * SECOND_US + 50_000
    (split,) = ask("splits", run)
    leader = {event.uuid: event.event.address for event in events(run, MemberStarted, member="d")}
    first = next(event for event in events(run, ListInstalled, member="d") if event.event.master == leader[event.uuid])
    merging = next(event for event in events(run, MemberMerging, member="d"))
    assert (split["from_at"], split["to_at"]) == (first.at, merging.at)
    assert (split["lasted_us"], split["healed_at"]) == (merging.at - first.at, healed)
    assert split["merge_us"] == merging.at - healed
    assert [(side["master"], side["members"]) for side in split["sides"]] == [("a", ["a", "b", "c"]), ("d", ["d", "e"])]
    assert split["sides"][1]["lineage"] == first.event.lineage
    # Whoever was frozen for long finds out that the others went on without it, and goes on alone until it merges.
    (alone,) = ask("splits", "freeze-seed-1")
    assert [(side["master"], side["members"]) for side in alone["sides"]] == [("a", ["a", "b"]), ("c", ["c"])]
    assert alone["to_at"] == events("freeze-seed-1", MemberMerging)[0].at
    assert not ask("splits", "twice-seed-1") and not ask("splits", "data-seed-1")


def test_one_view(ask: Ask) -> None:
    """Members agree when the last of them installs the list that holds all that run."""
    run, healed = "halves-seed-1", 15 * SECOND_US + 50_000
    (mended,) = ask("one_view", run, at=healed)
    last = max(event.at for event in events(run, ListInstalled))
    assert (mended["what"], mended["agreed_at"], mended["took_us"]) == (["mended"], last, last - healed)
    assert len(ask("one_view", run)) == 6  # five starts besides; a cut is no disturbance, a merge neither

    run = "twice-seed-1"
    for died in (5 * SECOND_US + 30_000, 15 * SECOND_US + 30_000):
        (killed,) = ask("one_view", run, at=died)
        lists = [event for event in events(run, ListInstalled) if event.at > died]
        removal = [member_list for member_list in lists if member_list.event.version == lists[0].event.version]
        assert (killed["what"], killed["agreed_at"]) == (["killed"], max(event.at for event in removal))

    run, froze = "freeze-seed-1", 10 * SECOND_US + 30_000
    (paused,), (resumed,) = ask("one_view", run, at=froze), ask("one_view", run, at=froze + 10 * SECOND_US)
    assert paused["agreed_at"] == max(
        event.at for event in events(run, ListInstalled) if froze < event.at < froze + 10 * SECOND_US
    )
    assert (paused["what"], resumed["what"]) == (["paused"], ["resumed"])
    assert resumed["agreed_at"] == max(event.at for event in events(run, ListInstalled))


def test_availability(ask: Ask) -> None:
    """Against the master's table, folded moment by moment; of the three only c ever dies."""
    run, died = "data-seed-1", 11 * SECOND_US + 20_000
    end = golden_records()[run][-1].at
    uuid_of_c = events(run, MemberStarted, member="c")[0].uuid
    master = events(run, MemberStarted, member="a")[0].uuid
    changes: dict[int, list[tuple[int, list[str]]]] = {}
    for event in events(run, TableChanged, member="a"):
        for partition, _, *places in event.event.rows:
            holders = [event.event.holders[place].uuid if place >= 0 else "" for place in places]
            changes.setdefault(partition, []).append((event.at, holders))
    rows = ask("availability", run)
    assert sorted(row["partition"] for row in rows) == sorted(changes) == [0, 1, 2, 3]
    lost = 0
    for row in rows:
        spans = [*changes[row["partition"]], (end, [])]
        without_owner = fewer = 0
        for (begins, holders), (ends, _) in pairwise(spans):
            for begin, until, alive in ((begins, min(ends, died), True), (max(begins, died), ends, False)):
                if begin < until:
                    there = [holder for holder in holders if holder and (alive or holder != uuid_of_c)]
                    without_owner += (until - begin) * (holders[0] not in there)
                    fewer += (until - begin) * (len(there) < 2)
        assert (row["master"], row["master_uuid"], row["wanted"]) == ("a", master, 2)
        assert row["observed_us"] == end - spans[0][0]
        assert (row["without_owner_us"], row["fewer_replicas_us"]) == (without_owner, fewer)
        assert row["without_owner_times"] == (without_owner > 0)
        assert row["longest_without_owner_us"] == without_owner
        lost += without_owner > 0
    assert lost  # c did own something


def test_migrations_and_plans(ask: Ask) -> None:
    run = "data-seed-1"
    (rates,) = ask("migration_rates", run)
    started = {event.event.migration_id: event.at for event in events(run, MigrationStarted)}
    decided = {event.event.migration_id: event for event in events(run, MigrationDecided)}
    spans = [(at, decided[name].at) for name, at in started.items()]
    moments = sorted({at for span in spans for at in span})
    at_once = [sum(begin <= moment < end for begin, end in spans) for moment in moments]
    busy = sum((after - moment) for (moment, after), many in zip(pairwise(moments), at_once, strict=False) if many)
    assert (rates["committed"], rates["rolled_back"], rates["open"]) == (len(spans), 0, 0)
    assert (rates["most_at_once"], rates["busy_us"]) == (max(at_once), busy)
    assert rates["committed_per_second"] == pytest.approx(len(spans) / (busy / SECOND_US))
    assert rates["bytes"] == sum(event.event.bytes for event in events(run, MigrationCopied))
    planned = [event for event in events(run, MigrationsPlanned) if event.event.planned]
    assert sorted((row["at"], row["moves"], row["lower_bound"], row["over"]) for row in ask("plans", run)) == [
        (record.at, record.event.moves, record.event.lower_bound, record.event.moves - record.event.lower_bound)
        for record in planned
    ]


def test_messages(ask: Ask) -> None:
    run = "halves-seed-1"
    (joins,) = ask("messages", run, kind="join-requests")
    assert (joins["known"], joins["messages"]) == ("recorded", len(events(run, JoinRequested)))
    own = {event.uuid: event.event.address for event in events(run, MemberStarted)}
    (lists,) = ask("messages", run, kind="lists")
    assert lists["messages"] == sum(event.event.author != own[event.uuid] for event in events(run, ListInstalled))
    (beats,) = ask("messages", run, kind="heartbeats")
    held: dict[str, list[tuple[int, int]]] = {}
    for event in events(run, ListInstalled):
        held.setdefault(event.uuid, []).append((event.at, len(event.event.members) - 1))
    ended = {event.uuid: event.at for event in events(run, MemberMerging)}
    end = golden_records()[run][-1].at
    rounds = 0.0
    for uuid, lists_held in held.items():
        for (begins, others), (ends, _) in pairwise([*lists_held, (ended.get(uuid, end), 0)]):
            rounds += others * (ends - begins) / SECOND_US
    assert (beats["known"], beats["messages"]) == ("reckoned", round(rounds))
    assert not ask("messages", HAND, kind="heartbeats")  # nobody told the interval there


def test_percentiles(samples: dict[str, RunSamples]) -> None:
    by_scenario = {(row["by"], row["metric"], row["kind"]): row for row in summary(samples, "scenario")}
    assert {key[0] for key in by_scenario} == {"freeze", "halves", "twice", "data", "refused", "by-hand"}
    writes = by_scenario["data", "write", "put acknowledged"]
    took = sorted(
        event.event.took for event in events("data-seed-1", CallFinished)
        if event.event.operation == "put" and not event.event.problem
    )  # fmt: skip
    assert (writes["count"], writes["missing"], writes["unit"]) == (len(took), 0, "us")
    assert (writes["least"], writes["most"]) == (took[0], took[-1])
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        place = -(-len(took) * round(share * 100) // 100) - 1  # the least that so many are not greater than
        assert writes[name] == took[place], name
    assert writes["mean"] == pytest.approx(sum(took) / len(took))
    assert by_scenario["refused", "writes rejected", ""]["most"] == 1
    noticed = by_scenario["freeze", "noticed", "pause heartbeat"]
    assert (noticed["floor"], noticed["missing"]) == (3 * SECOND_US, 0)
    assert by_scenario["data", "copies over the lower bound", ""]["most"] <= 0


def test_groups_by_settings(samples: dict[str, RunSamples]) -> None:
    groups = {row["by"] for row in summary(samples, "settings")}
    assert "not known" in groups  # told by hand
    with_data = [group for group in groups if "hazelcast.partition.count=4" in group]
    assert sorted("quarterdeck.minimum.cluster.size=2" in settings for settings in with_data) == [False, True]
    assert not any("hazelcast.max.no.heartbeat.seconds" in group for group in groups - {"not known"})


def test_the_names_are_those_of_the_registry() -> None:
    assert tuple(METRICS) == TABLE_NAMES


def test_runs_belong_to_scenarios_by_their_names() -> None:
    named = {
        "20261121T101112Z-split-0a1b": "split",
        "20261121T101112Z-map-seed-7-cafe": "map-seed-7",
        "split-seed-7": "split",
        "split-seed--7": "split",
        "frozen-member-dead": "frozen-member-dead",
        "seed-7": "swarm",
        "seed-8-seed-8": "swarm",
        "variant-3-seed-7": "variant-3",
        "variant-3-seed-7-seed-7": "variant-3",
        "birdseed-7": "birdseed-7",
        "production": "production",
    }
    assert {run: scenario_of(run) for run in named} == named
