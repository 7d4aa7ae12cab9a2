"""What an operator may have real members do over REST: where they want TLS, and where they know no REST."""

from __future__ import annotations

import asyncio
import socket
import struct
from pathlib import Path

import pytest
import trustme

from quarterdeck.backend.clusters.hazelcast.operator_actions import OperatorActions
from quarterdeck.backend.core.address import Address, host_of, make_address
from quarterdeck.backend.core.commands import CommandRefused, SetJoinList
from quarterdeck.backend.hazelcast.wire.member_configuration import ReportedConfiguration
from quarterdeck.backend.hazelcast.wire.messages import Answer
from quarterdeck.backend.hazelcast.wire.requests import Command
from quarterdeck.backend.hazelcast.wire.route import TlsOptions, WatchSettings
from tests.hazelcast.wire.test_tls import serving, written

ANSWER = b'{"status":"success","message":"edited"}'
REPORTED = ReportedConfiguration("dev", "tcp-ip", (), {}, rest_enabled=True, rest_groups=("CLUSTER_WRITE",))


async def _unasked(address: Address, request: Command, seconds: float) -> Answer:
    raise AssertionError("the join list is edited over REST")


async def test_a_join_list_is_edited_where_members_want_our_certificate_and_have_another_name(tmp_path: Path) -> None:
    authority = trustme.CA()
    trusted, certificate, key = written(authority, tmp_path)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(ANSWER) + ANSWER)
        await writer.drain()
        writer.close()

    context = serving(authority, "hz.example.com", mutual=True)
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        member = make_address("127.0.0.1", server.sockets[0].getsockname()[1])
        settings = WatchSettings((member,), tls=TlsOptions(trusted, certificate, key))
        actions = OperatorActions(_unasked, lambda _: "hz.example.com", settings, lambda _: REPORTED)
        edit = SetJoinList(str(member), ("10.0.0.1:5701",))
        assert await actions.do(edit) == "edited"
        trusted.unlink()
        with pytest.raises(CommandRefused, match=r"was not asked: the authority .* cannot be used"):
            await actions.do(edit)


async def test_a_connection_that_is_reset_instead_of_an_answer_is_that_of_an_old_member() -> None:
    async def reset(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.close()

    async with await asyncio.start_server(reset, "127.0.0.1", 0) as server:
        member = make_address("127.0.0.1", server.sockets[0].getsockname()[1])
        actions = OperatorActions(_unasked, host_of, WatchSettings((member,)), lambda _: REPORTED)
        with pytest.raises(CommandRefused, match=r"before 5\.2"):
            await actions.do(SetJoinList(str(member), ("10.0.0.1:5701",)))
