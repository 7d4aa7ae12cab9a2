"""Excerpts as people publish them with their questions, from releases 3.4 to 5.4: what a reader would note down."""

from pathlib import Path

import pytest

from backend.core.events import ListInstalled, Record
from backend.pipeline.product_logs.reading import Options, read_logs

EXCERPTS = {
    "spring-boot-3.8": (
        """\
2017-03-15 09:42:54.260  INFO 7 --- [ration.thread-0] com.hazelcast.system                     : [172.17.0.6]:5701 [someGroup] [3.8] Cluster version set to 3.8
2017-03-15 09:42:54.262  INFO 7 --- [ration.thread-0] c.h.internal.cluster.ClusterService      : [172.17.0.6]:5701 [someGroup] [3.8]

Members [2] {
	Member [172.17.0.2]:5701 - 170f6924-7888-442a-9875-ad4d25659a8a
	Member [172.17.0.6]:5701 - b1b82bfa-86c2-4931-af57-325c10c03b3b this
}

2017-03-15 09:42:56.287  INFO 7 --- [           main] com.example.Application                  : Started Application
""",
        [("172.17.0.6:5701", 1, "172.17.0.2:5701", 2)],
    ),
    "default-3.4": (
        """\
Dec 31, 2014 2:55:16 PM com.hazelcast.nio.tcp.SocketAcceptor
INFO: [192.168.0.19]:5701 [dev] [3.4-RC1-SNAPSHOT] Accepting socket connection from /192.168.0.20:46709
Dec 31, 2014 2:55:27 PM com.hazelcast.cluster.ClusterService
INFO: [192.168.0.19]:5701 [dev] [3.4-RC1-SNAPSHOT]

Members [2] {
        Member [192.168.0.19]:5701 this
        Member [192.168.0.20]:5701
}
""",
        [("192.168.0.19:5701", 1, "192.168.0.19:5701", 2)],
    ),
    "swedish-default-jet": (
        """\
okt. 26, 2019 7:21:42 EM com.hazelcast.core.LifecycleService
INFO: [10.0.75.1]:5701 [jet] [3.2] [10.0.75.1]:5701 is STARTING
okt. 26, 2019 7:21:44 EM com.hazelcast.internal.cluster.ClusterService
INFO: [10.0.75.1]:5701 [jet] [3.2]

Members {size:1, ver:1} [
        Member [10.0.75.1]:5701 - 44439093-250f-4477-8df6-558ee6af7c87 this
]
""",
        [("10.0.75.1:5701", 1, "10.0.75.1:5701", 1)],
    ),
    "two-members-and-threads-without-a-date": (
        """\
06:12:13,729  INFO |aTest| - [ClusterService] main - [127.0.0.1]:15702 [dev] [6.0.0-SNAPSHOT] \n
Members {size:2, ver:5} [
	Member [127.0.0.1]:15702 - 1c136842-db39-4d58-8848-73d33eb17fc1 this
	Member [127.0.0.1]:15704 - 4a922b4c-fd0f-41bd-98f6-8a63edff8610
]

06:12:13,731  INFO |aTest| - [ClusterService] hz.t.generic-operation.thread-0 - [127.0.0.1]:15704 [dev] [6.0.0-SNAPSHOT] \n
Members {size:2, ver:5} [
	Member [127.0.0.1]:15702 - 1c136842-db39-4d58-8848-73d33eb17fc1
	Member [127.0.0.1]:15704 - 4a922b4c-fd0f-41bd-98f6-8a63edff8610 this
]
""",
        [("127.0.0.1:15702", 5, "127.0.0.1:15702", 2), ("127.0.0.1:15704", 5, "127.0.0.1:15702", 2)],
    ),
    "compose-5.4-with-consensus-groups": (
        """\
hazelcast-node2    | 2026-01-14 18:50:59,144 [ INFO] [hz.goofy.partition-operation.thread-0] [c.h.c.i.r.i.RaftNode(METADATA)]: [172.28.0.12]:5701 [counter-cluster] [5.4.0]
hazelcast-node2    |
hazelcast-node3    | 2026-01-14 18:51:43,074 [ INFO] [hz.wonderful.cached.thread-4] [c.h.i.c.ClusterService]: [172.28.0.13]:5701 [counter-cluster] [5.4.0]
hazelcast-node2    | CP Group Members {groupId: METADATA(0), size:1, term:1, logIndex:0} [
hazelcast-node2    |    CPMember{uuid=221562ed-985c-4023-8a45-56144f59f644, address=[172.28.0.12]:5701} - LEADER this
hazelcast-node3    |
hazelcast-node3    | Members {size:2, ver:4} [
hazelcast-node3    |    Member [172.28.0.13]:5701 - b604165b-e6f8-4b10-a1d4-4e77d80a6f67 this
hazelcast-node2    | ]
hazelcast-node3    |    Member [172.28.0.12]:5701 - 221562ed-985c-4023-8a45-56144f59f644
hazelcast-node3    | ]
hazelcast-node3    |
""",
        [("172.28.0.13:5701", 4, "172.28.0.13:5701", 2)],
    ),
    "syslog-of-a-service": (
        """\
Apr 20 01:46:17 ip-10-1-0-216 scheduler_service[16473]: Apr 20, 2021 1:46:17 AM com.hazelcast.internal.cluster.ClusterService
Apr 20 01:46:17 ip-10-1-0-216 scheduler_service[16473]: INFO: [10.1.0.216]:10081 [sched] [3.12.9]
Apr 20 01:46:17 ip-10-1-0-216 scheduler_service[16473]: Members {size:2, ver:1405} [
Apr 20 01:46:17 ip-10-1-0-216 kernel: something else
Apr 20 01:46:17 ip-10-1-0-216 scheduler_service[16473]:         Member [10.1.0.87]:10081 - d4be1de7-da19-4942-ad9c-fd2e762ac47c
Apr 20 01:46:17 ip-10-1-0-216 scheduler_service[16473]:         Member [10.1.0.216]:10081 - 7c25547c-490d-43db-be25-0aefca72dc07 this
Apr 20 01:46:17 ip-10-1-0-216 scheduler_service[16473]: ]
""",
        [("10.1.0.216:10081", 1405, "10.1.0.87:10081", 2)],
    ),
    "logback-through-a-wrapper": (
        """\
2025-09-07 14:52:20,863 INFO c.h.l.StandardLoggerFactory$StandardLogger [main] [172.18.0.1]:5701 [dev] [5.0-BETA-1] \n
Members {size:1, ver:1} [
	Member [172.18.0.1]:5701 - f9089d9a-714b-4a24-8a05-b83ba5b92bb7 this
]

2025-09-07 14:52:21,179 INFO o.h.c.Environment [main] HHH000406: Using bytecode reflection optimizer
""",
        [("172.18.0.1:5701", 1, "172.18.0.1:5701", 1)],
    ),
}  # fmt: skip


