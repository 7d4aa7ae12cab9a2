"""One port for members and for HTTP: who is let in, and who is sent away for being slow or too many."""

from __future__ import annotations

import asyncio

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.server import ServerState
from websockets.asyncio.client import connect

from quarterdeck.backend.core.address import port_of
from quarterdeck.backend.live.security.tls import OTHER_VERSION_ALERT
from quarterdeck.backend.live.transport.frames import frame_of
from quarterdeck.backend.live.transport.handshake import PROTOCOL_VERSION, HandshakeHello
from quarterdeck.backend.live.transport.limits import (
    DEFAULT_LIMITS,
    KNOWN_SECONDS,
    OWN_DESCRIPTORS,
    ConnectionSlots,
    HandshakeFailures,
    KnownHosts,
    TransportLimits,
    limits_within,
    network_of,
)
from quarterdeck.backend.live.transport.listener import BUSY_ALERT, TOO_BUSY, TOO_MANY, TOO_MANY_FAILURES, TOO_SLOW
from tests.live.transport.http_echo import ask, echo
from tests.live.transport.transports import SHORT, Member, net
from tests.waiting import until

GET = b"GET /here HTTP/1.1\r\nHost: a\r\n\r\n"
ANSWERED = b"HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\nGET /here HTTP/1.1"


async def test_http_and_frames_share_a_port() -> None:
    async with net(http=echo) as world:
        a, b, _ = world.members
        b.say(a, "before")
        assert await ask(a.address, GET) == ANSWERED
        b.say(a, "after")
        await until(lambda: a.words == ["before", "after"])
        assert not a.strangers
        assert a.transport._listener.slots.taken == 0


async def test_a_request_may_come_letter_by_letter_and_the_next_one_on_the_same_connection() -> None:
    async with net(http=echo) as world:
        host, port = world.members[0].address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        for place in range(len(GET)):
            writer.write(GET[place : place + 1])
            await asyncio.sleep(0)
        assert await reader.readexactly(len(ANSWERED)) == ANSWERED
        writer.write(GET + GET)
        assert await reader.readexactly(2 * len(ANSWERED)) == 2 * ANSWERED
        writer.close()


async def test_a_whole_server_takes_over_with_websockets() -> None:
    async def hello(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"{(await request.body()).decode()} from {request.client is not None}")

    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        async for text in websocket.iter_text():
            await websocket.send_text(text.upper())

    config = uvicorn.Config(
        Starlette(routes=[Route("/", hello, methods=["POST"]), WebSocketRoute("/events", socket)]), lifespan="off"
    )
    config.load()
    state = ServerState()

    def handover(transport: asyncio.Transport, said: bytes) -> asyncio.Protocol:
        return AutoHTTPProtocol(config=config, server_state=state, app_state={})  # type: ignore[call-arg]

    async with net(http=handover) as world:
        a, b, _ = world.members
        async with httpx.AsyncClient(base_url=f"http://{a.address}") as client:
            for body in ("x", "y" * 100_000):
                assert (await client.post("/", content=body)).text == f"{body} from True"
        async with connect(f"ws://{a.address}/events") as websocket:
            await websocket.send("aloud")
            assert await websocket.recv() == "ALOUD"
            b.say(a, "beside it")
            await until(lambda: a.words == ["beside it"])


@pytest.mark.parametrize("said", [b"G", GET[:-1], b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20])
async def test_who_does_not_finish_a_request_is_told_so(said: bytes) -> None:
    async with net(timeouts=SHORT, http=echo) as world:
        a = world.members[0]
        assert await ask(a.address, said) == TOO_SLOW
        assert a.strangers == ["did not finish its request within 0.3 s"]
        assert a.transport._listener.slots.taken == 0


async def test_a_long_head_is_left_to_the_http_face_to_refuse() -> None:
    async with net(http=echo, limits=TransportLimits(http_head_bytes=100)) as world:
        a = world.members[0]
        assert await ask(a.address, GET[:-2] + b"B: c\r\n" * 50 + b"\r\n") == ANSWERED
        assert not a.strangers


async def test_too_many_http_connections_are_told_so_and_closed_ones_give_their_place_back() -> None:
    async with net(http=echo, limits=TransportLimits(http_per_host=2)) as world:
        a, b, _ = world.members
        host, port = a.address.split(":")
        writers = []
        for _ in range(2):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(GET)
            assert await reader.readexactly(len(ANSWERED)) == ANSWERED
            writers.append(writer)
        assert await ask(a.address, GET) == TOO_MANY
        b.say(a, "members have places of their own")
        await until(lambda: a.words)
        writers[0].close()
        while (said := await ask(a.address, GET)) == TOO_MANY:  # until the end of the connection is noticed
            pass
        assert said == ANSWERED
        writers[1].close()


