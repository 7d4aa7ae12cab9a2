"""Members put together by hand, one message at a time, for tests of single rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Self, TypeVar

from msgspec.structs import replace

from quarterdeck.backend.core.address import Address, make_address
from quarterdeck.backend.core.causes import Evidence
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.commands import ChangeState, SearchClusters, SetJoinList
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.effects import Disconnect, Effect, Halt, Happened, Transmit
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.inputs import START, TICK, Input, PeerUnreachable, Receive
from quarterdeck.backend.core.member import MemberConfiguration, MemberMachine
from quarterdeck.backend.core.membership.facts import EvidenceFound
from quarterdeck.backend.core.membership.failure_detection import heartbeats, master_confirmation
from quarterdeck.backend.core.membership.handlers import settle
from quarterdeck.backend.core.membership.messages import MasterIs
from quarterdeck.backend.core.membership.split_brain import cluster_search
from quarterdeck.backend.core.membership.undertakings import Following, Leading
from quarterdeck.backend.core.membership.views import publishing
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.partitions import master_role as master_role
from quarterdeck.backend.core.partitions.state import PartitionedMember
from quarterdeck.backend.core.partitions.table import table_recovery
from quarterdeck.backend.core.properties import SECOND_US, Settings
from tests.core.member_state import conclude, state_of

SETTINGS = Settings.of(preset="training")

MessageKind = TypeVar("MessageKind")
EventKind = TypeVar("EventKind")


def training_settings(**changed: Any) -> Settings:
    """The training preset with some fields of `Settings` changed."""
    return replace(SETTINGS, **changed)


def address_of(name: str) -> Address:
    """A is 10.0.0.1:5701, B is 10.0.0.2:5701, and so on."""
    return make_address(f"10.0.0.{ord(name) - ord('A') + 1}", 5701)


def name_of(address: Address) -> str:
    return chr(ord("A") + int(address.split(":")[0].rpartition(".")[2]) - 1)


def names_of(members: MemberList | Sequence[Address]) -> str:
    addresses = members.addresses if isinstance(members, MemberList) else members
    return "".join(map(name_of, addresses))


class SteppedCluster:
    """Members by their one-letter names. What they send waits in `sent` until the test delivers or drops it.

    `cut` holds one-way links that lose everything; `loses` says what else is lost, given sender, receiver and message.
    """

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.settings = settings
        self.now = 0
        self.incarnations = 0
        self.machines: dict[str, MemberMachine] = {}
        self.sent: list[tuple[str, str, Message]] = []
        self.records: dict[str, list[Record]] = {}
        self.events: dict[str, list[Event]] = {}
        self.halted: dict[str, Halt] = {}
        self.disconnected: list[tuple[str, str, str]] = []
        """Which member closed its connection with which other, and of what uuid."""
        self.cut: set[tuple[str, str]] = set()
        self.loses: Callable[[str, str, Message], bool] = lambda sender, receiver, message: False

    def born(self, name: str, join_list: str = "", *, lite: bool = False, cluster_name: str = "dev") -> MemberMachine:
        """A member that has not started yet."""
        known = tuple(map(address_of, join_list))
        member_configuration = MemberConfiguration(
            "test", name, address_of(name), known, self.settings, lite=lite, cluster_name=cluster_name
        )
        self.incarnations += 1
        self.machines[name] = MemberMachine(member_configuration, Random(self.incarnations))
        self.events[name] = []
        self.records[name] = []
        return self.machines[name]

    def starting(self, **join_lists: str) -> Self:
        """Members that have just started, each with its join list."""
        for name, join_list in join_lists.items():
            self.born(name, join_list)
        for name in join_lists:
            self.start(name)
        return self

    def lose_first(self, kind: type, count: int = 1) -> list[Message]:
        """Lose the first messages of this kind that are delivered from now on. Return those that were, as they are lost."""
        lost: list[Message] = []

        def loses(sender: str, receiver: str, message: Message) -> bool:
            is_lost = isinstance(message, kind) and len(lost) < count
            if is_lost:
                lost.append(message)
            return is_lost

        self.loses = loses
        return lost

    def with_lists(self, **lists: tuple[int, str]) -> Self:
        """Joined members, each with a version and the members it knows, in order of age; the first is their master."""
        for name in sorted({name for _, known in lists.values() for name in known} | lists.keys()):
            if name not in self.machines:
                self.born(name)
        for name, (version, known) in lists.items():
            state = state_of(self.machines[name])
            state.master = address_of(known[0])
            state.doing = Leading() if state.master == state.address else Following()
            members = tuple(
                Member(address_of(one), self.machines[one].uuid, place, self.inspect(one).lite)
                for place, one in enumerate(known, start=1)
            )
            publishing.install(
                state, self.now, MemberList(version, members, f"lineage {known[0]}"), state.master, "test"
            )
            settle(state, self.now)
            self._lead_since_long(state)
            state.last_round_us = self.now
            state.timers.set(heartbeats.HEARTBEAT, self.now + self.settings.heartbeat_interval_us)
            state.context.effects.clear()
        return self

    def _lead_since_long(self, state: PartitionedMember) -> None:
        """A master put together by hand has nothing to find out about partitions any more."""
        master_role.follow(state, self.now)
        if state.partitions.master_role is not None:
            state.partitions.master_role.recovery = None
            state.timers.clear(table_recovery.RECOVERY)

    def settled(self, names: str, version: int | None = None) -> Self:
        """A whole cluster whose members agree, with all the timers of members."""
        self.with_lists(**dict.fromkeys(names, (version or len(names), names)))
        for name in names:
            timers = self.machines[name].timers
            timers.set(publishing.PUBLISH, self.now + self.settings.list_publish_interval_us)
            timers.set(master_confirmation.CONFIRMATION, self.now + self.settings.master_confirmation_interval_us)
            timers.set(cluster_search.SEARCH, self.now + self.settings.merge_first_run_delay_us)
        return self

    def inspect(self, name: str) -> MemberState:
        """What a member knows and believes."""
        return self.machines[name].inspect()

    def tell(self, name: str, input: Input) -> None:
        """Give a member an input, and carry out the effects."""
        self.take(name, self.machines[name].step(self.now, input))

    def start(self, name: str) -> None:
        self.tell(name, START)

    def receive(self, name: str, sender: str, message: Message) -> None:
        self.tell(name, Receive(address_of(sender), message))

    def token_of(self, name: str) -> str:
        """A token that a member has just made."""
        return state_of(self.machines[name]).next_token()

    def search_token_of(self, joiner: str) -> str:
        """The token of a joiner's search; empty when it does not search."""
        search = state_of(self.machines[joiner]).search
        return search.token if search else ""

    def name_master(self, joiner: str, by: str, master: str) -> None:
        """`by` answers the joiner's question for the master."""
        self.receive(joiner, by, MasterIs(address_of(master), self.search_token_of(joiner)))

    def unreachable(self, name: str, other: str) -> None:
        self.tell(name, PeerUnreachable(address_of(other), "connection refused"))

    def conclude(self, name: str) -> None:
        """After a change that a test has made to a member's state: let it have its consequences."""
        self.take(name, conclude(self.machines[name], self.now))

    def suspect(self, name: str, others: str) -> None:
        """Let a member suspect others, as if its failure detector had said so."""
        found = {address_of(other): Evidence("unknown", "test") for other in others}
        state_of(self.machines[name]).report(EvidenceFound(found))
        self.conclude(name)

    def pass_seconds(self, seconds: float, *names: str) -> None:
        """Let time pass for `names` (all by default), without delivering anything."""
        until = self.now + round(seconds * SECOND_US)
        while True:
            chosen = names or tuple(self.machines)
            due = [(self.machines[name].next_deadline, name) for name in chosen if name not in self.halted]
            at, name = min(due, default=(until + 1, ""))
            if at > until:
                break
            self.now = at
            self.tell(name, TICK)
        self.now = until

    def edit_join_list(self, name: str, names: str) -> None:
        self.tell(name, SetJoinList(name, tuple(map(address_of, names))))

    def change_state(self, name: str, wanted: ClusterState) -> None:
        self.tell(name, ChangeState(name, wanted))

    def search(self, name: str) -> None:
        self.tell(name, SearchClusters(name))

    def cut_links(self, ones: str, others: str, *, one_way: bool = False) -> None:
        """Lose everything from each of `ones` to each of `others`, and back unless `one_way`."""
        for member in ones:
            for other in others:
                self.cut.add((member, other))
                if not one_way:
                    self.cut.add((other, member))

    def deliver_all(self, *, dead: str = "", most: int = 2000) -> None:
        """Deliver until nothing is left; what goes to `dead`, over a cut link or to somebody unknown is lost."""
        for _ in range(most):
            if not self.sent:
                return
            sender, receiver, message = self.sent.pop(0)
            if receiver in dead or receiver in self.halted or receiver not in self.machines:
                continue
            if (sender, receiver) not in self.cut and not self.loses(sender, receiver, message):
                self.receive(receiver, sender, message)
        raise AssertionError(f"after {most} messages there are still some: {self.sent[:3]}")

    def deliver(self, kind: type, *, to: str | None = None) -> None:
        """Deliver only the messages of one kind that wait now; all others go on waiting."""
        chosen = [delivery for delivery in self.sent if isinstance(delivery[2], kind) and to in (None, delivery[1])]
        assert chosen, f"no {kind.__name__} waits among {[type(delivery[2]).__name__ for delivery in self.sent]}"
        for each in chosen:
            self.sent.remove(each)
        for sender, receiver, message in chosen:
            self.receive(receiver, sender, message)

    def live(self, seconds: float, *, dead: str = "") -> None:
        """Let everybody but `dead` live: what is sent arrives within a tenth of a second, in order."""
        for _ in range(round(seconds * 10)):
            self.pass_seconds(0.1, *(name for name in self.machines if name not in dead))
            self.deliver_all(dead=dead)

    def drop(self, kind: type, *, to: str | None = None) -> int:
        """Lose the messages of one kind that wait now; how many there were."""
        before = len(self.sent)
        self.sent = [
            delivery for delivery in self.sent if not (isinstance(delivery[2], kind) and to in (None, delivery[1]))
        ]
        return before - len(self.sent)

    def messages(self, kind: type[MessageKind], *, to: str | None = None) -> list[MessageKind]:
        return [message for _, receiver, message in self.sent if isinstance(message, kind) and to in (None, receiver)]

    def seen(self, name: str, kind: type[EventKind]) -> list[EventKind]:
        return [event for event in self.events[name] if isinstance(event, kind)]

    def list_of(self, name: str) -> tuple[int, str]:
        members = self.inspect(name).members
        assert members is not None
        return members.version, names_of(members)

    def master_of(self, name: str) -> str | None:
        master = self.inspect(name).master
        return name_of(master) if master else None

    def suspects_of(self, name: str) -> str:
        return "".join(sorted(map(name_of, self.inspect(name).suspected_addresses)))

    def take(self, name: str, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Transmit(deliveries):
                    self.sent += [(name, name_of(to), message) for to, message in deliveries]
                case Happened(record):
                    self.events[name].append(record.event)
                    self.records[name].append(record)
                case Disconnect(incarnations):
                    self.disconnected += [(name, name_of(address), uuid) for address, uuid in incarnations or ()]
                case Halt():
                    self.halted[name] = effect
