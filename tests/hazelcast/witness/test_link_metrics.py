"""What members write to each other, by their metrics: gone, idle and filling connections are seen; clients are no members."""

from __future__ import annotations

from math import inf, nan

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.witnessed.events import LinkMeasured
from quarterdeck.backend.hazelcast.wire.messages import MetricSample, MetricSet
from quarterdeck.backend.hazelcast.witness.member_metrics import IDLE, QUEUED, link_metrics, strained

A, B, C, D = (Address(f"10.0.0.{number}:5701") for number in (1, 2, 3, 4))
D2 = Address("10.0.0.4:5702")


def of_connections(*connections: tuple[str, float, int]) -> MetricSet:
    """Metrics of connections of A: the remote end, milliseconds idle, packets that wait."""
    samples = []
    for remote, idle, queued in connections:
        which = ("pipelineId", f"/10.0.0.1:5701->/{remote}")
        samples += [MetricSample(IDLE, idle, which), MetricSample(QUEUED, queued, which)]
    return MetricSet(0, tuple(samples))


def test_connections_are_of_the_member_at_the_other_end() -> None:
    metrics = of_connections(
        ("10.0.0.2:5701", 9_000, 1), ("10.0.0.2:40001", 900, 2), ("10.0.0.9:50000", 99_000, 99), ("10.0.0.3:40002", 5, 0),
        ("10.0.0.4:5702", 7, 0), ("10.0.0.4:40003", 8, 0),
    )  # fmt: skip
    assert link_metrics(metrics, A, (B, C, D, D2)) == {
        B: LinkMeasured(B, 2, 900_000, 3),
        C: LinkMeasured(C, 1, 5_000, 0),
        D2: LinkMeasured(D2, 1, 7_000, 0),
    }, "the client is no member; of two members at one host only the address says which one it is"


def test_links_are_strained_that_are_gone_idle_or_full() -> None:
    links = link_metrics(of_connections(("10.0.0.2:5701", 9_000, 0), ("10.0.0.3:5701", 5, 20)), A, (B, C, D))
    assert strained((B, C, D), links, (B, C, D)) == (
        LinkMeasured(B, 1, 9_000_000, 0), LinkMeasured(C, 1, 5_000, 20), LinkMeasured(D, 0),
    )  # fmt: skip
    assert D not in [link.address for link in strained((B, C, D), links, (B, C))], "it was removed"
    assert D not in [link.address for link in strained((B, C), links, (B, C, D))], "it may be known by another address"
    assert strained((), link_metrics(of_connections(("10.0.0.2:5701", 5_900, 15)), A, (B,)), (B,)) == ()


@pytest.mark.parametrize("idle_ms", [nan, inf, -1, 1 << 62])
def test_what_is_no_amount_is_passed_over(idle_ms: float) -> None:
    metrics = of_connections(("10.0.0.2:5701", idle_ms, 3))
    assert link_metrics(metrics, A, (B,)) == {B: LinkMeasured(B, 0, None, 3)}
