"""One session with a running cluster: which members there are, what each answers, and names in place of addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

from quarterdeck.backend.clusters.remote.discovery import DiscoveredMember, discover
from quarterdeck.backend.clusters.remote.member_client import (
    BadResponse,
    MemberClient,
    RequestRefused,
    Unreachable,
)
from quarterdeck.backend.clusters.remote.remote_commands import CommandTarget, PartiallyDone, execute_command
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands.commands import Command, CommandRefused
from quarterdeck.backend.picture.text.formatting import one_line, with_names
from quarterdeck.cli.configuration.connection import ConnectionTarget
from quarterdeck.cli.exits import CommandFailed, ExitCode, failing_as

if TYPE_CHECKING:
    from quarterdeck.backend.member_api.beliefs import ThisMember

Result = TypeVar("Result")
Answer = TypeVar("Answer")

BAD_INPUT_STATUSES = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)


class ClusterSession:
    """The members that were found. Those with the same label go by their addresses too, as in a remote cluster."""

    def __init__(self, client: MemberClient, discovered_members: Sequence[DiscoveredMember]) -> None:
        self._client = client
        self.discovered_members: dict[str, DiscoveredMember] = {}
        """By label, or by address of those that do not answer, which stand last."""
        for discovered in sorted(discovered_members, key=lambda one: one.facts is None):
            label = one_line(discovered.label)
            self.discovered_members[f"{label}@{discovered.address}" if label in self.discovered_members else label] = (
                discovered
            )
        self._labels = {one.address: label for label, one in self.discovered_members.items()}

    @property
    def present(self) -> dict[str, ThisMember]:
        """What those who answered say of themselves."""
        return {label: one.facts for label, one in self.discovered_members.items() if one.facts is not None}

    @property
    def masters(self) -> tuple[str, ...]:
        return tuple(label for label, facts in self.present.items() if facts.is_master)

    def name_of(self, address: str | None) -> str:
        """Return the label of the member at `address`; the address itself when no member was met there."""
        return self._labels.get(Address(address), address) if address else ""

    def named(self, text: str) -> str:
        """`text` with names in place of addresses."""
        return with_names(text, self.name_of)

    def member(self, wanted: str | None, what: str) -> str:
        """Return the member to ask for `what`: the one that is wanted, else the only master.

        Raises:
            CommandFailed: There is no such member, or several lead.
        """
        if wanted is not None:
            label = wanted if wanted in self.present else self.name_of(wanted)
            if label not in self.present:
                known = ", ".join(self.present)
                raise CommandFailed(ExitCode.BAD_INPUT, f"--member {wanted}: no such member answers; there are {known}")
            return label
        if len(self.masters) == 1:
            return self.masters[0]
        if not self.masters:
            raise CommandFailed(ExitCode.BAD_INPUT, f"no master was found; say with --member who is asked for {what}")
        names = ", ".join(self.masters)
        raise CommandFailed(
            ExitCode.BAD_INPUT, f"there are several clusters, led by {names}; say with --member which one {what} is for"
        )

    async def get(self, label: str, path: str, answer: type[Answer]) -> Answer:
        """Return what the member answers at `path`.

        Raises:
            CommandRefused: It does not answer.
        """
        return await self._client.get(self.discovered_members[label].url, path, answer)

    async def get_all(self, labels: Sequence[str], path: str, answer: type[Answer]) -> Mapping[str, Answer]:
        """Return what each of them answers.

        Raises:
            CommandRefused: One does not; the first is named.
        """
        answers = await asyncio.gather(*(self.get(label, path, answer) for label in labels))
        return dict(zip(labels, answers, strict=True))

    async def do(self, command: Command) -> None:
        """Carry out the command.

        Raises:
            CommandRefused: Nothing was done.
            PartiallyDone: Only some members have done it.
        """
        members = {
            label: CommandTarget(label, one.address, one.url, one.why) for label, one in self.discovered_members.items()
        }
        await execute_command(self._client, command, members)


def run_session(connection: ConnectionTarget, collect: Callable[[ClusterSession], Awaitable[Result]]) -> Result:
    """Return what `collect` finds on a visit.

    Raises:
        CommandFailed: It fails, or no member answers.
    """
    connection.require_named().require_ours()

    async def session() -> Result:
        with failing_as(ExitCode.BAD_INPUT, OSError, about="the certificates cannot be used"):
            client = MemberClient(connection.access())
        async with client:
            discovered_members = await discover(client, connection.urls)
            if all(discovered_member.facts is None for discovered_member in discovered_members):
                refused = any(discovered_member.refused for discovered_member in discovered_members)
                code = ExitCode.REFUSED if refused else ExitCode.UNREACHABLE
                raise CommandFailed(code, "; ".join(discovered_member.why for discovered_member in discovered_members))
            return await collect(ClusterSession(client, discovered_members))

    try:
        return asyncio.run(session())
    except RequestRefused as refusal:
        code = ExitCode.BAD_INPUT if refusal.status in BAD_INPUT_STATUSES else ExitCode.REFUSED
        raise CommandFailed(code, str(refusal)) from refusal
    except (Unreachable, BadResponse) as problem:
        raise CommandFailed(ExitCode.UNREACHABLE, str(problem)) from problem
    except (CommandRefused, PartiallyDone) as refusal:
        raise CommandFailed(ExitCode.REFUSED, str(refusal)) from refusal
