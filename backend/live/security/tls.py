"""TLS between members, and towards clients of the HTTP face: contexts made of files, and made anew when the files change.

A member is asked for its certificate by whom it dials and, when that is `mutual`, by whom it calls; the certificate has to
name the host of the member's address. Clients of the HTTP face need none. Nothing older than TLS 1.2 is spoken. Until when a
certificate is good is read from its file: just so much of DER as leads to that (X.509, RFC 5280).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quarterdeck.backend.core.address import numeric_host
from quarterdeck.backend.live.security.file_watch import FileWatch

READ_BYTES = 32 * 1024
"""How much an encrypted connection reads at a time. asyncio gives each of them a buffer of 256 KiB from its first byte on, be it
an unidentified peer's, although TLS packs no more than 16 KiB together; it has no argument for that, only this number for all."""

OTHER_VERSION_ALERT = bytes((21, 3, 3, 0, 2, 2, 70))
"""The alert ``protocol_version`` (RFC 8446, 6.2): for a peer that begins with TLS at a port without it, or the reverse."""

_LOG = logging.getLogger(__name__)


class BadCertificate(ValueError):
    """Files of which no TLS can be made. The message names the field and the file, and the remedy."""


@dataclass(frozen=True)
class TlsFiles:
    """Where a member's certificate lies, as PEM: `certificate` with all between it and its authority, and its `key`.

    `authority` signs the certificates of the members; without it the authorities that the system trusts do.
    """

    certificate: Path
    key: Path
    authority: Path | None = None
    mutual: bool = True
    """Members have to show a certificate to the one they call."""

    @property
    def all(self) -> tuple[Path, ...]:
        return (self.certificate, self.key) if self.authority is None else (self.certificate, self.key, self.authority)


class Tls:
    """The two contexts of one member, always made of the latest good files.

    Raises `BadCertificate` when made of bad files; files that become bad later are logged, and the last good ones stay.
    """

    def __init__(self, files: TlsFiles, seconds: Callable[[], float] = time.monotonic) -> None:
        self.files = files
        self._watch = FileWatch(files.all, seconds)
        self._accepting, self._dialling = _contexts(files)
        SSLProtocol.max_size = min(SSLProtocol.max_size, READ_BYTES)

    @property
    def accepting(self) -> ssl.SSLContext:
        """For a peer that has called us."""
        self._look()
        return self._accepting

    @property
    def dialling(self) -> ssl.SSLContext:
        """For a member that we call; its certificate has to name the host that we called."""
        self._look()
        return self._dialling

    def _look(self) -> None:
        if not self._watch.changed():
            return
        try:
            self._accepting, self._dialling = _contexts(self.files)
        except BadCertificate as problem:
            _LOG.warning("the certificate has changed but cannot be used; the last good one stays: %s", problem)
        else:
            _LOG.info("the certificate was loaded anew from %s", self.files.certificate)


class AlertingContext(ssl.SSLContext):
    """Lets the other side know why a handshake fails, as TLS has it.

    asyncio closes the connection without sending the alert that OpenSSL has made ready. It is sent here, to the transport that
    `alerts_to` names while the handshake is begun.
    """

    alerts_to: ContextVar[asyncio.WriteTransport] = ContextVar("alerts_to")

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *given: Any, **named: Any) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, *given, **named)
        if isinstance(made, _AlertingObject):
            made.outgoing, made.transport = outgoing, self.alerts_to.get(None)
        return made


class _AlertingObject(ssl.SSLObject):
    outgoing: ssl.MemoryBIO
    transport: asyncio.WriteTransport | None

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as problem:
            alert = self.outgoing.read()
            if not alert and problem.reason == "WRONG_VERSION_NUMBER":  # OpenSSL has no word for who begins without TLS
                alert = OTHER_VERSION_ALERT
            if alert and self.transport is not None:
                self.transport.write(alert)
            raise


def certificate_mismatch(certificate: Mapping[str, Any] | None, host: str) -> str | None:
    """Why the one who shows `certificate` cannot be the member at `host`, or None when it can.

    `certificate` as `ssl.SSLSocket.getpeercert` gives it, already proven to be signed by the authority; None or empty when
    none was shown.
    """
    if not certificate:
        return "showed no certificate"
    names = certificate.get("subjectAltName", ())
    if any(_names(kind, name, host) for kind, name in names):
        return None
    shown = ", ".join(name for _, name in names[:5]) or "no host"
    return f"gives an address on {host}, but its certificate is for {shown}"


def is_tls_refusal(problem: ssl.SSLError) -> bool:
    """Return whether one side refuses the other by the rules of TLS. If not, the other side spoke no TLS, or hung up."""
    said = (problem.reason or "").upper()
    return isinstance(problem, ssl.SSLCertVerificationError) or "ALERT" in said or "CERTIFICATE" in said


