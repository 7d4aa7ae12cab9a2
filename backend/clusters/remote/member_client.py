"""One HTTP client for all members of a cluster: their answers about themselves, and about the others that they know.

It sends requests, and turns what can go wrong into errors for people.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable
from typing import Literal, Self, TypeVar

import httpx
import msgspec
from msgspec import Struct, convert
from msgspec.json import Decoder

from quarterdeck.backend.clusters.remote import access
from quarterdeck.backend.clusters.remote.access import NOT_OURS, connection_failure_text, url_of_other
from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import TableChanged
from quarterdeck.backend.member_api.answers import ROOT, Fail, RecordPage
from quarterdeck.backend.member_api.beliefs import Table, ThisMember
from quarterdeck.backend.picture.text.formatting import one_line

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

ANSWER_SECONDS = 5.0
"""How long a member may take for an answer that it knows already."""

COMMAND_TIMEOUT_SECONDS = 600.0
"""How long a member may take for work: to give all its data away, or an operation with many tries."""

Decoded = TypeVar("Decoded")


class Unreachable(CommandRefused):
    """The member gave no answer: its process is gone, the network fails, or it is too slow."""


class RequestRefused(CommandRefused):
    """The member has answered that it does not do it, with this HTTP status; the message is its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class BadResponse(CommandRefused):
    """The member failed with an error of its own, or its answer is none of this interface."""


class HttpRequest(Struct, frozen=True):
    """One request to one member: `path` below the interface's root, `body` as JSON."""

    method: Method
    path: str
    body: object = None
    may_end: bool = False
    """Whether the member may be gone before it has answered: then it has done the request."""
    may_take_long: bool = False
    """Whether it may have to wait for others before it can answer."""


