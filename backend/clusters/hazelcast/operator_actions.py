"""What an operator may have real members do: each command as one request to one member, and what it answered in words.

The join list is edited over REST, which members have to be configured for. All else is asked over the client protocol, which by
default every client may that reaches the port.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from quarterdeck.backend.commands.catalogue import described
from quarterdeck.backend.core import commands
from quarterdeck.backend.core.address import Address, BadJoinList, make_address, parse_join_list
from quarterdeck.backend.core.commands import Command, CommandRefused, SetJoinList
from quarterdeck.backend.hazelcast.wire import requests as wire
from quarterdeck.backend.hazelcast.wire.connection import BadTlsFiles, NoAnswer, NotConnected, client_context
from quarterdeck.backend.hazelcast.wire.member_configuration import ReportedConfiguration
from quarterdeck.backend.hazelcast.wire.messages import Answer, ErrorAnswer
from quarterdeck.backend.hazelcast.wire.route import NotReached, WatchSettings

DIAGNOSTICS = {
    f"hazelcast.diagnostics.{name}": value
    for name, value in {
        "member-heartbeat.period.seconds": "1", "member-heartbeat.max-deviation-percentage": "50",
        "invocation.sample.period.seconds": "10", "invocation.slow.threshold.seconds": "5",
        "systemlog.enabled": "true", "systemlog.partitions": "true",
        **dict.fromkeys(
            ("metrics.period.seconds", "operation-heartbeat.seconds", "invocation-profiler.period.seconds",
             "operation-profiler.period.seconds", "memberinfo.period.seconds", "slowoperations.period.seconds"), "0",
        ),
    }.items()
}  # fmt: skip
"""The diagnostics that are written: those that no other source has. The rest, which fills logs, is off."""
MINUTE_US = 60_000_000
MOST_MINUTES = 24 * 60

REQUESTS: dict[type[Command], Callable[[Any], wire.Command]] = {
    commands.ChangeState: lambda command: wire.ChangeClusterState(command.state),
    commands.StopMember: lambda _: wire.ShutDownMember(),
    commands.StopCluster: lambda _: wire.ShutDownCluster(),
    commands.PromoteMember: lambda _: wire.PromoteLiteMember(),
    commands.Diagnose: lambda command: wire.SetDiagnostics(
        min(-(-command.for_us // MINUTE_US), MOST_MINUTES), DIAGNOSTICS
    ),
}
"""The request to a member for each command over the client protocol."""

CAN_DO = frozenset(described(kind).tag for kind in (*REQUESTS, SetJoinList, commands.ExpectMembers))
"""Tags of the commands that have a counterpart in members of Hazelcast."""

ANSWER_SECONDS = 60.0
"""How long they may take: a member that leaves gives all its data away first."""

REST_SECONDS = 10.0

JOIN_LIST_PATH = "/hazelcast/rest/config/tcp-ip/member-list"

REST_LINES = "hazelcast.network.rest-api: {enabled: true, endpoint-groups: {CLUSTER_WRITE: {enabled: true}}}"
"""The settings that a member's configuration needs, as YAML in one line."""

OLD_MEMBERS = (
    "as members before 5.2 do: they take no edit of the join list while they run; write it into their configuration and "
    "restart them"
)

Ask = Callable[[Address, wire.Command, float], Awaitable[Answer]]