def tls_reason(problem: ssl.SSLError) -> str:
    """Return the failure in words: the system's, without the place in its source."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"TLS: its certificate is not accepted: {problem.verify_message}"
    said = (problem.reason or str(problem)).replace("_", " ").lower()
    alert = said.partition("alert ")[2]
    if alert == "protocol version" or said == "wrong version number":
        return f"TLS: the other side speaks no TLS, or none that is spoken here ({said})"
    if alert == "unknown ca" or "certificate" in alert:
        return f"TLS: it does not accept the certificate of this member: {alert}"
    return f"TLS: {said}"


def _names(kind: str, name: str, host: str) -> bool:
    number = numeric_host(host)
    if number is not None:
        return kind == "IP Address" and numeric_host(name.strip()) == number
    if kind != "DNS":
        return False
    name, host = name.lower().rstrip("."), host.lower().rstrip(".")
    if name.startswith("*."):
        return "." in name[2:] and host.partition(".")[2] == name[2:]
    return name == host


def _contexts(files: TlsFiles) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    accepting = AlertingContext(ssl.PROTOCOL_TLS_SERVER)
    accepting.sslobject_class = _AlertingObject
    dialling = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context in (accepting, dialling):
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        _load_certificate(context, files)
        _load_authority(context, files)
    accepting.verify_mode = ssl.CERT_OPTIONAL if files.mutual else ssl.CERT_NONE
    return accepting, dialling


def _load_certificate(context: ssl.SSLContext, files: TlsFiles) -> None:
    for setting, path in (("certificate", files.certificate), ("key", files.key)):
        if not path.is_file():
            raise BadCertificate(f"network.ssl.{setting}: there is no file {path}")
    try:
        context.load_cert_chain(files.certificate, files.key, password=lambda: b"")
    except ssl.SSLError as problem:
        if problem.reason == "KEY_VALUES_MISMATCH":
            raise BadCertificate(
                f"network.ssl.key: {files.key} is not the key of {files.certificate}; give the two that belong together"
            ) from problem
        raise BadCertificate(
            f"network.ssl.certificate: {files.certificate} with {files.key} cannot be read: give PEM files, the key"
            " without a password"
        ) from problem
    except OSError as problem:
        raise BadCertificate(f"network.ssl.key: {files.key} cannot be read: {problem.strerror}") from problem


def _load_authority(context: ssl.SSLContext, files: TlsFiles) -> None:
    if files.authority is None:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(files.authority)
    except ssl.SSLError as problem:
        raise BadCertificate(
            f"network.ssl.authority: {files.authority} holds no certificate; give a PEM file"
        ) from problem
    except OSError as problem:
        raise BadCertificate(f"network.ssl.authority: {files.authority}: {problem.strerror}") from problem


@dataclass(frozen=True)
class WireSecurity:
    """Everything empty: any member of a cluster with our name is one of us, and others can read messages on the way."""

    secret: str = field(default="", repr=False)
    """Shared by all members of the cluster; proven by challenge and response, never sent
    (`backend.live.security.cluster_secret`).
    """
    tls: TlsFiles | None = None
    """All connections are encrypted, HTTP too."""


OPEN = WireSecurity()


BEGINNING = "-----BEGIN CERTIFICATE-----"
END = "-----END CERTIFICATE-----"
EXPLICIT_VERSION = 0xA0
UTC_TIME = 0x17
FIELDS_BEFORE_VALIDITY = 3
"""Its serial number, how it is signed, and by whom. The version before them may be left out."""


def not_after(path: Path) -> datetime | None:
    """Return when the first certificate in the PEM file `path` expires; None when none can be read."""
    try:
        text = path.read_text()
        first = text[text.index(BEGINNING) : text.index(END) + len(END)]
        return _not_after(ssl.PEM_cert_to_DER_cert(first))
    except (OSError, ValueError, IndexError):
        return None


def _not_after(der: bytes) -> datetime:
    _, at, _ = _element(der, 0)  # the certificate
    _, at, _ = _element(der, at)  # what is signed of it
    tag, _, end = _element(der, at)
    if tag == EXPLICIT_VERSION:
        at = end
    for _ in range(FIELDS_BEFORE_VALIDITY):
        _, _, at = _element(der, at)
    _, at, _ = _element(der, at)  # the validity: from when, until when
    _, _, at = _element(der, at)
    tag, begin, end = _element(der, at)
    form = "%y%m%d%H%M%SZ" if tag == UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(der[begin:end].decode("ascii"), form).replace(tzinfo=UTC)


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    tag, length = der[at], der[at + 1]
    begin = at + 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(der[begin : begin + size], "big")
        begin += size
    return tag, begin, begin + length