class MemberClient:
    """Use it within one event loop, and close it there."""

    def __init__(self, credentials: access.MemberCredentials, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        """Prepare to ask members. Raises `OSError` when a file that `credentials` name cannot be used."""
        self.headers = credentials.headers()
        self.tls: ssl.SSLContext = credentials.tls()
        self._answer_seconds = answer_seconds
        # Members stand in the operator's own network: a proxy of the environment is not for them.
        self._http = httpx.AsyncClient(
            headers=self.headers, verify=self.tls, timeout=answer_seconds, trust_env=False, follow_redirects=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, url: str, path: str, answer: type[Decoded]) -> Decoded:
        """Return the answer of the member at `url` at `path`. Raises as `send` does."""
        return decoded(Decoder(answer), await self.send(url, HttpRequest("GET", path)), url)

    async def facts(self, url: str) -> ThisMember:
        """Return the identity of the member at `url`. Raises as `send` does."""
        return await self.get(url, "/member", ThisMember)

    async def records(self, url: str, after: tuple[str, int] | None, limit: int) -> RecordPage:
        """At most `limit` records after the one of this uuid and number. Raises as `send` does."""
        where = f"after_uuid={after[0]}&after_seq={after[1]}&" if after else ""
        return await self.get(url, f"/records?{where}limit={limit}", RecordPage)

    async def send(self, url: str, request: HttpRequest) -> bytes:
        """Send the request, and return the body of the answer.

        Raises `RequestRefused`, `Unreachable`, or `BadResponse` when the answer cannot be read.
        """
        content = None if request.body is None else msgspec.json.encode(request.body)
        seconds = COMMAND_TIMEOUT_SECONDS if request.may_take_long or request.method != "GET" else self._answer_seconds
        try:
            answer = await self._http.request(
                request.method,
                f"{url}{ROOT}{request.path}",
                content=content,
                headers={"Content-Type": "application/json"} if content is not None else None,
                timeout=httpx.Timeout(self._answer_seconds, read=seconds),
            )
        except (httpx.ReadError, httpx.RemoteProtocolError) as cut:
            if request.may_end:
                return b"{}"
            raise Unreachable(f"{url}: {connection_failure_text(cut)}") from cut
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise Unreachable(f"{url}: {connection_failure_text(problem)}") from problem
        if answer.is_success:
            return answer.content
        raise _refusal(url, answer)


def decoded(decoder: Decoder[Decoded], content: bytes | str, url: str) -> Decoded:
    """Decode the answer of the member at `url`. Raises `BadResponse` when it cannot be read."""
    try:
        return decoder.decode(content)
    except msgspec.DecodeError as problem:
        if content.lstrip()[:1] not in (b"{", b"[", "{", "["):
            raise BadResponse(f"{url}: {NOT_OURS}") from problem
        raise BadResponse(f"{url} does not speak the language of this version: {problem}") from problem


WRONG_CREDENTIALS = "the name, password or token that was given is not one of this member's"


def _refusal(url: str, answer: httpx.Response) -> CommandRefused:
    try:
        fail = msgspec.json.decode(answer.content, type=Fail)
    except msgspec.DecodeError:
        if answer.status_code == httpx.codes.NOT_FOUND or answer.is_redirect:
            return BadResponse(f"{url}: {NOT_OURS}")
        fail = Fail(f"{answer.status_code} {answer.reason_phrase}")
    text = one_line("; ".join(filter(None, (fail.message, fail.hint))))  # any program may have answered
    status = answer.status_code
    if status == httpx.codes.UNAUTHORIZED:  # the member's own hint is for users of curl
        given = "authorization" in answer.request.headers
        hint = WRONG_CREDENTIALS if given else "give --user and --password-file, or --token-file"
        return RequestRefused(status, f"{url}: {one_line(fail.message)}; {hint}")
    if answer.is_server_error and status not in (httpx.codes.SERVICE_UNAVAILABLE, httpx.codes.GATEWAY_TIMEOUT):
        return BadResponse(f"{url} failed with {status}: {text}")
    return RequestRefused(status, text)


def urls_known_of(facts: ThisMember, url: str) -> Iterable[str]:
    """Where a member thinks that others of its cluster may be, apart from those on its list."""
    listed = {member.address for member in facts.members}
    known_of = dict.fromkeys((*facts.join_list, *facts.remembered))
    return [url_of_other(address, url, facts.address) for address in known_of if address not in listed]


async def present_state(client: MemberClient, url: str, *, started: bool, rows: bool) -> list[Record]:
    """Ask the member at `url` for its state now, and return it as records.

    With `started` they begin with the start of its incarnation, for a reader that knows nothing of it. Without `rows` its table
    is a version and a digest. Raises `CommandRefused` when it does not answer.
    """
    facts = await client.facts(url)
    found: list[Event] = []
    if started:
        lite = any(member.lite for member in facts.members if member.uuid == facts.uuid)
        found.append(events.MemberStarted(facts.address, lite, facts.join_list))
    if facts.members and facts.master is not None:
        listed = tuple(convert(member, Member, from_attributes=True) for member in facts.members)
        found.append(
            events.ListInstalled(
                version=facts.list_version,
                lineage=facts.lineage,
                master=facts.master,
                members=listed,
                author=facts.master,
                cause="unknown",
            )
        )
    elif facts.master is not None:
        found.append(events.MasterChanged(facts.master, ""))
    if facts.master == facts.address and not facts.is_master:
        found.append(events.ClaimStarted(facts.list_version, (), ()))
    found.append(events.JoinListChanged(facts.join_list, 0, facts.address))
    found.append(events.ClusterStateChanged(facts.cluster_state, ""))
    if facts.table_version and rows:
        async for page in table_pages(client, url):
            changed = (page.table_version, page.digest, page.partitions, page.holders, page.rows)
            try:
                found.append(TableChanged(*changed, facts.uuid, "published"))
            except ValueError as problem:
                raise BadResponse(f"{url}: {problem}") from problem
    elif facts.table_version:
        found.append(TableChanged(facts.table_version, facts.table_digest, 0, (), (), facts.uuid, "published"))
    return [Record(facts.run, facts.label, facts.uuid, 0, facts.now_us, facts.utc_us, event) for event in found]


async def table_pages(client: MemberClient, url: str) -> AsyncIterator[Table]:
    """Yield the table of the member at `url`, some thousand rows at a time."""
    start: int | None = 0
    while start is not None:
        page = await client.get(url, f"/table?from={start}", Table)
        yield page
        start = page.next
