"""Why a member cannot be reached, in words: what is wrong, and what to try where that is known."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import httpx

NOT_OURS = "something else listens there, no member of Quarterdeck"


def connection_failure_text(problem: BaseException) -> str:
    """Return what is at the bottom of a failed request; several kinds of failure have no text of their own."""
    if isinstance(problem, httpx.TimeoutException):
        return "no answer in time"
    causes = list(_causes(problem))
    for cause in reversed(causes):
        match cause:
            case socket.gaierror():
                return "no such host"
            case ConnectionRefusedError():
                return "connection refused: nobody listens there"
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


def nobody_listens(problem: BaseException) -> bool:
    """Return whether a request failed because the host has no process at that port."""
    return any(isinstance(cause, ConnectionRefusedError) for cause in _causes(problem))


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    """Yield the failure itself, then what has led to it."""
    while problem is not None:
        yield problem
        if isinstance(problem, BaseExceptionGroup):
            for exception in problem.exceptions:
                yield from _causes(exception)
        problem = problem.__cause__ or problem.__context__
