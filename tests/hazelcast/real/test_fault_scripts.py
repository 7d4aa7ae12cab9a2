"""Scripts of faults against unmodified members: no statement that is made meanwhile is false by the members' own logs.

Two consoles watch each script, one of them with the members' logs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hazelcast.real.fault_driver import FaultScript, Step, judge_script, restarts
from tests.hazelcast.real.test_real_members import version

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

__all__ = ["version"]

ONE_SIDED = {**{number: [1, 2, 3] for number in (1, 2, 3)}, **{number: [4, 5] for number in (4, 5)}}
"""Neither side finds the other, with or without a cut."""

ENTRIES = 5_000

SCRIPTS = (
    FaultScript("split and heal", 7, (Step("cut", (1, 2, 3), 40), Step("heal", (), 45))),
    FaultScript("kill and restart of the master", 3, (Step("kill", (1,), 20), Step("start", (1,), 30))),
    FaultScript("freeze and thaw of the master", 3, (Step("freeze", (1,), 30), Step("thaw", (1,), 40))),
    FaultScript("a link cut both ways", 4, (Step("cut-link", (3, 4), 40), Step("heal", (), 40))),
    FaultScript("a link cut one way", 4, (Step("cut-one-way", (3, 4), 40), Step("heal", (), 40))),
    FaultScript("rolling restart of seven", 7, (*restarts(2, 3, 4, 5, 6, 7, 1), Step("heal", (), 20))),
    FaultScript("two killed at once", 5, (Step("kill", (4, 5), 40),), entries=ENTRIES),
    FaultScript("two stopped gracefully", 5, (Step("stop", (4, 5), 30),), entries=ENTRIES),
    FaultScript("all stopped and started", 3, (Step("stop", (1, 2, 3), 10), Step("start", (1, 2, 3), 40))),
    FaultScript("one-sided join lists", 5, (Step("heal", (), 40),), apart=(4, 5), join_lists=ONE_SIDED),
    FaultScript(
        "rolling restart under writes", 4, (*restarts(2, 3, 4, 1), Step("heal", (), 20)), entries=ENTRIES,
        is_written=True,
    ),
)  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS, ids=[it.name.replace(" ", "-") for it in SCRIPTS])
def test_no_statement_is_false(version: str, script: FaultScript, tmp_path: Path) -> None:
    wrong = judge_script(script, version, tmp_path)
    assert not wrong, "\n".join(wrong)
