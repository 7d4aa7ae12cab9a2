"""The diagnostics of Hazelcast 5.7.0, as members wrote them, and names that have no address: events and observations."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import AddressUnusable, HeartbeatLate
from quarterdeck.backend.core.witnessed.events import InvocationsSlow, MemberWitnessed, ReplicaMigrated
from quarterdeck.backend.hazelcast.witness.log_witness import Logged, LogWitness
from quarterdeck.backend.judgement.observations.observation import Observation
from quarterdeck.backend.judgement.observations.story import RecordObservers

ONE, TWO = Address("127.0.0.1:5771"), Address("127.0.0.1:5772")
UUID = "4b12d35b-8694-4433-94c7-541ce8cb5655"
HEAD = "Nov 26, 2026 11:41:16 AM com.hazelcast.internal.diagnostics.Diagnostics"
TEXT = f"""{HEAD}
INFO: [127.0.0.1]:5771 [dev] [5.7.0] \n\nMembers {{size:1, ver:1}} [\n\tMember [127.0.0.1]:5771 - {UUID} this\n]
{HEAD}
WARNING: [127.0.0.1]:5771 [dev] [5.7.0] DNS lookup for serviceDns 'hz.orders.svc' failed: unknown host
26-11-2026 11:41:21 1795693281442 MemberHeartbeats[
                          member[127.0.0.1]:5772[
                                  deviation(%)=100.0
                                  noHeartbeat(ms)=2,000
                                  lastHeartbeat(ms)=1,795,693,279,442
                                  now(date-time)=26-11-2026 11:41:21]]
26-11-2026 11:41:21 1795693281452 MemberHeartbeats[
                          member[127.0.0.1]:5772[
                                  noHeartbeat(ms)=2,010]]
26-11-2026 11:41:22 1795693282503 Invocations[
                          Pending[
                                  Invocation{{op=com.hazelcast.map.impl.operation.PutOperation{{callTimeout=60000, \
name=orders}}, tryCount=250, targetAddress=[127.0.0.1]:5771, targetMember=Member [127.0.0.1]:5771 - {UUID} this, \
backupsAcksExpected=1, backupsAcksReceived=0, connection=null}} duration=12,110 ms]
                          History[]
                          SlowHistory[]]
26-11-2026 11:41:32 1795693292487 MigrationCompleted[
                          source=null
                          destination=[127.0.0.1]:5772
                          partitionId=12
                          replicaIndex=1
                          elapsedTime(ms)=3
                          MigrationState[
                                  startTime=26-11-2026 11:41:31
                                  plannedMigrations=135
                                  completedMigrations=3
                                  remainingMigrations=132]]
26-11-2026 11:41:33 1795693293487 HazelcastInstance[
                          thisAddress=[127.0.0.1]:5771
                          Members[
                                  [127.0.0.1]:5771]]
26-11-2026 11:41:34 1795693294487 Invocations[
                          Pending[]
                          SlowHistory[]]
"""


def logged(text: str = TEXT) -> list[Logged]:
    witness = LogWitness()
    found = [record for line in text.splitlines() for record in witness.add_line(line)]
    return [record for record in (*found, *witness.flush()) if type(record.event) in OF_INTEREST]


OF_INTEREST = (HeartbeatLate, InvocationsSlow, ReplicaMigrated, AddressUnusable)


def test_what_diagnostics_say() -> None:
    found = logged()
    assert {record.member for record in found} == {ONE}, "lines that name no member are of the one that speaks there"
    assert [(record.utc_us - 1_795_693_280_000_000, record.event) for record in found[1:]] == [
        (1_442_000, HeartbeatLate(TWO, "", 2_000_000, 0, False)),
        (2_503_000, InvocationsSlow(1, "PutOperation of orders", ONE, 12_110_000)),
        (12_487_000, ReplicaMigrated(12, 1, None, TWO, True, 3_000, 135, 3)),
        (14_487_000, HeartbeatLate(TWO, "", 2_000_000, 0, True)),
    ]
    assert found[0].event == AddressUnusable(
        Address("hz.orders.svc:5701"), "hz.orders.svc has no address: unknown host", "unresolvable"
    )


def test_a_number_that_no_record_could_hold_is_not_read() -> None:
    found = logged(TEXT.replace("(ms)=3\n", f"(ms)={9 * 10**17}\n"))
    assert not [record for record in found if type(record.event) is ReplicaMigrated]


def observed(found: Sequence[Logged]) -> list[Observation]:
    """Return what is observed live, when these have come."""
    observers = RecordObservers("try", "live")
    witnessed = MemberWitnessed(("client-protocol", "logs"), ())
    began_us = found[0].utc_us
    for seq, (utc_us, event) in enumerate(
        [(began_us, witnessed), *((record.utc_us, record.event) for record in found)]
    ):
        observers.add(Record("try", ONE, "one", seq + 1, utc_us - began_us, utc_us, event))
    story = observers.story()
    assert story is not None
    return list(story.observations)


def test_what_is_observed_in_them() -> None:
    name, late, slow = sorted(observed(logged()), key=lambda one: one.start_us)
    assert (name.kind, name.headline, name.is_open) == (
        "name-unresolved", "hz.orders.svc has no address for 127.0.0.1:5771", True,
    )  # fmt: skip
    assert (late.kind, late.headline, late.is_open) == (
        "late-heartbeats", "127.0.0.1:5771 heard nothing of 127.0.0.1:5772 for 2.0 s", False,
    )  # fmt: skip
    assert (slow.kind, slow.is_open) == ("slow-invocations", True)
    assert slow.headline == "invocations of 127.0.0.1:5771 wait, PutOperation of orders at 127.0.0.1:5771 for 12 s"


def test_lines_that_are_cut_or_strange_say_nothing() -> None:
    for strange in (
        "MemberHeartbeats[member[x]:99999[noHeartbeat(ms)=1]]",
        "Invocations[",
        "MigrationCompleted[source=",
    ):
        assert logged(TEXT.partition("26-11")[0] + f"26-11-2026 11:41:21 1795693281442 {strange}\n")[1:] == []
