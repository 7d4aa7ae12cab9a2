"""What a trial makes of runs in which little is left to be judged."""

from __future__ import annotations

import pytest

from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.simulation.swarm_testing.trial import FAILURES, run_trial

HEAD = "title: T\nsettings: {hazelcast.partition.count: 3}\n"
PUT = "  - do: {put: {at: athens, key: k, value: v}}\n  - do: {wait: 3s}\n"

LITTLE_LEFT = {
    "all began anew after data was used": f"""{HEAD}members: [athens, byzantium]
steps:
{PUT}  - do: {{kill: [athens, byzantium]}}
  - do: {{start: [athens, byzantium]}}
  - do: {{wait: 1s}}
""",
    "only lite members are left": f"""{HEAD}members: [athens, byzantium, cyrene]
lite: [athens, byzantium]
steps:
{PUT}  - do: {{kill: cyrene}}
  - do: {{wait: 20s}}
""",
    "only lite members are left, and begin anew": f"""{HEAD}members: [athens, byzantium, cyrene]
lite: [athens, byzantium]
steps:
{PUT}  - do: {{kill: cyrene}}
  - do: {{restart: [athens, byzantium]}}
  - do: {{wait: 1s}}
""",
    "all was arranged onto a dead member": f"""{HEAD}members: [athens, byzantium]
lite: athens
steps:
  - do: {{kill: byzantium}}
{PUT}""",
}


@pytest.mark.parametrize("what", LITTLE_LEFT)
@pytest.mark.parametrize("seed", range(3))
def test_little_that_is_left_is_no_failure(what: str, seed: int) -> None:
    trial = run_trial(read_scenario(LITTLE_LEFT[what], "t.yaml"), seed)
    assert trial.verdict not in FAILURES, trial.text
    assert trial.converged_seconds is not None


def test_members_that_are_to_be_demoted_may_leave_one_zone_alone() -> None:
    """Chance found this run: the master plans without them already, and no record says so; one zone alone is halved."""
    text = """title: T
members: [a, b, c, d]
settings: {quarterdeck.partition.group.type: zone-aware}
zones: {a: z, b: z}
steps:
  - do: {load: {at: [a], map: m, keys: 30, rate: 2.0, for: 30m, reads: 0.1}}
  - do: {demote: [d]}
  - do: {demote: [c]}
"""
    trial = run_trial(read_scenario(text, "t.yaml"), 3500006)
    assert (trial.verdict, trial.text) == ("ok", "")


def test_a_partition_has_a_replica_less_when_one_of_two_data_members_was_demoted() -> None:
    """Chance found such a run: the other holder died before any moment in which all data was seen to be safe."""
    text = """title: T
members: [a, b, c]
lite: c
settings: {hazelcast.partition.count: 3}
steps:
  - do: {put: {at: a, key: k, value: v}}
  - do: {wait-until-safe: {within: 20s}}
  - do: {demote: [a]}
  - do: {wait: 900ms}
  - do: {cut: {from: a, to: b}}
  - do: {wait: 1500ms}
  - do: {kill: b}
  - do: {wait: 20s}
"""
    trial = run_trial(read_scenario(text, "t.yaml"), 1)
    assert trial.verdict not in FAILURES, trial.text


def test_time_never_goes_back_where_clocks_are_slow() -> None:
    """A slow clock shows one time for several moments: a member that is due at that time is due now, not at the first of them."""
    text = """title: T
members: [a, b, c]
clocks: {b: {rate: 0.5}, c: {rate: 0.3}}
settings: {hazelcast.partition.count: 7, quarterdeck.partition.arrange.at.once: true}
steps:
  - do: {wait: 2s}
  - do: {partition: [[a], [b, c]]}
  - do: {load: {at: [b, c], keys: 50, rate: 100, for: 20s}}
  - do: {wait: 15s}
  - do: heal
  - do: {wait: 20s}
"""
    trial = run_trial(read_scenario(text, "t.yaml"), 1)
    assert (trial.verdict, trial.text) == ("ok", "")