async def test_strangers_have_only_so_many_places_and_make_way_and_members_do_not_use_them_up() -> None:
    async with net(timeouts=SHORT, limits=TransportLimits(pending_per_host=3)) as world:
        a, b, c = world.members
        c.say(a, "a member")
        await until(lambda: a.words)
        host, port = a.address.split(":")
        open_ones = [await asyncio.open_connection(host, int(port)) for _ in range(3)]
        await until(lambda: a.transport._listener.slots.taken == 3)
        early, _ = open_ones[0]
        assert await ask(a.address, b"\0\0\0") == a.transport._listener.rejection("said no hello within 0.3 s")
        assert await early.read() == a.transport._listener.rejection(TOO_BUSY)
        assert a.strangers[0] == "made way for another one: too many strangers at a time"
        c.say(a, "still a member")
        await until(lambda: len(a.words) == 2)
        await until(lambda: a.transport._listener.slots.taken == 0)
        assert a.strangers[1:3] == ["said no hello within 0.3 s"] * 2
        b.say(a, "next")
        await until(lambda: len(a.words) == 3)
        for _, writer in open_ones:
            writer.close()


@pytest.mark.parametrize(
    ("said", "secured", "refusal"),
    [(GET, True, TOO_MANY), (b"\x16\x03\x01", False, BUSY_ALERT), (GET, False, BUSY_ALERT)],
)
async def test_who_finds_no_place_learns_it_in_its_own_protocol(said: bytes, secured: bool, refusal: bytes) -> None:
    async with net(listening=1, http=echo) as world:
        assert world.members[0].transport._listener.refusal_of(said, secured) == refusal


async def test_who_finds_no_place_at_all_is_answered_before_it_is_hung_up_on() -> None:
    async with net(http=echo, limits=TransportLimits(pending=0)) as world:
        a, b, _ = world.members
        b.say(a, "hello")
        await until(lambda: b.failed)
        assert TOO_BUSY in b.failed[0][1] and b.causes == ["rejected"]
        assert await ask(a.address, GET) in (TOO_MANY, a.transport._listener.rejection(TOO_BUSY))


async def test_who_fails_too_often_learns_it_and_is_not_heard_while_http_and_members_go_on() -> None:
    async with net(http=echo, limits=TransportLimits(failures=3, failures_per_second=1)) as world:
        a, b, _ = world.members
        b.say(a, "before")
        await until(lambda: a.words)
        answers = [await ask(a.address, b"\xff\xff\xff\xff") for _ in range(20)]
        assert set(answers[3:]) == {a.transport._listener.rejection(TOO_MANY_FAILURES)} and len(set(answers)) == 2
        assert len(a.strangers) == 3
        assert await ask(a.address, GET) == ANSWERED
        b.say(a, "after")
        await until(lambda: len(a.words) == 2)
        await asyncio.sleep(1.1)  # time is the subject: one failure a second is heard
        await ask(a.address, b"\xff\xff\xff\xff")
        assert a.strangers[3].endswith("; 17 more from 127.0.0.1 were disconnected unread")


async def test_another_cluster_is_a_mistake_and_not_held_against_its_host() -> None:
    async with net(limits=TransportLimits(failures=2, failures_per_second=0)) as world:
        a, b, _ = world.members
        for number in range(5):
            hello = HandshakeHello(PROTOCOL_VERSION, "prod", b.address, f"u{number}")
            assert b"belongs to" in await ask(a.address, frame_of(hello))
        b.say(a, "welcome")
        await until(lambda: a.words)


async def test_tls_where_none_is_spoken_is_called_by_its_name() -> None:
    async with net(http=echo) as world:
        a = world.members[0]
        assert await ask(a.address, b"\x16\x03\x01\x02\x00") == OTHER_VERSION_ALERT
        assert a.strangers == ["speaks TLS, which is not switched on here"]


async def test_another_port_for_http_only() -> None:
    async with net(listening=1, http=echo) as world:
        a, b, _ = world.members
        await a.transport.listen(port_of(b.address))
        assert await ask(b.address, GET) == ANSWERED
        assert await ask(b.address, frame_of(HandshakeHello(PROTOCOL_VERSION, "dev", b.address, "u"))) == b""
        assert a.strangers == ["speaks no HTTP, on a port that is for HTTP only"]


async def test_a_paused_member_is_heard_by_http_only_so_that_it_can_be_told_to_go_on() -> None:
    async with net(timeouts=SHORT, http=echo) as world:
        a = world.members[0]
        early = asyncio.create_task(ask(a.address, GET[:5]))
        await until(lambda: a.transport._listener.slots.taken)
        a.transport.pause()
        member = asyncio.create_task(ask(a.address, b"\0\0\0\1x"))
        assert await ask(a.address, GET) == ANSWERED
        await asyncio.sleep(0.7)  # time is the subject: more than the 0.3 s that a stranger has
        assert not early.done() and not member.done() and not a.strangers
        a.transport.resume()
        assert await early == TOO_SLOW
        await member
        assert a.strangers


