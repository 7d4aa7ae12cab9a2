"""Access to members over HTTP: their URLs, our credentials, and the authorities whose certificates are trusted.

Secrets are read from files and the environment by the caller that makes `MemberCredentials`; here they only become headers.
"""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from quarterdeck.backend.core.address import (
    DEFAULT_PORT,
    Address,
    BadAddress,
    host_of,
    make_address,
    parse_port,
    port_of,
)

NOT_OURS = "something else listens there, no member of Quarterdeck"


def connection_failure_text(problem: BaseException) -> str:
    """Return the root cause of a failed request; several kinds of failure have no text of their own."""
    if isinstance(problem, httpx.TimeoutException):
        return "no answer in time"
    causes = list(_causes(problem))
    for cause in reversed(causes):
        match cause:
            case socket.gaierror():
                return "no such host"
            case ConnectionRefusedError():
                return "connection refused: no process listens there"
            case ssl.SSLCertVerificationError():
                return f"its certificate is not accepted: {cause.verify_message}; --ca-file names who signs it"
            case ssl.SSLError() if cause.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
                return "no TLS is spoken there; try http://"
            case ssl.SSLError():
                return f"TLS fails: {(cause.reason or str(cause)).lower().replace('_', ' ')}"
            case OSError() if cause.errno is not None and cause.strerror and not isinstance(cause, TimeoutError):
                return cause.strerror.lower()
    if isinstance(problem, httpx.RemoteProtocolError | httpx.ReadError):
        return "the connection ended without an answer, as where TLS is spoken; try https://"
    return str(problem) or type(problem).__name__


def no_process_listens(problem: BaseException) -> bool:
    """Return whether a request failed because the host has no process at that port."""
    return any(isinstance(cause, ConnectionRefusedError) for cause in _causes(problem))


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    while problem is not None:
        yield problem
        if isinstance(problem, BaseExceptionGroup):
            for exception in problem.exceptions:
                yield from _causes(exception)
        problem = problem.__cause__ or problem.__context__


SCHEMES = ("http", "https")
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


class BadUrl(ValueError):
    """A text that is no URL of a member. The message names the text, its mistake, and the right form."""


@dataclass(frozen=True)
class MemberCredentials:
    """Our credentials, and how members' certificates are checked. Everything empty: none, and the system's authorities."""

    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    """Wins over user and password."""
    authority: Path | None = None
    """Who signs the members' certificates; None: whom this machine believes."""
    certificate: Path | None = None
    """Our own, where members ask for one; its key is in the same file or in `key`."""
    key: Path | None = None

    def headers(self) -> dict[str, str]:
        """Return the header with our credentials; empty without any."""
        if self.token:
            return {"Authorization": f"Bearer {self.token}"}
        if self.user:
            pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        return {}

    def tls(self) -> ssl.SSLContext:
        """For https and wss. Raises OSError (ssl.SSLError among them) when a file cannot be used."""
        context = ssl.create_default_context(cafile=None if self.authority is None else str(self.authority))
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        return context


def member_url(text: str) -> str:
    """Return the URL of a member in its one form, ``scheme://host:port``. Without a scheme it is http, without a port 5701.

    Raises `BadUrl` when it is none, or has a password in it, which would be seen in the list of processes.
    """
    stripped = text.strip()
    try:
        parts = urlsplit(stripped if "://" in stripped else f"http://{stripped}")
        port = DEFAULT_PORT if parts.port is None else parts.port
    except ValueError as problem:
        raise BadUrl(f"{text!r} is not a URL: {problem}; write http://host:port") from problem
    if parts.username is not None or parts.password is not None:
        shown = f"{parts.scheme}://{parts.hostname or ''}:{port}"
        raise BadUrl(f"{shown} has a name or password in it; give them with --user and --password-file")
    if parts.scheme not in SCHEMES:
        raise BadUrl(f"{text!r} begins with {parts.scheme}://; members speak http:// and https://")
    if not parts.hostname:
        raise BadUrl(f"{text!r} names no host; write http://host:port")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise BadUrl(f"{text!r} has something after the port; write http://host:port alone")
    try:
        parse_port(str(port), text)
    except BadAddress as problem:
        raise BadUrl(str(problem)) from problem
    return f"{parts.scheme}://{make_address(parts.hostname, port)}"


def address_in(url: str) -> Address:
    """Host and port of a URL in its one form."""
    return Address(url.partition("://")[2])


def url_of_other(address: Address, known_url: str, known_address: Address) -> str:
    """Return the URL of the member at `address`, as the member at `known_address` implies, which was reached under `known_url`.

    Members speak HTTP on their own ports. Where the known one does not, others are looked for on the same HTTP port.
    """
    scheme = known_url.partition("://")[0]
    http_port = port_of(address_in(known_url))
    same_way = http_port == port_of(known_address) or host_of(address) == host_of(known_address)
    return f"{scheme}://{address if same_way else make_address(host_of(address), http_port)}"


def is_unencrypted(url: str) -> bool:
    """Whether requests to it can be read on the way."""
    return url.startswith("http://") and host_of(address_in(url)) not in LOOPBACK_HOSTS
