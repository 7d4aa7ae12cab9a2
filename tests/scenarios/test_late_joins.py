"""Joins while messages are late: up to the heartbeat timeout nobody is thrown out, and nobody founds a cluster of its own.

An admission under way is no silence (Emergent Leader, joining), and a member that may not know yet that it is one need not be
heard of.
"""

import pytest

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import JoinFailed, MemberRemoved
from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.simulation.simulated_driver import simulate
from tests.thoroughness import examples, long_after

HEARTBEAT_TIMEOUT_MS = 4000
SEEDS = examples(10)

EVERYTHING_LATE = """
title: A member joins while everything is late
members: [a, b, c, d, e]
late: e
steps:
  - expect: {within: 20s, one-cluster: true}
  - do: {delay: {from: [a, b, c, d, e], to: [a, b, c, d, e], by: HALFms}}
  - do: {wait: 10s}
  - do: {delay: {from: [a, b, c, d, e], to: [a, b, c, d, e], by: FULLms}}
  - do: {wait: 10s}
  - do: {start: e}
  - expect: {within: 60s, one-cluster: true, versions: {a: 5, e: 5}}
  - do: {wait: 30s}
  - expect: {one-cluster: true, versions: {a: 5, e: 5}}
"""

ONE_FROZEN = """
title: A member joins over slow links while another one stands still
members: [a, b, c, d, e]
late: e
steps:
  - expect: {within: 20s, one-cluster: true}
  - do: {pause: d}
  - do: {delay: {from: [a, b, c, d], to: e, by: FULLms}}
  - do: {start: e}
  - do: {wait: 3s}
  - do: {resume: d}
  - expect: {within: 60s, one-cluster: true, versions: {a: 5, e: 5}}
  - do: {wait: 30s}
  - expect: {one-cluster: true, versions: {a: 5, e: 5}}
"""

DELAYS_MS = long_after(3, (1500, HEARTBEAT_TIMEOUT_MS, 500, 100, 1000, 2000, 2500, 3000, 3500))


def assert_all_stay(scenario: str, delay_ms: int, seed: int) -> None:
    text = scenario.replace("HALF", str(delay_ms // 2)).replace("FULL", str(delay_ms))
    told: list[Record] = []
    outcome = simulate(read_scenario(text, "late.yaml"), seed, told)
    assert [step for step in outcome.expectations if not step.met] == []
    assert not outcome.violations
    assert not [record.event for record in told if isinstance(record.event, MemberRemoved | JoinFailed)]


@pytest.mark.parametrize("delay_ms", DELAYS_MS)
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_nobody_is_removed_while_everything_is_late(seed: int, delay_ms: int) -> None:
    assert_all_stay(EVERYTHING_LATE, delay_ms, seed)


@pytest.mark.parametrize("delay_ms", long_after(1, (1000, 500, 1500, 2000, 3000)))
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_nobody_is_removed_while_one_stands_still(seed: int, delay_ms: int) -> None:
    assert_all_stay(ONE_FROZEN, delay_ms, seed)
