"""Members put together by hand, one message at a time, for tests of single rules."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from backend.core.address import Address, make_address
from backend.core.effects import Effect, Halt, Happened, Transmit
from backend.core.events import Event
from backend.core.member import Birth, MemberMachine
from backend.core.membership import heartbeats, publishing
from backend.core.membership.identity import Member
from backend.core.membership.member_list import MemberList
from backend.core.messages import Message
from backend.core.properties import SECOND_US, Settings

SETTINGS = Settings.of(preset="training")


def address_of(name: str) -> Address:
    """A is 10.0.0.1:5701, B is 10.0.0.2:5701, and so on."""
    return make_address(f"10.0.0.{ord(name) - ord('A') + 1}", 5701)


def name_of(address: Address) -> str:
    return chr(ord("A") + int(address.split(":")[0].rpartition(".")[2]) - 1)


def names_of(members: MemberList | Sequence[Address]) -> str:
    addresses = members.addresses if isinstance(members, MemberList) else members
    return "".join(map(name_of, addresses))


class Ensemble:
    """Members by their one-letter names. What they send waits in `sent` until the test delivers or drops it."""

    def __init__(self) -> None:
        self.now = 0
        self.lives = 0
        self.machines: dict[str, MemberMachine] = {}
        self.sent: list[tuple[str, str, Message]] = []
        self.events: dict[str, list[Event]] = {}
        self.halted: dict[str, Halt] = {}

    def born(self, name: str, join_list: str = "") -> MemberMachine:
        """A member that has not started yet."""
        birth = Birth("test", name, address_of(name), tuple(map(address_of, join_list)), SETTINGS)
        self.lives += 1
        self.machines[name] = MemberMachine(birth, Random(self.lives))
        self.events[name] = []
        return self.machines[name]

    def with_lists(self, **lists: tuple[int, str]) -> None:
        """Joined members, each with a version and the members it knows, in order of age; the first is their master."""
        for name in sorted({one for _, known in lists.values() for one in known} | lists.keys()):
            if name not in self.machines:
                self.born(name)
        for name, (version, known) in lists.items():
            state = self.machines[name]._state
            state.master = address_of(known[0])
            members = tuple(
                Member(address_of(one), self.machines[one].uuid, place) for place, one in enumerate(known, start=1)
            )
            publishing.install(state, 0, MemberList(version, members, "lineage"), state.master, "test")
            state.timers.set(heartbeats.HEARTBEAT, SETTINGS.heartbeat_interval_us)
            state.effects.clear()

    def start(self, name: str) -> None:
        self.take(name, self.machines[name].start(self.now))

    def receive(self, name: str, sender: str, message: Message) -> None:
        self.take(name, self.machines[name].receive(self.now, address_of(sender), message))

    def unreachable(self, name: str, other: str) -> None:
        self.take(name, self.machines[name].unreachable(self.now, address_of(other), "connection refused"))

    def suspect(self, name: str, others: str) -> None:
        """Let a member suspect others, as if its failure detector had said so."""
        from backend.core.membership import suspicion

        state = self.machines[name]._state
        suspicion.suspect_all(state, self.now, {address_of(other): "test" for other in others})
        self.take(name, self.machines[name]._taken())

    def pass_seconds(self, seconds: float, *names: str) -> None:
        """Let time pass for `names` (all by default), without delivering anything."""
        until = self.now + int(seconds * SECOND_US)
        while True:
            chosen = names or tuple(self.machines)
            due = [(self.machines[name].next_deadline, name) for name in chosen if name not in self.halted]
            at, name = min(due, default=(until + 1, ""))
            if at > until:
                break
            self.now = at
            self.take(name, self.machines[name].tick(at))
        self.now = until

    def deliver_all(self, *, dead: str = "", most: int = 500) -> None:
        """Deliver until nothing is left; what goes to `dead` is lost."""
        for _ in range(most):
            if not self.sent:
                return
            sender, receiver, message = self.sent.pop(0)
            if receiver not in dead and receiver not in self.halted:
                self.receive(receiver, sender, message)
        raise AssertionError(f"after {most} messages there are still some: {self.sent[:3]}")

    def messages(self, kind: type, *, to: str | None = None) -> list[Message]:
        return [message for _, receiver, message in self.sent if isinstance(message, kind) and to in (None, receiver)]

    def seen(self, name: str, kind: type) -> list[Event]:
        return [event for event in self.events[name] if isinstance(event, kind)]

    def list_of(self, name: str) -> tuple[int, str]:
        members = self.machines[name]._state.members
        assert members is not None
        return members.version, names_of(members)

    def master_of(self, name: str) -> str | None:
        master = self.machines[name]._state.master
        return name_of(master) if master else None

    def suspects_of(self, name: str) -> str:
        return "".join(sorted(map(name_of, self.machines[name]._state.suspicions)))

    def take(self, name: str, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Transmit(deliveries):
                    self.sent += [(name, name_of(to), message) for to, message in deliveries]
                case Happened(record):
                    self.events[name].append(record.event)
                case Halt():
                    self.halted[name] = effect
