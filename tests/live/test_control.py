"""What goes over the pipes to a member's process comes out as it went in."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CallMap,
    ChangeState,
    KillAt,
    Operate,
    SearchClusters,
    SetJoinList,
    StopMember,
)
from quarterdeck.backend.core.data.operations import Answer, Put, PutAll, Size
from quarterdeck.backend.core.events import LinkChanged, ListInstalled, Record
from quarterdeck.backend.core.member import Birth
from quarterdeck.backend.core.membership.identity import Member
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.live.clock import RunClock
from quarterdeck.backend.live.control import (
    ORDER,
    REPORT,
    Answered,
    Began,
    Begin,
    Call,
    Do,
    Done,
    Links,
    Order,
    Over,
    Recorded,
    Report,
    Stranger,
    line_of,
)
from quarterdeck.backend.live.transport import Patience

ATHENS = Address("127.0.0.1:5701")
BIRTH = Birth("run", "athens", ATHENS, (ATHENS,), Settings.of(preset="training"), cluster_name="prod")
CUT = LinkChanged("a", "b", blocked="reset", dropped_kinds=("heartbeat",))
LIST = ListInstalled(1, "life/1", ATHENS, (Member(ATHENS, "life", 1),), ATHENS, "a member\njoined")


@pytest.mark.parametrize(
    "order",
    [
        Begin(BIRTH, RunClock.started_now(), {"athens": ATHENS}, (CUT,), "seed", Patience(1, 2)),
        Do(1, StopMember("athens")),
        Do(2, SetJoinList("athens", (ATHENS,))),
        Do(3, ChangeState("athens", "FROZEN")),
        Do(4, SearchClusters("athens")),
        Begin(
            BIRTH, RunClock.started_now(), {}, (), "seed", Patience(), KillAt("athens", "member-started", after=True)
        ),
        Do(5, Operate("athens")),
        Do(6, ArrangePartitions("athens")),
        Do(7, CallMap("athens", PutAll("m", (("k", b"\xff\n"), ("l", b""))))),
        Do(8, KillAt("athens", "migration-copied")),
        Call(1, Put("m", "k\n", b"\x00\xff"), watched=True),
        Call(2, Size("m"), watched=False),
        Links((CUT,)),
    ],
)
def test_an_order_is_one_line_and_survives(order: Order) -> None:
    line = line_of(order)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert ORDER.decode(line) == order


@pytest.mark.parametrize(
    "report",
    [
        Began(),
        Began("Address already in use", 98),
        Recorded(Record("run", "athens", "life", 1, 2, 3, LIST)),
        Stranger("127.0.0.1:9", 'said "no"\n'),
        Done(1),
        Done(2, "athens is no master"),
        Answered(1, Answer(b"\x00\xff\n", keys=("k",))),
        Answered(2, Answer(problem="athens has ended", untouched=True)),
        Over(),
    ],
)
def test_a_report_is_one_line_and_survives(report: Report) -> None:
    line = line_of(report)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert REPORT.decode(line) == report