def installed(records: list[Record]) -> list[tuple[str, int, str, int]]:
    """Of each list: whose it is, its version, its master, and how many stand on it."""
    return [
        (one.member, one.event.version, str(one.event.master), len(one.event.members))
        for one in records
        if isinstance(one.event, ListInstalled)
    ]


@pytest.mark.parametrize("name", sorted(EXCERPTS))
def test_an_excerpt_gives_its_lists(name: str, tmp_path: Path) -> None:
    text, lists = EXCERPTS[name]
    (tmp_path / "member.log").write_text(text)
    reading = read_logs([tmp_path], Options(run="excerpt"))
    assert installed(reading.records) == lists
    assert [
        aside.reason for aside in reading.quarantine if "kernel" not in aside.text and "something" not in aside.text
    ] == []


def test_merges_that_come_to_nothing_are_told_once(tmp_path: Path) -> None:
    """A day and a time, as one pattern has it, without month and year."""
    said = "INFO c.h.i.c.i.ClusterJoinManager - [10.244.243.91]:5701 [main] [5.3.1] We should merge to [10.244.219.87]:5701 "
    why = "because their data member count is bigger than ours [2 > 1]"
    lines = [f"26 07:{minute}:27,133 [hz.gould.generic-operation.thread-0] {said}{why}\n" for minute in (49, 51, 53)]
    (tmp_path / "member.log").write_text("".join(lines))
    reading = read_logs([tmp_path], Options(date="2023-10-26"))
    assert len(reading.records) == 1
    assert reading.quarantine == []
