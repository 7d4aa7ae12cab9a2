"""A short run of `tests.bench.chaos`: members that are killed, frozen and cut off lose nothing that they acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.chaos import run
from tests.bench.support.chaos_judgement import TROUBLE
from tests.bench.support.chaos_members import MEMBERS
from tests.ports import take_ports

SECONDS = 25.0
"""Of faults; a phase that has begun is played to its end, and members take some seconds to start."""

SEED = 5
"""Begins with faults that leave the members together: a kill beside a pause, then a pause."""


@pytest.mark.long
def test_nothing_acknowledged_is_lost_and_all_become_one_cluster_again(tmp_path: Path) -> None:
    found = run(tmp_path, SECONDS, seed=SEED, base_port=take_ports(MEMBERS))
    assert not [found[trouble] for trouble in TROUBLE if found[trouble]]
    assert found["writes"]["acknowledged"] > 0
    assert not [outcome for outcome in found["writes"] if outcome.startswith("answered")]
