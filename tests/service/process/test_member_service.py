"""What a running member does for its HTTP face: commands, faults, properties, records, and an audit event for each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import httpx
import pytest

from quarterdeck.backend.commands.catalogue import command_text
from quarterdeck.backend.core.address import Address, make_address
from quarterdeck.backend.core.commands import (
    CallMap,
    ChangeState,
    CommandRefused,
    CutLink,
    Heal,
    Partition,
    PauseMember,
    ResumeMember,
    SearchClusters,
    SetJoinList,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.events import Event, OperatorAsked, ProcessPaused, ProcessResumed, StrangerRefused
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.core.membership.events import SettingsChanged
from quarterdeck.backend.core.membership.messages import JoinRefused
from quarterdeck.backend.core.operations import Get, Put
from quarterdeck.backend.core.properties import BadProperty, Settings
from quarterdeck.backend.journal.upkeep import Retention
from quarterdeck.backend.live.member.member_host import RunClock
from quarterdeck.backend.live.transport import member_transport
from quarterdeck.backend.live.transport.frames import FrameTooLarge
from quarterdeck.backend.live.transport.network import LiveNetwork
from quarterdeck.backend.service.configuration.process_configuration import ENDPOINT_GROUPS, ProcessConfiguration
from quarterdeck.backend.service.http.face import Caller
from quarterdeck.backend.service.process.member_service import MemberService
from tests.service.member_processes import BASE_PORT

ANN = Caller("10.0.0.9:1234", "fault", "ann")
HERE = make_address("127.0.0.1", BASE_PORT + 20)
OTHER = Address("10.0.0.2:5701")
SETTINGS = Settings.of(preset="training")


@asynccontextmanager
async def running(*, allow_faults: bool = True) -> AsyncIterator[MemberService]:
    configuration = ProcessConfiguration(
        MemberConfiguration("run", "n1", HERE, (HERE,), SETTINGS),
        "127.0.0.1",
        (HERE,),
        allow_faults=allow_faults,
        endpoint_groups=dict.fromkeys(ENDPOINT_GROUPS, True),
    )
    network = LiveNetwork({"n1": HERE}, Random(1))
    service = MemberService(configuration, Random(1), RunClock.started_now(), network)
    await service.start()
    try:
        await asyncio.wait_for(service.joined.wait(), 10)
        yield service
    finally:
        service.stop()
        service.stop()
        await service.ended_event.wait()
        await service.close(1)


def during(test: Callable[[MemberService], Awaitable[None]], **options: bool) -> None:
    async def run() -> None:
        async with running(**options) as service:
            await test(service)

    asyncio.run(run())


def recorded(service: MemberService) -> list[Event]:
    return [stored.record.event for stored in service.records.after("", 0)[1]]


def seen(service: MemberService, kind: type[Any]) -> list[Any]:
    return [event for event in recorded(service) if isinstance(event, kind)]


def test_what_is_asked_is_done_by_the_member_that_is_meant() -> None:
    async def test(service: MemberService) -> None:
        await service.do(SetJoinList("n1", ("n1", OTHER)), ANN)
        await service.do(SearchClusters(HERE), ANN)  # members go by their addresses too
        assert service.member.join_list == (HERE, OTHER)
        with pytest.raises(CommandRefused, match="this is n1, not n2"):
            await service.do(ChangeState("n2", "FROZEN"), ANN)
        with pytest.raises(CommandRefused, match="already running"):
            await service.do(StartMember("n1"), ANN)

    during(test)


def test_faults_by_address_and_only_what_this_member_sends() -> None:
    async def test(service: MemberService) -> None:
        await service.do(CutLink((HERE,), (OTHER,), mode="reset"), ANN)
        assert service.faults == [LinkChanged("n1", OTHER, "reset")] == seen(service, LinkChanged)
        await service.do(Partition((("n1",), (OTHER, "10.0.0.3:5701"))), ANN)
        assert [fault.target for fault in service.faults] == [OTHER, "10.0.0.3:5701"]
        await service.do(Heal(), ANN)
        assert service.faults == []
        with pytest.raises(CommandRefused, match='unknown label "n7"'):
            await service.do(CutLink(("n1",), ("n7",)), ANN)
        with pytest.raises(CommandRefused, match="no link between these"):
            await service.do(CutLink(("n1",), (HERE,)), ANN)

    during(test)


def test_who_asks_for_what_is_done_is_recorded_before_its_effects() -> None:
    async def test(service: MemberService) -> None:
        await service.do(ChangeState("n1", "FROZEN"), ANN)
        await service.do(CutLink((HERE,), (OTHER,)), ANN)
        await service.reconfigure({"hazelcast.merge.next.run.delay.seconds": 5}, ANN)
        with pytest.raises(CommandRefused):
            await service.do(ChangeState("n7", "ACTIVE"), ANN)
        asked = [(event.do, event.target, event.role, event.granted) for event in seen(service, OperatorAsked)]
        assert asked == [(do, "n1", "fault", True) for do in ("change-state", "cut", "set")]
        assert seen(service, OperatorAsked)[0].remote.startswith("ann at ")
        kinds = [type(event) for event in recorded(service)]
        assert kinds.index(OperatorAsked) < kinds.index(LinkChanged)

    during(test)


def test_without_leave_for_faults_there_are_none() -> None:
    async def test(service: MemberService) -> None:
        for command in (PauseMember("n1"), CutLink(("n1",), (OTHER,)), Heal()):
            with pytest.raises(CommandRefused, match="was not started with --allow-faults"):
                await service.do(command, ANN)
        assert not service.host.paused

    during(test, allow_faults=False)


def test_a_frozen_member_does_nothing_but_go_on() -> None:
    async def test(service: MemberService) -> None:
        await service.do(PauseMember("n1"), ANN)
        with pytest.raises(CommandRefused, match="n1 is paused"):
            await service.do(SearchClusters("n1"), ANN)
        await service.do(ResumeMember("n1"), ANN)
        assert seen(service, ProcessPaused) and seen(service, ProcessResumed)
        await service.do(SearchClusters("n1"), ANN)

    during(test)


def test_properties_change_whole_or_not_at_all_and_a_bad_one_harms_nobody() -> None:
    async def test(service: MemberService) -> None:
        name = "hazelcast.merge.next.run.delay.seconds"
        await service.reconfigure({name: 7}, ANN)
        assert service.member.settings.merge_next_run_delay_us == 7_000_000
        for wrong in ("hazelcast.partition.count", "no.such"):
            with pytest.raises(BadProperty):
                await service.reconfigure({name: 9, wrong: 5}, ANN)
        assert service.member.settings.merge_next_run_delay_us == 7_000_000
        assert seen(service, SettingsChanged) == [SettingsChanged({name: "7"})]
        assert service.node_state == "ACTIVE"

    during(test)


def test_values_of_maps_are_not_in_the_audit_log() -> None:
    async def test(service: MemberService) -> None:
        assert (await service.call(Put("m", "k", b"secret"), ANN)).problem == ""
        assert (await service.call(Get("m", "k"), ANN)).value == b"secret"
        await service.do(CallMap("n1", Put("m", "k", b"secret")), ANN)
        assert command_text(CallMap("n1", Put("m", "k", b"secret"))) == "call n1 put"
        assert command_text(CutLink(("n1", "n2"), ("n3",))) == "cut sources=n1,n2 targets=n3 mode=blackhole"
        assert command_text(Partition((("n1", "n2"), ("n3",)))) == "partition groups=n1,n2|n3 mode=blackhole"

    during(test)


def test_strangers_are_counted_by_host_and_minute() -> None:
    async def test(service: MemberService) -> None:
        for number in range(1_000):
            service.stranger_refused(StrangerRefused(f"10.6.6.6:{number}", "no handshake", "no-member"))
        service.stranger_refused(StrangerRefused("10.6.6.6:1", "wrong secret", "secret"))
        service.stranger_refused(StrangerRefused("[fe80::1]:1", "no handshake", "no-member"))
        service.stranger_refused(StrangerRefused("[fe80::2]:1", "no handshake", "no-member"))  # of the same network
        refused = seen(service, StrangerRefused)
        assert [event.remote for event in refused] == ["10.6.6.6:0", "10.6.6.6:1", "[fe80::1]:1"]
        assert service.meters.refusals["no-member"] == 1_002
        service._record_strangers()
        assert [event.reason for event in seen(service, StrangerRefused)[3:]] == [
            "no handshake; 999 more from 10.6.6.6 within a minute",
            "no handshake; 1 more from [fe80::2] within a minute",
        ]
        service.stranger_refused(StrangerRefused("10.6.6.6:7", "no handshake", "no-member"))
        assert seen(service, StrangerRefused)[-1].remote == "10.6.6.6:7", "a new minute"

    during(test)


def test_retention_follows_the_properties() -> None:
    async def test(service: MemberService) -> None:
        assert service._journal_retention() == Retention(30 * 86_400, 1 << 30)
        assert service._audit_log_retention() == Retention(365 * 86_400, 1 << 27)
        await service.reconfigure({"quarterdeck.journal.retention.seconds": 60}, ANN)
        assert service._journal_retention() == Retention(60, 1 << 30)

    during(test)


def test_a_member_stops_once_however_often_it_is_asked() -> None:
    async def test(service: MemberService) -> None:
        service.shut_down(ANN)
        service.shut_down(ANN)
        assert service.node_state == "ACTIVE"  # the answer goes first
        await asyncio.wait_for(service.ended_event.wait(), 10)
        assert service.node_state == "SHUT_DOWN"
        with pytest.raises(CommandRefused, match="n1 has ended"):
            await service.do(StopMember("n1"), ANN)
        assert (await service.call(Get("m", "k"), ANN)).problem == "n1 has ended"

    during(test)


def test_clients_that_come_before_http_is_loaded_are_served_all_the_same() -> None:
    async def test(service: MemberService) -> None:
        async with httpx.AsyncClient(base_url=f"http://{HERE}", timeout=20) as client:
            answers = await asyncio.gather(*(client.get("/hazelcast/health/node-state") for _ in range(20)))
            assert {answer.text for answer in answers} == {'"ACTIVE"'}
            body = "x" * 300_000  # more than is said at once
            stored = await client.post("/hazelcast/rest/maps/m/big", content=body)
            assert stored.is_success
            assert (await client.get("/hazelcast/rest/maps/m/big")).text == body

    during(test)


def test_a_second_request_that_is_never_finished_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(service: MemberService) -> None:
        from quarterdeck.backend.service.http import http_protocol

        monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.1)
        reader, writer = await asyncio.open_connection("127.0.0.1", BASE_PORT + 20)
        writer.write(b"GET /hazelcast/health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.write(b"GET /hazelcast/he")
        try:
            while await asyncio.wait_for(reader.read(1000), 10):
                pass
        except ConnectionResetError:
            pass
        writer.close()

    during(test)


def test_neither_an_observer_that_fails_nor_a_frame_that_is_too_large_ends_a_member(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(service: MemberService) -> None:
        def too_large(*_: object) -> None:
            raise FrameTooLarge(2, 1)

        def fail(record: object) -> None:
            raise RuntimeError("the disk of the observer is gone")

        monkeypatch.setattr(service, "_record_consumers", (fail,))
        await service.do(ChangeState("n1", "FROZEN"), ANN)
        monkeypatch.setattr(member_transport, "queued_frame_of", too_large)
        service.host.transmit(((OTHER, JoinRefused("x" * 100)), (OTHER, JoinRefused("y" * 100))), None)
        assert service.member.joined and not service.host.ended
        assert "the disk of the observer is gone" in caplog.text
        assert caplog.text.count("member n1 cannot send") == 2

    during(test)
