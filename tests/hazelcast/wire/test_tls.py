"""TLS towards members: an authority, a certificate of ours, and names in theirs."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from quarterdeck.backend.core.address import Address, port_of
from quarterdeck.backend.hazelcast.wire.connection import BadTlsFiles, client_context
from quarterdeck.backend.hazelcast.wire.route import TlsOptions, WatchSettings
from tests.hazelcast.wire.fake_member import FakeMember
from tests.hazelcast.wire.watching import QUICK, watching


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Whom members and clients trust."""
    return trustme.CA()


def serving(authority: trustme.CA, *names: str, mutual: bool = False) -> ssl.SSLContext:
    """A member's side."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names).configure_cert(context)
    if mutual:
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def written(authority: trustme.CA, folder: Path) -> tuple[Path, Path, Path]:
    """The authority's certificate, and one of a client with its key."""
    mine = authority.issue_cert("quarterdeck@example.com")
    files = folder / "authority.pem", folder / "certificate.pem", folder / "key.pem"
    authority.cert_pem.write_to_path(files[0])
    mine.cert_chain_pems[0].write_to_path(files[1])
    mine.private_key_pem.write_to_path(files[2])
    return files


async def stays(member: FakeMember, options: TlsOptions | None, state: str, words: str = "") -> None:
    """How it stands with a member in the end."""
    await member.start()
    async with watching(WatchSettings((member.address,), tls=options, pace=QUICK)) as watched:
        await watched.until(lambda: watched.states(member.address)[-1:] == [state])
        assert words in watched.reason(member.address)
    await member.stop()


async def test_a_member_whose_certificate_names_its_host_is_followed(authority: trustme.CA, tmp_path: Path) -> None:
    trusted, _, _ = written(authority, tmp_path)
    await stays(FakeMember(tls=serving(authority, "127.0.0.1")), TlsOptions(trusted), "connected")


async def test_a_certificate_of_another_name_is_accepted_when_that_is_asked_for(
    authority: trustme.CA, tmp_path: Path
) -> None:
    trusted, _, _ = written(authority, tmp_path)
    other = serving(authority, "hz.example.com")
    await stays(
        FakeMember(tls=other), TlsOptions(trusted), "refused", "its certificate is not accepted: IP address mismatch"
    )
    await stays(FakeMember(tls=other), TlsOptions(trusted, host_name="hz.example.com"), "connected")
    await stays(FakeMember(tls=other), TlsOptions(trusted, check_host_name=False), "connected")


async def test_a_member_that_was_found_by_a_name_has_that_in_its_certificate(
    authority: trustme.CA, tmp_path: Path
) -> None:
    trusted, _, _ = written(authority, tmp_path)
    member = FakeMember(tls=serving(authority, "localhost"))
    await member.start()
    found = Address(f"localhost:{port_of(member.address)}")
    async with watching(WatchSettings((found,), tls=TlsOptions(trusted), pace=QUICK)) as watched:
        await watched.until(lambda: watched.states(member.address)[-1:] == ["connected"])
        assert watched.watch.host_name_of(member.address) == "localhost"
    await member.stop()


async def test_a_certificate_of_ours_is_shown_where_it_is_wanted(authority: trustme.CA, tmp_path: Path) -> None:
    trusted, certificate, key = written(authority, tmp_path)
    mutual = serving(authority, "127.0.0.1", mutual=True)
    await stays(FakeMember(tls=mutual), TlsOptions(trusted, certificate, key), "connected")


async def test_members_without_tls_and_clients_without_it_are_told(authority: trustme.CA, tmp_path: Path) -> None:
    trusted, _, _ = written(authority, tmp_path)
    await stays(FakeMember(), TlsOptions(trusted), "refused")
    await stays(FakeMember(tls=serving(authority, "127.0.0.1")), None, "refused")


def test_files_of_no_use_are_named(authority: trustme.CA, tmp_path: Path) -> None:
    trusted, certificate, _ = written(authority, tmp_path)
    for options, name in (
        (TlsOptions(tmp_path / "none.pem"), "none.pem"),
        (TlsOptions(trusted, certificate, trusted), "certificate.pem"),
        (TlsOptions(trusted, key=certificate), "needs a certificate"),
    ):
        with pytest.raises(BadTlsFiles, match=name):
            client_context(options)


def test_a_file_that_only_the_environment_names_is_no_fault_of_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", "/nowhere/keys")
    with pytest.raises(FileNotFoundError, match="/nowhere/keys"):
        client_context(TlsOptions())
