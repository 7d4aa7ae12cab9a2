"""A peer that speaks the protocol badly: well-typed messages of every kind, made up or altered, to simulated members."""

from __future__ import annotations

import dataclasses
import random
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.core.commands import (
    ChangeState,
    CommandRefused,
    Heal,
    KillMember,
    Partition,
    SetJoinList,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.effects import Deliveries
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.inputs import Receive
from quarterdeck.backend.core.membership.messages import Leave
from quarterdeck.backend.core.messages import MESSAGE_KINDS, Message
from quarterdeck.backend.core.operations import Answer, Put
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.simulation.checked_machine import CheckedMachine
from quarterdeck.backend.simulation.virtual_time.node import SimulatedNode
from quarterdeck.backend.simulation.virtual_time.world import World

EDGES = (-(1 << 63), -2, -1, 0, 1, 2, 3, 7, 1 << 31, (1 << 32) + 1, 1 << 53, 1 << 62, (1 << 63) - 1, (1 << 64) - 1)
PAYLOADS = (b"", b"\x00", b"\x94\xa4head\x92\xa0\x00\x00\x00\x00", b"\x93\xa7entries\xa1m\x90", b"\xff" * 9)


@cache
def type_of(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def known_values(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the texts, numbers and structs in plain data."""
    if isinstance(value, bool) or value is None or depth > 7:
        return
    if isinstance(value, str | int):
        yield value
    elif isinstance(value, msgspec.Struct):
        yield value
        for name in value.__struct_fields__:
            yield from known_values(getattr(value, name), depth + 1)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name not in ("context", "settings", "timers"):
                yield from known_values(getattr(value, field.name, None), depth + 1)
    elif isinstance(value, dict):
        for key, one in list(value.items())[:8]:
            yield from known_values(key, depth + 1)
            yield from known_values(one, depth + 1)
    elif isinstance(value, tuple | list | set | frozenset):
        for one in sorted(value, key=repr)[:8] if isinstance(value, set | frozenset) else list(value)[:8]:
            yield from known_values(one, depth + 1)


class MessageMaker:
    """Makes messages of edge values, and of the values that the members know: their uuids, tokens, versions and structs."""

    def __init__(self, draws: random.Random) -> None:
        self.draws = draws
        self.texts: list[str] = ["", "x"]
        self.numbers: list[int] = [0]
        self.structs: dict[type, list[Any]] = {}

    def learn(self, value: Any) -> None:
        known = list(known_values(value))
        self.texts = ["", "x", *{one for one in known if isinstance(one, str)}]
        self.texts.sort()
        self.numbers = sorted({one for one in known if isinstance(one, int)}) or [0]
        self.structs = {}
        for one in known:
            if isinstance(one, msgspec.Struct):
                self.structs.setdefault(type(one), []).append(one)

    def message(self) -> Message:
        kind = self.draws.choice(list(MESSAGE_KINDS.values()))
        made = self.made(type_of(kind))
        if self.draws.random() < 0.5 and self.structs.get(kind):
            made = self.altered(self.draws.choice(self.structs[kind]))
        if isinstance(made, Leave):  # whoever may stop the whole cluster is an operator, not a peer that is wrong
            made = msgspec.structs.replace(made, all_stop=False)
        return made

    def altered(self, struct: Any) -> Any:
        """Return `struct` with one field, maybe deep in it, made anew."""
        fields = type_of(type(struct)).fields  # type: ignore[attr-defined]
        if not fields:
            return struct
        field = self.draws.choice(fields)
        value = getattr(struct, field.name)
        if isinstance(value, msgspec.Struct) and self.draws.random() < 0.7:
            changed = self.altered(value)
        else:
            changed = self.made(field.type)
        return msgspec.structs.replace(struct, **{field.name: changed})

    def made(self, kind: inspect.Type) -> Any:
        draws = self.draws
        match kind:
            case inspect.StructType():
                known = self.structs.get(kind.cls)
                if known and draws.random() < 0.6:
                    return draws.choice(known)
                return kind.cls(**{field.name: self.made(field.type) for field in kind.fields})
            case inspect.IntType():
                near = draws.choice(self.numbers) + draws.choice((-1, 0, 0, 1))
                return draws.choice(EDGES) if draws.random() < 0.3 else near
            case inspect.StrType() | inspect.CustomType():
                return draws.choice(self.texts)
            case inspect.BytesType():
                return draws.choice(PAYLOADS)
            case inspect.BoolType():
                return draws.random() < 0.5
            case inspect.NoneType():
                return None
            case inspect.LiteralType():
                return draws.choice(kind.values)
            case inspect.UnionType():
                return self.made(draws.choice(kind.types))
            case inspect.VarTupleType():
                return tuple(self.made(kind.item_type) for _ in range(draws.choice((0, 1, 1, 2, 5))))
            case inspect.TupleType():
                return tuple(map(self.made, kind.item_types))
            case inspect.FrozenSetType():
                return frozenset(self.made(kind.item_type) for _ in range(draws.choice((0, 1, 2))))
            case inspect.ListType():
                return [self.made(kind.item_type) for _ in range(draws.choice((0, 1, 2)))]
            case inspect.DictType():
                return {self.made(kind.key_type): self.made(kind.value_type)}
        raise AssertionError(kind)


class Nowhere(dict[Address, SimulatedNode]):
    """The nodes by address; a peer may name addresses of which no member has heard, and at none of them anything listens."""

    nowhere: SimulatedNode

    def __missing__(self, address: Address) -> SimulatedNode:
        return self.nowhere


SETTINGS = Settings.of(
    {"hazelcast.partition.count": 12, "hazelcast.merge.first.run.delay.seconds": 5}
    | {"hazelcast.merge.next.run.delay.seconds": 5},
    preset="training",
)
MOST_RECENT = 300


class AttackedCluster:
    """A simulated cluster of a, b, c and d, in which one of them, or the stranger x, speaks the protocol badly."""

    def __init__(self, seed: int, hostile: str, others: str = "abcd") -> None:
        self.draws = random.Random(f"hostile/{seed}/{hostile}")
        self.records: list[Record] = []
        self.answers: dict[int, Answer] = {}
        self.world = World(
            [*others, "x"],
            seed=seed,
            settings=SETTINGS,
            join_lists=dict.fromkeys([*others, "x"], others),
            on_record=self.records.append,
            on_answer=self.answers.__setitem__,
        )
        self.world.machine_kind = CheckedMachine
        network = self.world.network
        network.make_room([Address("nowhere")])
        nodes = Nowhere(network.nodes)
        nodes.nowhere = network.nodes[Address("nowhere")]
        network.nodes = nodes
        self.hostile = self.world.nodes[hostile]
        self.maker = MessageMaker(self.draws)
        self.others = [label for label in others if label != hostile]
        self.recent: deque[Message] = deque(maxlen=MOST_RECENT)
        self.sent = 0
        transmit = network.transmit

        def noted(sender: SimulatedNode, deliveries: Deliveries, because: RecordId | None) -> None:
            self.recent.extend(message for _, message in deliveries[:2])
            transmit(sender, deliveries, because)

        network.transmit = noted  # type: ignore[method-assign]

    def attack(self, count: int, label: str) -> None:
        """Have the hostile peer send messages to a member, all at this moment."""
        node = self.world.nodes[label]
        if node.machine is None:
            return
        self.maker.learn((node.machine.inspect(), *self.draws.sample(list(self.recent), min(30, len(self.recent)))))
        for _ in range(count):
            if node.machine is None:
                return
            self.sent += 1
            message = self.maker.message()
            try:
                self.world._deliver(node, self.hostile, Receive(self.hostile.address, message))
            except Exception as fault:
                fault.add_note(f"{label} got {message!r} from {self.hostile.label} as number {self.sent}")
                raise

    def advance(self, seconds: float) -> None:
        self.world.run_until(self.world.now_us + round(seconds * SECOND_US))

    def start_all(self, labels: Iterable[str]) -> None:
        for label in labels:
            if self.world.nodes[label].machine is None:
                self.world.execute(StartMember(label))
            self.advance(0.2)

    def disturb(self) -> None:
        """Do something that a cluster goes through: a death, a start, a cut, a change of the state, writes."""
        world, draws = self.world, self.draws
        running = [label for label in self.others if world.nodes[label].machine is not None]
        down = [label for label in self.others if world.nodes[label].machine is None]
        with suppress(CommandRefused):
            match draws.choice(("kill", "start", "cut", "heal", "state", "put", "put", "stop")):
                case "kill" if len(running) > 2:
                    world.execute(KillMember(draws.choice(running)))
                case "stop" if len(running) > 2:
                    world.execute(StopMember(draws.choice(running)))
                case "start" if down:
                    world.execute(StartMember(draws.choice(down)))
                case "cut":
                    left = draws.sample(self.others, 1)
                    right = [label for label in world.labels if label not in left]
                    world.execute(Partition((tuple(left), tuple(right))))
                case "heal":
                    world.execute(Heal())
                case "state" if running:
                    world.execute(ChangeState(draws.choice(running), draws.choice(CLUSTER_STATES)))
                case _ if running:
                    world.call(draws.choice(running), Put("m", f"k{draws.randrange(40)}", b"v"))

    def silence_the_peer(self) -> None:
        """End the hostile peer and heal everything, the join lists too, as operators do; let the others find each other."""
        world = self.world
        if self.hostile.machine is not None:
            world.execute(KillMember(self.hostile.label))
        world.execute(Heal())
        for _ in range(6):
            self.start_all(self.others)
            self.advance(30)
            for label in self.others:
                with suppress(CommandRefused):
                    if world.nodes[label].machine is not None:
                        world.execute(SetJoinList(label, tuple(world.nodes[one].address for one in self.others)))
                        world.execute(ChangeState(label, "ACTIVE"))

    def complaints(self) -> list[str]:
        """Return what is not as in one safe cluster of the others."""
        world, found = self.world, []
        wanted = {world.nodes[label].address for label in self.others}
        states = {label: world.nodes[label].machine.inspect() for label in self.others}  # type: ignore[union-attr]
        for label, state in states.items():
            members = state.members
            if members is None or set(members.addresses) != wanted:
                found.append(f"{label} sees {members}")
        if len({(state.master, state.members) for state in states.values()}) > 1:
            found.append(f"masters { ({label: state.master for label, state in states.items()}) }")
        tables = {state.partitions.table.digest if state.partitions.table else None for state in states.values()}
        if len(tables) > 1:
            found.append(f"tables {tables}")
        for label in self.others:
            number = world.call(label, Put("m", f"last {label}", b"v"))
            self.advance(10)
            answer = self.answers.get(number)
            if answer is None or answer.problem:
                found.append(f"{label} answers {answer}")
        return found