class OperatorActions:
    """Does commands. `ask` asks a member over the client protocol; `configuration_of` gives what its configuration says.

    `host_name_of` gives the name that its certificate has to hold.
    """

    def __init__(
        self,
        ask: Ask,
        host_name_of: Callable[[Address], str],
        settings: WatchSettings,
        configuration_of: Callable[[Address], ReportedConfiguration | None],
    ) -> None:
        self._ask, self._host_name_of = ask, host_name_of
        self._settings, self._configuration_of = settings, configuration_of

    async def do(self, command: Command) -> str:
        """Do the command, and return the member's answer.

        Raises `CommandRefused` when it was not done, or that is not known.
        """
        if isinstance(command, SetJoinList):
            return await self._edit_join_list(Address(command.member), command.addresses)
        if type(command) in REQUESTS:
            return await self._request(command)
        raise CommandRefused("members of Hazelcast cannot do this")

    async def _request(self, command: Any) -> str:
        member = Address(command.member)
        try:
            answer = await self._ask(member, REQUESTS[type(command)](command), ANSWER_SECONDS)
        except NoAnswer as ended:
            if described(type(command)).ending and not isinstance(ended, NotConnected):
                return "the connection ended, as it does when a member leaves"
            raise CommandRefused(f"{member} gave no answer: {ended}; whether it was done is not known") from ended
        except TimeoutError as silent:
            problem = f"{member} gave no answer within {ANSWER_SECONDS:g} s; whether it was done is not known"
            raise CommandRefused(problem) from silent
        if isinstance(answer, ErrorAnswer):
            hint = "; management-center.trusted-interfaces leaves us out" if answer.access_denied else ""
            raise CommandRefused(f"{member} answered {answer.class_name.rpartition('.')[2]}: {answer.message}{hint}")
        return "done"

    # The join list, over REST

    async def _edit_join_list(self, member: Address, entries: tuple[str, ...]) -> str:
        if (configuration := self._configuration_of(member)) is None:
            raise CommandRefused(f"{member} has not reported its configuration, so how it finds others is not known")
        if not configuration.uses_join_list:
            raise CommandRefused(f"{member} finds others by {configuration.joiner}, not by a join list")
        if not configuration.may_edit_join_list():
            remedy = f"add to its configuration: {REST_LINES}, and restart it"
            raise CommandRefused(f"{member} has no REST for this; {remedy}")
        try:
            addresses = tuple(map(self._settings.route.address_of, parse_join_list(entries)))
        except BadJoinList as problem:
            raise CommandRefused(str(problem)) from problem
        return await self._post(member, configuration.cluster_name or self._settings.cluster_name, addresses)

    async def _post(self, member: Address, cluster_name: str, addresses: tuple[Address, ...]) -> str:
        credentials, tls = self._settings.credentials, self._settings.tls
        named = (cluster_name, "")
        if isinstance(credentials, wire.UserAndPassword):  # with security on, who may log in stands for the name
            named = (credentials.user, credentials.password)
        twice = [quote(quote(name, safe=""), safe="") for name in named]  # the product decodes both twice
        body = "&".join((*twice, quote(",".join(addresses), safe="")))
        try:
            endpoint = make_address(*await self._settings.route.reach(self._settings.endpoint_of(member)))
            # The files may be other ones than when the watch began.
            verify = True if tls is None else client_context(tls)
        except NotReached as none:
            raise CommandRefused(f"{member} is not reached: {none}") from none
        except (BadTlsFiles, OSError) as problem:
            raise CommandRefused(f"{member} was not asked: {problem}") from problem
        try:
            async with httpx.AsyncClient(timeout=REST_SECONDS, trust_env=False, verify=verify) as client:
                scheme = "http" if tls is None else "https"
                answer = await client.post(
                    f"{scheme}://{endpoint}{JOIN_LIST_PATH}",
                    content=body,
                    headers={"Content-Type": "text/plain"},
                    extensions={} if tls is None else {"sni_hostname": self._host_name_of(member)},
                )
        except (httpx.RemoteProtocolError, httpx.ReadError) as ended:  # as it closed before or after it had read all
            raise CommandRefused(f"{member} ended the connection instead of an answer, {OLD_MEMBERS}") from ended
        except httpx.HTTPError as problem:
            raise CommandRefused(f"{member} did not answer over REST: {problem or type(problem).__name__}") from problem
        return _rest_answer(member, answer)


class _RestAnswer(msgspec.Struct):
    status: str = ""
    message: str = ""


def _rest_answer(member: Address, answer: httpx.Response) -> str:
    try:
        reply = msgspec.json.decode(answer.content, type=_RestAnswer)
    except msgspec.DecodeError:
        reply = _RestAnswer()
    if not answer.is_success or reply.status != "success":
        said = reply.message.strip() or reply.status or "nothing"
        raise CommandRefused(f"{member} answered {answer.status_code}: {said}")
    return reply.message.strip() or "done"