async def test_a_member_that_closes_lets_nobody_wait() -> None:
    async with net(http=echo) as world:
        a: Member = world.members[0]
        waiting = asyncio.create_task(ask(a.address, b""))
        await until(lambda: a.transport._listener.slots.taken)
        a.transport.close()
        assert await waiting == b""
        assert not a.strangers and a.transport._listener.slots.taken == 0


async def test_strangers_do_not_pile_up_as_addresses() -> None:
    async with net() as world:
        a = world.members[0]
        for port in range(1, 30):
            hello = frame_of(HandshakeHello(PROTOCOL_VERSION, "dev", f"10.0.0.1:{port}", "u"))  # type: ignore[arg-type]
            assert b"welcome" in await ask(a.address, hello)
        await until(lambda: not a.transport.peers)


class Holder:
    """Of a slot; `over` once it has made way."""

    def __init__(self, gives_way: bool = True) -> None:
        self.gives_way = gives_way
        self.over = False

    def give_way(self) -> None:
        self.over = True


def test_places_are_counted_per_host_and_given_back() -> None:
    slots = ConnectionSlots(2, 3)
    busy = [Holder(gives_way=False) for _ in range(6)]
    first, second = slots.take("a", busy[0]), slots.take("a", busy[1])
    assert first is not None and second is not None and slots.take("a", busy[2]) is None
    assert slots.take("b", busy[3]) is not None and slots.take("c", busy[4]) is None
    first()
    first()
    assert slots.taken == 2 and slots.take("a", busy[5]) is not None


def test_places_are_shared_fairly() -> None:
    slots = ConnectionSlots(4, 6)
    greedy, other = [Holder() for _ in range(4)], [Holder() for _ in range(2)]
    assert all(slots.take("greedy", peer) for peer in greedy) and all(slots.take("other", peer) for peer in other)
    newcomer = Holder()
    assert slots.take("newcomer", newcomer)
    assert [peer.over for peer in greedy] == [True, False, False, False] and not any(peer.over for peer in other)
    assert slots.take("greedy", Holder()), "in place of its own"
    assert [peer.over for peer in greedy] == [True, True, False, False]
    assert slots.taken == 6 and not newcomer.over


def test_strangers_make_way_for_those_who_are_known() -> None:
    slots = ConnectionSlots(4, 4, known={"known", "other"})
    known, strangers = [Holder() for _ in range(3)], [Holder() for _ in range(2)]
    assert all(slots.take("known", host) for host in known) and slots.take("10.0.0.1", strangers[0])
    assert slots.take("10.0.0.2", strangers[1]) and strangers[0].over
    assert slots.take("known", Holder()) and strangers[1].over
    assert slots.take("10.0.0.1", Holder()) is None, "there is no place but those of who is known"
    assert slots.take("other", Holder()) and known[0].over
    assert slots.make_room() and slots.taken == 3


def test_hosts_are_known_for_a_while_and_loopback_always() -> None:
    now = 0.0
    known = KnownHosts(lambda: now)
    known.add("10.0.0.1")
    known.add("2001:db8::1")
    assert all(host in known for host in ("10.0.0.1", network_of("2001:db8::2"), "127.0.0.9", network_of("::1")))
    assert "10.0.0.2" not in known and network_of("2001:db8:1::") not in known
    now = KNOWN_SECONDS
    assert "10.0.0.1" not in known and "127.0.0.1" in known


@pytest.mark.parametrize("descriptors", [16, 64, 256, 1_024, 4_096, 1_048_576])
def test_limits_leave_a_member_what_it_needs_itself(descriptors: int) -> None:
    limits = limits_within(descriptors)
    assert 1 <= limits.pending_per_host < limits.pending and 1 <= limits.http_per_host < limits.http
    assert limits.http + limits.pending <= max(descriptors - OWN_DESCRIPTORS, 16)
    assert limits == DEFAULT_LIMITS or descriptors < 4_096


def test_failures_are_counted_per_host() -> None:
    now = 0.0
    failures = HandshakeFailures(TransportLimits(failures=2, failures_per_second=1), lambda: now)
    assert failures.failed("a") == 0 and not failures.unheard("a")
    assert failures.failed("a") == 0 and failures.unheard("a") and not failures.unheard("b")
    assert failures.unheard("a")
    now = 1.0
    assert not failures.unheard("a")
    assert failures.failed("a") == 2
