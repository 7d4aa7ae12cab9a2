"""Executes commands and reports how each one ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from quarterdeck.app.commands.command_text import describe
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.commands.catalogue import KEY, description_of
from quarterdeck.backend.core.commands import CallMap, Command, CommandRefused
from quarterdeck.backend.core.data.events import CallFinished
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.events.partitions import call_text
from quarterdeck.backend.picture.text.formatting import with_names


class CallKey(NamedTuple):
    """What distinguishes an operation on a map that was requested here from others, as far as events show it."""

    member: str
    operation: str
    map: str
    key: str


class CommandOutcome(Struct, frozen=True):
    """How one command ended, in words."""

    text: str
    error: bool


class Requests:
    """The commands that were requested of one session. `ended` is called with their ends, from any thread."""

    def __init__(
        self, session: ConsoleSession, ended: Callable[[Requests, str, BaseException | None, CallKey | None], None]
    ) -> None:
        self._session, self._ended = session, ended
        self._calls: set[CallKey] = set()
        self.last: tuple[Command, ...] = ()
        """What was asked for last."""

    def execute(self, commands: Sequence[Command], show_message: Callable[[str], None]) -> None:
        """Hand `commands` to the cluster, and show each one."""
        self.last = tuple(commands)
        for command in commands:
            what = describe(command)
            show_message(f"{what} …")
            call = call_key(command)
            if call is not None:
                self._calls.add(call)
            self._session.cluster.execute(command).add_done_callback(partial(self.finish, what, call))

    def finish(self, what: str, call: CallKey | None, future: Future[None]) -> None:
        """Report how `what` ended, according to `future`."""
        try:
            failure = future.exception()
        except CancelledError as cancelled:
            failure = cancelled
        self._ended(self, what, failure, call)

    def outcome(self, what: str, failure: BaseException | None, call: CallKey | None) -> CommandOutcome | None:
        """Return what to show about an end; None if an event will report it."""
        if failure is None:
            return None if call is not None else CommandOutcome(f"done: {what}", error=False)
        if call is not None:
            self._calls.discard(call)
        if isinstance(failure, CommandRefused):
            why = with_names(str(failure), self._session.picture.label_of)
            return CommandOutcome(f"{what} is refused: {why}", error=True)
        return CommandOutcome(f"{what} failed: {type(failure).__name__}: {failure}", error=True)

    def call_outcomes(self, records: Iterable[Record]) -> Iterable[CommandOutcome]:
        """Yield what to show about the calls requested here that ended with `records`, and about a load that is over."""
        if (load := self._session.load_ended) is not None:
            yield CommandOutcome(load.ending, error=not load.done)
        if not self._calls:
            return
        for record in records:
            event = record.event
            if not isinstance(event, CallFinished):
                continue
            key = CallKey(record.member, event.operation, event.map, event.key)
            if key in self._calls:
                self._calls.remove(key)
                text = with_names(call_text(event), self._session.picture.label_of)
                yield CommandOutcome(f"{record.member}: {text}", error=bool(event.problem))


def call_key(command: Command) -> CallKey | None:
    """Return what identifies the answer to `command`; None if it has no answer."""
    description = description_of(command)
    if not isinstance(command, CallMap) or KEY not in description.arguments:
        return None
    values = description.values(command)
    return CallKey(command.member, description.tag, values["map"], values["key"])
