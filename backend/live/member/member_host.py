"""One incarnation of one member, running: its clock, its host, its observers, and its work in this process."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol, Self

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId, UnreachableCause
from quarterdeck.backend.core.cluster_snapshot import CapturedMember, InFlight
from quarterdeck.backend.core.commands import CallMap, CommandRefused, KillAt, MemberOrder
from quarterdeck.backend.core.effects import Deliveries, Incarnations, carry_out
from quarterdeck.backend.core.events import Record, StrangerRefused
from quarterdeck.backend.core.inputs import START, TICK, Call, Input, PeerUnreachable, Receive
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.live.security.tls import OPEN, WireSecurity
from quarterdeck.backend.live.transport.frames import FrameTooLarge
from quarterdeck.backend.live.transport.limits import DEFAULT_LIMITS, DEFAULT_TIMEOUTS, Timeouts, TransportLimits
from quarterdeck.backend.live.transport.listener import HttpHandover
from quarterdeck.backend.live.transport.member_transport import MemberTransport
from quarterdeck.backend.live.transport.network import LiveNetwork


class RunClock(Struct, frozen=True):
    """The clock of a run: the same source as an asyncio loop's time, so deadlines convert exactly.

    It is the same in all processes of a machine, so that members that are processes share the clock of their run.
    """

    origin_ns: int
    """The machine's monotonic clock when this clock showed 0."""
    utc_origin_us: int
    """UTC at 0, in microseconds since 1970."""

    @classmethod
    def started_now(cls) -> Self:
        """Return a clock that shows 0."""
        return cls(time.monotonic_ns(), time.time_ns() // 1_000)

    def now_us(self) -> int:
        return (time.monotonic_ns() - self.origin_ns) // 1_000

    def loop_time(self, at_us: int) -> float:
        """`at_us` as the argument of an asyncio loop's ``call_at``, in seconds."""
        return (self.origin_ns + at_us * 1_000) / 1_000_000_000


MemberCommand = MemberOrder | CallMap | KillAt
"""The operations of a member for an operator. In a join list stand addresses only, no labels."""

AnswerCallback = Callable[[Answer], None]


class Host(Protocol):
    """One incarnation, running. It has ended when `HostObserver.ended` was called or `kill` has returned."""

    @property
    def label(self) -> str: ...

    @property
    def paused(self) -> bool: ...

    @property
    def joined(self) -> bool: ...

    async def start(self) -> None:
        """Bind the port and begin. Raises OSError, with nothing begun, when the port is not free."""

    async def execute(self, command: MemberCommand) -> None:
        """Do it, or begin to: a member that is to stop may first have to give its data away, and a call is not waited for.

        Raises `CommandRefused`, and then nothing was changed; TimeoutError when nothing is heard of the member.
        """

    def call(self, operation: Operation, watched: bool, on_answer: AnswerCallback) -> None:
        """Ask the member for an operation; `on_answer` is given the answer, once, also when the member ends."""

    async def captured_state(self) -> CapturedMember:
        """Return the member's whole state. Raises `CommandRefused` when it cannot be asked, TimeoutError without an answer."""

    async def wait_ended(self) -> bool:
        """Return when the incarnation has ended and the port is free: whether it ended by its own decision."""

    async def kill(self) -> None:
        """End it without a goodbye. All that it has recorded was handed over before this returns."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def links_changed(self, conditions: Sequence[LinkChanged]) -> None: ...


class HostObserver(Protocol):
    """Receives the events of hosts: a cluster, which records them."""

    def recorded(self, record: Record) -> None: ...

    def stranger_refused(self, refused: StrangerRefused) -> None: ...

    def ended(self, host: Host, crashed: bool) -> None:
        """Note that the incarnation has ended by its own decision, crashed, or was killed by others."""


_LOG = logging.getLogger(__name__)


class MemberHost:
    """Runs `machine` at its address on the running loop: a `Host`, and the `MemberProcess` of its effects.

    All methods belong to that loop's thread.
    """

    def __init__(
        self,
        label: str,
        cluster: str,
        machine: MemberMachine,
        clock: RunClock,
        network: LiveNetwork,
        observer: HostObserver,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        kill_point: KillAt | None = None,
        *,
        http: HttpHandover | None = None,
        security: WireSecurity = OPEN,
        limits: TransportLimits = DEFAULT_LIMITS,
        bind_host: str = "",
    ) -> None:
        """`kill_point` is where this incarnation is to end, if that was asked for before it began.

        The last four are as for `MemberTransport`. Raises `BadCertificate`.
        """
        self.label = label
        self.machine = machine
        self.ended = False
        self.kill_point = kill_point
        self._clock = clock
        self._observer = observer
        self._network = network
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._left = False
        self._numbers = itertools.count(1)
        self._calls: dict[int, AnswerCallback] = {}
        """Who waits for the answer to which call."""
        self.transport = MemberTransport(
            machine.address,
            cluster,
            lambda: machine.uuid,
            network,
            self,
            timeouts,
            http=http,
            security=security,
            limits=limits,
            bind_host=bind_host,
            joined=lambda: machine.joined,
        )
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_us = 0
        self._missed: list[PeerUnreachable] = []

    # What the operator does

    async def start(self) -> None:
        await self.transport.listen()
        self.step(START)

    async def execute(self, command: MemberCommand, because: RecordId | None = None) -> None:
        """Do it at once, or begin to; `because` is the record of the request."""
        match command:
            case CallMap(_, operation):
                self.call(operation, watched=True, on_answer=lambda _: None)  # events say how the call ends
            case KillAt():
                self.kill_point = command
            case _:
                self.step(command, because)

    def call(self, operation: Operation, watched: bool, on_answer: AnswerCallback) -> None:
        if self.ended:
            on_answer(Answer(problem=f"{self.label} has ended", untouched=True))
            return
        number = next(self._numbers)
        self._calls[number] = on_answer
        try:
            self.step(Call(number, operation, watched))
        except CommandRefused as refusal:
            self.answer(number, Answer(problem=str(refusal), untouched=True))

    async def captured_state(self) -> CapturedMember:
        """Return the whole state of the member, also while it is paused: then data waiting in its sockets is not in it."""
        now_us, now_seconds = self._clock.now_us(), self._loop.time()
        waiting = tuple(
            InFlight(self.machine.address, address, message, now_us + round(seconds * SECOND_US), because)
            for address, peer in self.transport.peers.items()
            for seconds, message, because in peer.waiting(now_seconds)
        )
        return CapturedMember(self.machine.snapshot(), now_us, waiting)

    async def wait_ended(self) -> bool:
        await self._over.wait()
        return self._left

    async def kill(self) -> None:
        self._finish(self.transport.abort)

    def pause(self) -> None:
        """Freeze: read nothing, send nothing, look at no clock. Sockets stay open and arriving data waits in them."""
        self.transport.pause()
        self._cancel_timer()

    def resume(self) -> None:
        """Go on: handle the data that has arrived meanwhile, and do the work that was due meanwhile."""
        self.transport.resume()
        missed, self._missed = self._missed, []
        for input in missed:
            self.step(input)
        if not self.ended:
            self._arm()

    def links_changed(self, conditions: Sequence[LinkChanged]) -> None:
        """Let the network, which has taken these conditions already, do so to what goes from here."""
        for condition in conditions:
            if condition.source == self.label:
                self.transport.link_changed(condition, self._network.address_of(condition.target))

    @property
    def paused(self) -> bool:
        return self.transport.paused

    @property
    def joined(self) -> bool:
        return self.machine.joined

    @property
    def calls_in_flight(self) -> int:
        return len(self._calls)

    # What the network brings

    def received(self, sender: Address, message: Message, because: RecordId | None) -> None:
        if self.ended:
            return
        machine = self.machine
        try:
            effects = machine.step(self._clock.now_us(), Receive(sender, message, because))
            if effects:
                carry_out(effects, self)
        except Exception:  # noqa: BLE001 - logged by _crash, which ends the member
            self._crash()
            return
        if machine.next_deadline < self._timer_due_us and not self.ended:
            self._arm()

    def unreachable(self, address: Address, reason: str, cause: UnreachableCause) -> None:
        input = PeerUnreachable(address, reason, cause)
        if self.paused:
            self._missed.append(input)
        else:
            self.step(input)

    def stranger_refused(self, refused: StrangerRefused) -> None:
        self._notify(self._observer.stranger_refused, refused)

    # Time

    def _arm(self) -> None:
        self._cancel_timer()
        self._timer_due_us = self.machine.next_deadline
        if self._timer_due_us < _FAR_AWAY_US:
            self._timer = self._loop.call_at(self._clock.loop_time(self._timer_due_us), self._time_is_up)

    def _time_is_up(self) -> None:
        """Deadlines that moved further away are only noticed here, so that receiving never has to move a timer."""
        self._timer = None
        if self.machine.next_deadline <= self._clock.now_us():
            self.step(TICK)
        else:
            self._arm()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def step(self, input: Input, because: RecordId | None = None) -> None:
        """Give the machine `input`, and carry out the effects.

        Raises `CommandRefused`; whatever else the machine raises ends the member.
        """
        if self.ended:
            return
        try:
            carry_out(self.machine.step(self._clock.now_us(), input, because), self)
        except CommandRefused:
            raise
        except Exception:  # noqa: BLE001 - logged by _crash, which ends the member
            self._crash()
        if not self.ended and not self.paused:
            self._arm()

    # Effects

    def transmit(self, deliveries: Deliveries, because: RecordId | None) -> None:
        for address, message in deliveries:
            try:
                self.transport.send(address, message, because)
            except FrameTooLarge as problem:  # what a peer has sent may be too long to be sent back, or on
                kind = message.__struct_config__.tag
                _LOG.error("member %s cannot send %s to %s: %s", self.label, kind, address, problem)

    def record(self, record: Record) -> None:
        self._notify(self._observer.recorded, record)

    def _notify(self, observe: Callable[..., None], *what: object) -> None:
        """Call an observer. Its exception is logged, since the member is healthy all the same."""
        try:
            observe(*what)
        except Exception:  # noqa: BLE001 - belongs to the observer
            _LOG.exception("an observer of member %s failed", self.label)

    def answer(self, call: int, answer: Answer) -> None:
        on_answer = self._calls.pop(call, None)
        if on_answer is not None:
            self._notify(on_answer, answer)

    def disconnect(self, incarnations: Incarnations | None) -> None:
        """Close the connections with these incarnations, or all when None, once everything before is sent."""
        self.transport.disconnect(incarnations)

    def halt(self, reason: str, *, failed: bool) -> None:
        if failed:
            _LOG.warning("member %s ends: %s", self.label, reason)
        self._end(crashed=False)

    def reach_kill_point(self) -> None:
        """End as a killed process ends."""
        self._end(crashed=True)

    def _crash(self) -> None:
        """End as a process that crashed: a state machine that raised cannot go on. The others live on."""
        _LOG.exception("member %s crashed", self.label)
        self._end(crashed=True)

    def _end(self, crashed: bool) -> None:
        """Report to the observer that this incarnation has ended, after closing or breaking off what it had to do with others."""
        if self.ended:
            return
        self._left = not crashed
        self._finish(self.transport.abort if crashed else self.transport.close)
        self._notify(self._observer.ended, self, crashed)

    def _finish(self, end_connections: Callable[[], None]) -> None:
        self.ended = True
        self._cancel_timer()
        self._over.set()
        calls, self._calls = self._calls, {}
        for on_answer in calls.values():
            on_answer(Answer(problem=f"{self.label} has ended"))
        end_connections()


_FAR_AWAY_US = 2**62
"""A deadline beyond this is none."""
