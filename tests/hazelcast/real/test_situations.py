"""Situations of unmodified members in which data is lost, or seems to be: each statement is compared with what a client counts.

Each is a script of faults as in `test_fault_scripts`, with maps of several numbers of backups, with states of the cluster, with
watchers that lose sight of one half, with slow links and with clocks that are set.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hazelcast.real.fault_driver import FaultScript, Step, judge_script
from tests.hazelcast.real.real_cluster import FAKE_TIME
from tests.hazelcast.real.test_real_members import version

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

__all__ = ["version"]

CP_OF_THREE = "<cp-subsystem><cp-member-count>3</cp-member-count></cp-subsystem>"
FOUR = {"nobackup": 2_000, "async": 2_000, "orders": 2_000, "two": 2_000}
ORDERS = {"orders": 5_000}
ZONES = (
    '<partition-group enabled="true" group-type="CUSTOM">'
    "<member-group><interface>10.77.0.1</interface><interface>10.77.0.2</interface></member-group>"
    "<member-group><interface>10.77.0.3</interface><interface>10.77.0.4</interface></member-group></partition-group>"
)

SITUATIONS = (
    FaultScript(
        "three sides that heal one after the other", 7, (
            Step("cut-three", (6, 7, 4, 5), 30), Step("cut", (6, 7), 40), Step("heal", (), 45),
        ), maps=ORDERS,
    ),
    FaultScript(
        "the watchers see one half, then the other", 7, (
            Step("cut", (1, 2, 3, 4), 25), Step("blind", (1, 2, 3, 4), 30), Step("see", (1, 2, 3, 4), 15),
            Step("blind", (5, 6, 7), 30), Step("see", (5, 6, 7), 10), Step("heal", (), 45),
        ), maps=ORDERS,
    ),
    FaultScript("maps with several numbers of backups", 4, (Step("kill", (4,), 40), Step("start", (4,), 40)), maps=FOUR),
    FaultScript("two kills in a row", 4, (Step("kill", (4,), 1), Step("kill", (2,), 60)), maps=FOUR),
    FaultScript("a kill and another one later", 4, (Step("kill", (4,), 40), Step("kill", (2,), 40)), maps=FOUR),
    FaultScript(
        "a restart while the cluster is frozen", 4, (
            Step("state", (1,), 5, "frozen"), Step("kill", (3,), 25), Step("start", (3,), 30),
            Step("state", (1,), 40, "active"),
        ), maps=FOUR,
    ),
    FaultScript(
        "a kill while nothing migrates", 4, (
            Step("state", (1,), 5, "no_migration"), Step("kill", (2,), 20), Step("kill", (4,), 30),
            Step("state", (1,), 40, "active"),
        ), maps=FOUR,
    ),
    FaultScript(
        "a kill while the cluster is passive", 4, (
            Step("state", (1,), 10, "passive"), Step("kill", (2,), 25), Step("state", (1,), 40, "active"),
        ), maps=FOUR,
    ),
    FaultScript(
        "two seconds of latency to one member", 4, (
            Step("latency", (3,), 60, "2000ms"), Step("latency", (3,), 60, "0ms"),
        ), maps=ORDERS,
    ),
    FaultScript(
        "a clock that is set", 4, (Step("clock", (3,), 45, "+90"), Step("clock", (3,), 45, "+0")), maps=ORDERS,
        clocks=(3,),
    ),
    FaultScript("a host that is replaced at another address", 5, (
        Step("kill", (4,), 20), Step("start", (5,), 100),
    ), maps=ORDERS, late=(5,)),
    FaultScript("a zone that is lost", 4, (Step("kill", (3, 4), 40),), maps={"orders": 3_000}, more=ZONES),
    FaultScript("data members that are all lost", 4, (Step("kill", (1, 2, 3), 30),), maps={"orders": 3_000}, lite=(4,)),
    FaultScript(
        "a zone that is lost beside a lite member", 5, (Step("kill", (3, 4), 40), Step("start", (3, 4), 40)),
        maps={"orders": 3_000}, more=ZONES, lite=(5,),
    ),
    FaultScript(
        "twenty members of which three are killed", 20, (
            Step("kill", (18, 19, 20), 40), Step("cut", tuple(range(1, 9)), 40), Step("heal", (), 45),
        ), maps={"orders": 4_000}, heap=dict.fromkeys(range(1, 21), "64m"),
    ),
    FaultScript(
        "a CP majority that is lost", 3, (Step("kill", (2, 3), 30), Step("start", (2, 3), 40)), more=CP_OF_THREE,
        versions=("5.3.8",),
    ),
)  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS, ids=[it.name.replace(" ", "-") for it in SITUATIONS])
def test_no_statement_is_false(version: str, situation: FaultScript, tmp_path: Path) -> None:
    if version not in situation.versions:
        pytest.skip(f"it is tried on {' and '.join(situation.versions)}")
    if situation.clocks and not FAKE_TIME.exists():
        pytest.skip("libfaketime is not installed (Debian: apt-get install libfaketime)")
    wrong = judge_script(situation, version, tmp_path)
    assert not wrong, "\n".join(wrong)
