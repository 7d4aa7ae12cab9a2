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
from quarterdeck.backend.core.events import Record, StrangerRefused
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.operations import Answer, Put, PutAll, Size
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.live.cluster.pipe_messages import (
    PIPE_REPORT,
    PIPE_REQUEST,
    BeginCall,
    EventRecorded,
    ExecuteCommand,
    IncarnationEnded,
    IncarnationStarted,
    PipeReport,
    PipeRequest,
    Reply,
    SetLinks,
    StartIncarnation,
    line_of,
)
from quarterdeck.backend.live.member.member_host import RunClock
from quarterdeck.backend.live.transport.limits import Timeouts

ATHENS = Address("127.0.0.1:5701")
BIRTH = MemberConfiguration("run", "athens", ATHENS, (ATHENS,), Settings.of(preset="training"), cluster_name="prod")
CUT = LinkChanged("a", "b", blocked="reset", dropped_kinds=("heartbeat",))
LIST = ListInstalled(1, "life/1", ATHENS, (Member(ATHENS, "life", 1),), ATHENS, "unknown", "a member\njoined")


@pytest.mark.parametrize(
    "order",
    [
        StartIncarnation(BIRTH, RunClock.started_now(), {"athens": ATHENS}, (CUT,), "seed", Timeouts(1, 2)),
        ExecuteCommand(1, StopMember("athens")),
        ExecuteCommand(2, SetJoinList("athens", (ATHENS,))),
        ExecuteCommand(3, ChangeState("athens", "FROZEN")),
        ExecuteCommand(4, SearchClusters("athens")),
        StartIncarnation(
            BIRTH, RunClock.started_now(), {}, (), "seed", Timeouts(), KillAt("athens", "member-started", after=True)
        ),
        ExecuteCommand(5, Operate("athens")),
        ExecuteCommand(6, ArrangePartitions("athens")),
        ExecuteCommand(7, CallMap("athens", PutAll("m", (("k", b"\xff\n"), ("l", b""))))),
        ExecuteCommand(8, KillAt("athens", "migration-copied")),
        BeginCall(1, Put("m", "k\n", b"\x00\xff"), watched=True),
        BeginCall(2, Size("m"), watched=False),
        SetLinks((CUT,)),
    ],
)
def test_an_order_is_one_line_and_survives(order: PipeRequest) -> None:
    line = line_of(order)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert PIPE_REQUEST.decode(line) == order


@pytest.mark.parametrize(
    "report",
    [
        IncarnationStarted(),
        IncarnationStarted("Address already in use", 98),
        EventRecorded(Record("run", "athens", "life", 1, 2, 3, LIST)),
        EventRecorded(Record("run", "athens", "life", 2, 3, 4, StrangerRefused("[::1]:9", 'said "no"\n', "no-member"))),
        Reply(1),
        Reply(2, "athens is no master"),
        Reply(3, answer=Answer(b"\x00\xff\n", keys=("k",))),
        Reply(4, answer=Answer(problem="athens has ended", untouched=True)),
        IncarnationEnded(),
    ],
)
def test_a_report_is_one_line_and_survives(report: PipeReport) -> None:
    line = line_of(report)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert PIPE_REPORT.decode(line) == report
