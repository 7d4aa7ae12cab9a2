"""TLS between members and for HTTP: who is believed to be whom, and certificates that change while a member runs."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from pathlib import Path

import httpx
import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.live.security.file_watch import LOOK_SECONDS
from quarterdeck.backend.live.security.tls import (
    BadCertificate,
    Tls,
    TlsFiles,
    WireSecurity,
    certificate_mismatch,
)
from quarterdeck.backend.live.transport.frames import FrameParser, content_of, frame_of
from quarterdeck.backend.live.transport.handshake import (
    ANSWER,
    PROTOCOL_VERSION,
    HandshakeHello,
    HandshakeRejection,
)
from quarterdeck.backend.live.transport.limits import TransportLimits
from tests.live.security.certificates import Authority
from tests.live.transport.http_echo import ask, echo
from tests.live.transport.transports import SHORT, Member, net
from tests.waiting import until

GET = b"GET /here HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def client_context(authority: Authority, certificate: TlsFiles | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.file)
    if certificate is not None:
        context.load_cert_chain(certificate.certificate, certificate.key)
    return context


async def answer_to_hello(address: Address, context: ssl.SSLContext, claimed: Address) -> HandshakeRejection:
    hello = frame_of(HandshakeHello(PROTOCOL_VERSION, "dev", claimed, "u"))
    (payload,) = FrameParser().feed(await ask(address, hello, ssl=context))
    answer = content_of(ANSWER, payload)
    assert isinstance(answer, HandshakeRejection)
    return answer


@pytest.mark.parametrize("secret", ["", "swordfish"])
async def test_members_and_http_over_one_encrypted_port(authority: Authority, secret: str) -> None:
    async with net(http=echo, security=WireSecurity(secret, authority.files())) as world:
        a, b, _ = world.members
        a.say(b, *"12")
        b.say(a, *"34", "x" * 3_000_000)
        await until(lambda: b.words == list("12") and len(a.words) == 3)
        async with httpx.AsyncClient(verify=client_context(authority)) as client:
            assert (await client.get(f"https://{a.address}/here")).text == "GET /here HTTP/1.1"
        await until(lambda: len(a.transport._connections) == len(b.transport._connections) == 1)
        assert not (a.failed or b.failed or a.strangers or b.strangers)
        a.transport.close()
        await until(lambda: not b.transport._connections)
        assert not b.failed, "it has said goodbye"


async def test_a_broken_off_connection_is_noticed_through_tls(authority: Authority) -> None:
    async with net(security=WireSecurity(tls=authority.files())) as world:
        a, b, _ = world.members
        a.say(b, "1")
        await until(lambda: b.words)
        a.transport.abort()
        await until(lambda: b.failed)
        assert b.failed[0][0] == a.address


async def test_who_shows_no_certificate_may_use_http_but_is_no_member(authority: Authority) -> None:
    async with net(http=echo, security=WireSecurity(tls=authority.files())) as world:
        a, b, _ = world.members
        context = client_context(authority)
        assert await answer_to_hello(a.address, context, b.address) == HandshakeRejection("showed no certificate")
        assert a.strangers == ["showed no certificate"]
        assert (await ask(a.address, GET, ssl=context)).endswith(b"GET /here HTTP/1.1")


async def test_a_certificate_for_another_host_is_no_pass_for_this_one(authority: Authority) -> None:
    theirs = authority.files("10.9.8.7", "other.example", stem="other")
    async with net(security=WireSecurity(tls=authority.files())) as world:
        a, b, c = world.members
        context = client_context(authority, theirs)
        reason = "gives an address on 127.0.0.1, but its certificate is for 10.9.8.7, other.example"
        assert await answer_to_hello(a.address, context, b.address) == HandshakeRejection(reason)
        assert a.strangers == [reason]
        impostor = Member(c.address, world.network, security=WireSecurity(tls=theirs))
        await impostor.transport.listen()
        a.say(c, "who is there")
        await until(lambda: a.failed)
        assert a.failed[0][1].startswith("TLS: its certificate is not accepted: IP address mismatch")
        impostor.transport.abort()


async def test_another_authority_is_not_believed_by_either_side(authority: Authority, tmp_path: Path) -> None:
    place = tmp_path / "foreign"
    place.mkdir()
    foreign = Authority(place).files()
    half_foreign = TlsFiles(foreign.certificate, foreign.key, authority.file)
    async with net(listening=1, security=WireSecurity(tls=authority.files())) as world:
        a, b, _ = world.members
        failed, causes = [], []
        for files in (foreign, half_foreign):
            other = Member(b.address, world.network, security=WireSecurity(tls=files))
            other.say(a, "let me in")
            await until(lambda: other.failed)  # noqa: B023 - awaited here
            failed.append(other.failed[0][1])
            causes += other.causes
            other.transport.abort()
        await until(lambda: a.strangers)
        assert failed[0].startswith("TLS: its certificate is not accepted: ")
        assert failed[1] == "TLS: it does not accept the certificate of this member: unknown ca"
        assert causes == ["rejected", "rejected"]
        (reason,) = a.strangers
        assert reason.startswith("TLS: its certificate is not accepted: ")
        assert not a.transport.connected and a.transport._listener.slots.taken == 0


async def test_without_mutual_no_certificate_is_asked_for(authority: Authority) -> None:
    async with net(security=WireSecurity(tls=authority.files(mutual=False))) as world:
        a, b, _ = world.members
        hello = frame_of(HandshakeHello(PROTOCOL_VERSION, "dev", b.address, "u"))
        assert b"welcome" in await ask(a.address, hello, ssl=client_context(authority))


async def test_one_side_only_speaks_tls(authority: Authority) -> None:
    async with net(listening=1, security=WireSecurity(tls=authority.files())) as world:
        a, b, _ = world.members
        plain = Member(b.address, world.network)
        await plain.transport.listen()
        plain.say(a, "in clear")
        await until(lambda: plain.failed and a.strangers)
        other_version = "the other side speaks no TLS, or none that is spoken here"
        assert a.strangers == [f"TLS: {other_version} (wrong version number)"]
        assert plain.failed == [(a.address, "it speaks TLS, which is not switched on at this member")]
        a.say(plain, "encrypted")
        await until(lambda: a.failed and plain.strangers)
        assert a.failed == [(b.address, f"TLS: {other_version} (tlsv1 alert protocol version)")]
        assert plain.strangers == ["speaks TLS, which is not switched on here"]
        assert {*a.causes, *plain.causes} == {"rejected"}
        plain.transport.abort()


async def test_slow_and_silent_tls_is_bounded(authority: Authority) -> None:
    limits = TransportLimits(pending_per_host=4)
    async with net(security=WireSecurity(tls=authority.files()), limits=limits, timeouts=SHORT) as world:
        a, b, _ = world.members
        host, port = a.address.split(":")
        writers = []
        for said in (b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"):
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(said)
            writers.append(writer)
        await until(lambda: len(a.strangers) == 3)
        assert a.strangers == ["agreed on no TLS within 0.3 s"] * 3
        assert a.transport._listener.slots.taken == 0
        _, silent = await asyncio.open_connection(host, int(port), ssl=client_context(authority))
        await until(lambda: len(a.strangers) == 4)
        assert a.strangers[3] == "said no hello within 0.3 s"
        b.say(a, "a member")
        await until(lambda: a.words)
        for writer in (*writers, silent):
            writer.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_old_tls_is_refused(authority: Authority) -> None:
    async with net(listening=1, security=WireSecurity(tls=authority.files())) as world:
        a = world.members[0]
        context = client_context(authority)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await ask(a.address, GET, ssl=context)
        await until(lambda: a.strangers)
        assert a.strangers[0].startswith("TLS: ")


# Files that change


class Watch:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def touch(files: TlsFiles, age: int) -> None:
    for path in files.all:
        os.utime(path, ns=(age, age))


def test_a_new_certificate_is_taken_at_the_next_connection(authority: Authority) -> None:
    watch = Watch()
    files = authority.files()
    touch(files, 1)
    tls = Tls(files, watch)
    first = tls.accepting
    assert tls.accepting is first
    authority.files()
    touch(files, 2)
    assert tls.accepting is first, "it is looked at only every few seconds"
    watch.now += LOOK_SECONDS
    second, dialling = tls.accepting, tls.dialling
    assert second is not first
    watch.now += LOOK_SECONDS
    assert tls.accepting is second and tls.dialling is dialling


def test_a_bad_new_certificate_is_told_once_and_the_old_one_stays(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    watch = Watch()
    files = authority.files()
    tls = Tls(files, watch)
    good = tls.accepting
    key = files.key.read_bytes()
    other_key = authority.files(stem="other").key.read_bytes()
    for bad in (b"nonsense", other_key, None):
        if bad is None:
            files.key.unlink()
        else:
            files.key.write_bytes(bad)
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                watch.now += LOOK_SECONDS
                assert tls.accepting is good
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the certificate has changed but cannot be used; the last good one stays"
    ] * 3
    assert "PRIVATE" not in caplog.text
    files.key.write_bytes(key)
    watch.now += LOOK_SECONDS
    assert tls.accepting is not good


async def test_members_go_on_over_a_change_of_certificates(authority: Authority) -> None:
    files = authority.files()
    touch(files, 1)
    async with net(listening=3, security=WireSecurity(tls=files)) as world:
        a, b, c = world.members
        a.say(b, "1")
        await until(lambda: b.words)
        first = await shown(a, authority)
        authority.files()
        touch(files, 2)
        for member in world.members:
            assert member.transport._tls is not None
            member.transport._tls._watch._looked_at -= LOOK_SECONDS
        assert await shown(a, authority) != first
        a.say(b, "2")
        c.say(a, "3")
        await until(lambda: b.words == ["1", "2"] and a.words == ["3"])


async def shown(member: Member, authority: Authority) -> bytes:
    host, port = member.address.split(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=client_context(authority))
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    assert isinstance(certificate, bytes)
    return certificate


def test_bad_files_are_one_clear_error_each(authority: Authority, tmp_path: Path) -> None:
    good = authority.files()
    other = authority.files(stem="other")
    nonsense, missing = tmp_path / "nonsense.pem", tmp_path / "missing.pem"
    nonsense.write_text("nonsense")
    locked = tmp_path / "locked.key"
    locked.write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
    for files, message in (
        (TlsFiles(missing, good.key), f"network.ssl.certificate: there is no file {missing}"),
        (TlsFiles(good.certificate, missing), f"network.ssl.key: there is no file {missing}"),
        (TlsFiles(good.certificate, other.key), "is not the key of"),
        (TlsFiles(nonsense, good.key), "network.ssl.certificate: .* cannot be read: give PEM files"),
        (TlsFiles(good.certificate, locked), "the key without a password"),
        (TlsFiles(good.certificate, good.key, nonsense), "network.ssl.authority: .* holds no certificate"),
        (TlsFiles(good.certificate, good.key, missing), "network.ssl.authority: .* No such file"),
    ):
        with pytest.raises(BadCertificate, match=message):
            Tls(files)


@pytest.mark.parametrize(
    ("names", "host", "accepted"),
    [
        ((("IP Address", "127.0.0.1"),), "127.0.0.1", True),
        ((("IP Address", "127.0.0.1"),), "127.0.0.2", False),
        ((("IP Address", "0:0:0:0:0:0:0:1\n"),), "::1", True),
        ((("DNS", "127.0.0.1"),), "127.0.0.1", False),
        ((("DNS", "a.example"),), "A.example.", True),
        ((("DNS", "*.example.org"),), "a.example.org", True),
        ((("DNS", "*.example.org"),), "a.b.example.org", False),
        ((("DNS", "*.org"),), "example.org", False),
        ((("DNS", "*.0.0.1"),), "127.0.0.1", False),
        ((("IP Address", "10.0.0.1"), ("DNS", "b.example")), "b.example", True),
        ((("IP Address", "10.0.0.1"),), "b.example", False),
        ((("URI", "b.example"),), "b.example", False),
        ((), "b.example", False),
    ],
)
def test_whom_a_certificate_names(names: tuple[tuple[str, str], ...], host: str, accepted: bool) -> None:
    reason = certificate_mismatch({"subjectAltName": names, "version": 3}, host)
    assert (reason is None) == accepted
    assert reason is None or host in reason


def test_no_certificate_is_nobody() -> None:
    assert certificate_mismatch(None, "a") == certificate_mismatch({}, "a") == "showed no certificate"
