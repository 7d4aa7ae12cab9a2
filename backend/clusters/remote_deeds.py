"""Doing a command: all members that it concerns are asked, and what came of it is told as one outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from quarterdeck.backend.clusters.remote_client import MemberClient
from quarterdeck.backend.clusters.remote_routes import Contactable, errands
from quarterdeck.backend.core.commands import Command


class PartlyDone(Exception):
    """A command that concerns several members was done by some of them and not by others; the message names both."""


async def carry_out(client: MemberClient, command: Command, members: Mapping[str, Contactable]) -> None:
    """Raises `CommandRefused` when nothing was done, `PartlyDone` when some members have done it and some have not."""
    to_do = errands(command, members)
    asked = (client.ask(members[errand.label].url, errand.ask) for errand in to_do)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    outcomes = [(errand.label, answer) for errand, answer in zip(to_do, answers, strict=True)]
    failures = [(label, answer) for label, answer in outcomes if isinstance(answer, BaseException)]
    if len(failures) == len(outcomes):
        raise failures[0][1]
    if failures:
        done = ", ".join(label for label, answer in outcomes if isinstance(answer, bytes))
        raise PartlyDone(f"done by {done}; not by {'; '.join(f'{label}: {problem}' for label, problem in failures)}")
