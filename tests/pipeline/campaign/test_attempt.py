"""From a seed to its row: every way in which a run can end, but for those that take its process along (`test_waves`)."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.membership.events import MemberStarted, SuspicionRaised
from quarterdeck.backend.core.properties import BadProperty
from quarterdeck.backend.pipeline.campaign import attempt as attempt_module
from quarterdeck.backend.pipeline.campaign.attempt import DetectionTimes, attempt, crash_signature
from quarterdeck.backend.pipeline.campaign.plan import (
    Campaign,
    PlannedRun,
    VerdictRow,
    digest,
    expected_seconds,
    in_order,
    origin_of,
    scenario_of,
    variants_of,
)
from quarterdeck.backend.simulation.swarm_testing.guided import Origin
from quarterdeck.backend.simulation.swarm_testing.parallel_trials import swarm_run
from quarterdeck.backend.simulation.swarm_testing.trial import run_seed

KILL = """
title: One dies
members: [a, b, c]
settings: {hazelcast.heartbeat.interval.seconds: 1, hazelcast.max.no.heartbeat.seconds: 4}
steps:
  - do: {wait: 5s}
  - do: {pause: c}
  - expect: {within: %s, views: {a: [a, b]}}
"""
SWARM = Campaign(sizes=(3, 4))


def test_a_row_says_what_the_trial_says() -> None:
    trial = run_seed(7, (3, 4))
    row = attempt(SWARM, PlannedRun(0, 7))
    assert (row.verdict, row.fingerprint, row.events, row.messages, row.members) == (
        trial.verdict,
        trial.fingerprint,
        trial.events,
        trial.messages,
        trial.members,
    )
    assert (row.signature, row.error) == ("", "")
    assert row.cpu_seconds > 0


def test_what_a_run_reaches_is_in_its_row_and_changes_nothing_else() -> None:
    plain, counted = attempt(SWARM, PlannedRun(0, 7)), attempt(replace(SWARM, counts_reached=True), PlannedRun(0, 7))
    reached = {each.name: each.times for each in counted.reached}
    assert reached == swarm_run(Origin(7), (3, 4), counts=True).reached
    assert not plain.reached and replace(counted, reached=(), cpu_seconds=0) == replace(plain, cpu_seconds=0)


def test_a_guided_run_is_the_last_of_a_walk_from_its_seed_and_can_be_repeated_alone() -> None:
    guided = Campaign(sizes=(3, 3), guided=True)
    origin = origin_of(guided, PlannedRun(0, 7))
    assert origin.seed == 7 and origin.variations
    row = attempt(guided, PlannedRun(0, 7))
    assert (row.seed, row.fingerprint) == (7, swarm_run(origin, (3, 3)).trial.fingerprint)
    assert origin_of(SWARM, PlannedRun(0, 7)) == Origin(7)


def test_a_scenario_is_judged_by_its_expectations() -> None:
    met, missed = (attempt(Campaign(scenario=KILL % within), PlannedRun(0, 1)) for within in ("20s", "1s"))
    assert (met.verdict, met.signature, met.error) == ("ok", "", "")
    assert missed.verdict == "expectation"
    assert missed.signature == "expectation within 1s: a's list is a, b"
    assert missed.error.startswith("step 3: ")
    assert len(met.detections) == 1 and 3 < met.detections[0] < 6
    assert met.converged_seconds is not None and met.converged_seconds >= met.detections[0]


def test_an_error_is_a_row_that_names_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_campaign: Campaign, _planned_run: PlannedRun) -> VerdictRow:
        raise KeyError("planted")

    monkeypatch.setattr(attempt_module, "_judged", broken)
    row = attempt(SWARM, PlannedRun(0, 1))
    assert row.verdict == "crash"
    assert row.signature.startswith("crash KeyError at tests/pipeline/campaign/test_attempt.py:")
    assert row.signature.endswith(" in broken")
    assert "planted" in row.error


def test_a_signature_is_the_same_wherever_the_package_lies() -> None:
    tree = 'Traceback:\n  File "/home/x/backend/core/member.py", line 3, in tick\n    f()\nValueError: a: b'
    assert crash_signature(tree) == "crash ValueError at backend/core/member.py:3 in tick"
    assert crash_signature(tree.replace("/home/x", "/tmp/y/quarterdeck-1.zip")) == crash_signature(tree)
    assert crash_signature("MemoryError") == "crash MemoryError"


def test_a_run_without_end_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(_campaign: Campaign, _planned_run: PlannedRun) -> VerdictRow:
        while True:
            pass

    monkeypatch.setattr(attempt_module, "_judged", endless)
    row = attempt(Campaign(cpu_seconds=0.2), PlannedRun(0, 1))
    assert (row.verdict, row.signature) == ("timeout", "timeout")
    assert "in endless" in row.error
    assert row.cpu_seconds >= 0.1


def test_settings_that_do_not_go_together_are_no_failure() -> None:
    campaign = Campaign(scenario=KILL % "20s", variants=({}, {"hazelcast.max.no.heartbeat.seconds": 1}))
    row = attempt(campaign, PlannedRun(1, 1))
    assert row.verdict == "unknown"
    assert row.error.startswith("cannot be run: hazelcast.max.no.heartbeat.seconds")


def test_rows_survive_the_way_through_a_pipe() -> None:
    row = attempt(SWARM, PlannedRun(0, 3))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(row), type=VerdictRow) == row


def test_the_digest_is_of_what_happened_only() -> None:
    rows = [attempt(SWARM, PlannedRun(0, seed)) for seed in (1, 2, 3)]
    slower = [msgspec.structs.replace(row, cpu_seconds=9.0, attempt=2) for row in reversed(rows)]
    assert digest(rows) == digest(slower)
    assert digest(rows) != digest([rows[0], rows[1], msgspec.structs.replace(rows[2], verdict="crash")])


# The plan


def test_a_variant_goes_over_what_the_seed_draws() -> None:
    name = "hazelcast.max.no.heartbeat.seconds"
    campaign = Campaign(sizes=(3, 4), variants=({name: 30}, {name: 40}))
    assert [scenario_of(campaign, PlannedRun(place, 5)).settings[name] for place in (0, 1)] == [30, 40]
    plain = scenario_of(SWARM, PlannedRun(0, 5))
    assert scenario_of(campaign, PlannedRun(0, 5)).steps == plain.steps


def test_a_sweep_is_all_combinations() -> None:
    topology, seconds = "quarterdeck.heartbeat.topology", "hazelcast.max.no.heartbeat.seconds"
    assert variants_of({topology: ["all", "ring"], seconds: [4, 8]}) == tuple(
        {topology: shape, seconds: other} for shape in ("all", "ring") for other in (4, 8)
    )
    assert variants_of({}) == ({},)
    with pytest.raises(BadProperty, match="there is no such property"):
        variants_of({"hazelcast.no.such.thing": [1]})


def test_the_order_has_all_errands_once_and_nothing_to_do_with_their_numbers() -> None:
    campaign = Campaign(variants=({}, {}))
    order = in_order(campaign, range(1, 501))
    assert sorted(order) == [PlannedRun(variant, seed) for variant in (0, 1) for seed in range(1, 501)]
    assert order == in_order(campaign, range(1, 501))
    firsts = [planned_run.seed for planned_run in order[:500]]
    assert 200 < sum(firsts) / len(firsts) < 300


def test_larger_clusters_are_expected_to_cost_more() -> None:
    small, large = (expected_seconds(Campaign(sizes=(size, size)), PlannedRun(0, 1)) for size in (3, 20))
    assert large > 5 * small


# Detection


def events(*happened: tuple[int, str, object]) -> DetectionTimes:
    detection = DetectionTimes()
    for number, (at_us, member, event) in enumerate(happened, start=1):
        uuid = f"uuid-{member}"
        detection.append(Record("run", member, uuid, number, at_us, at_us, event))  # type: ignore[arg-type]
    return detection


STARTED = MemberStarted("127.0.0.1:5701", False, ())  # type: ignore[arg-type]


def suspected(label: str) -> SuspicionRaised:
    return SuspicionRaised("127.0.0.1:5701", f"uuid-{label}", "silent")  # type: ignore[arg-type]


def test_the_first_who_notices_counts() -> None:
    detection = events(
        (0, "a", STARTED),
        (0, "b", STARTED),
        (1_000_000, "dev", ProcessKilled("b")),
        (3_500_000, "a", suspected("b")),
        (4_000_000, "c", suspected("b")),
    )
    assert detection.seconds == [2.5]


def test_who_wakes_up_in_time_was_not_missed() -> None:
    detection = events(
        (0, "b", STARTED),
        (1_000_000, "dev", ProcessPaused("b")),
        (2_000_000, "dev", ProcessResumed("b")),
        (9_000_000, "a", suspected("b")),
    )
    assert detection.seconds == []


def test_nothing_done_nothing_settled() -> None:
    assert events((0, "b", STARTED)).settled_seconds is None
