"""What can happen next in a model, and what comes of it. The rules are the same for exploring and for running one schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from quarterdeck.backend.commands.check import with_addresses
from quarterdeck.backend.commands.links import LinkConditions
from quarterdeck.backend.core import commands as do
from quarterdeck.backend.core.events import FORM, Event, ProcessKilled, Record
from quarterdeck.backend.core.inputs import TICK, Call, Input, PeerUnreachable, Receive
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.operations import Operation
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.core.timers import NEVER
from quarterdeck.backend.simulation.model_checking.incarnations import Inputs, MemberStepper, Sent, SteppedMember
from quarterdeck.backend.simulation.model_checking.model import DOWN, MessageInFlight, Model, Spent, State, Transition
from quarterdeck.backend.simulation.virtual_time.member_configurations import member_configurations

MEASURING = "quarterdeck.data.measure.interval.seconds"
"""Events that are only counted and reported would be one more moment to be explored at every place."""


def settings_of(model: Model) -> Settings:
    """Return the settings of all members of a model."""
    return Settings.of({MEASURING: 0, **model.properties}, preset="training")


def configurations_of(model: Model) -> tuple[MemberConfiguration, ...]:
    """Return the members of a model, by place."""
    return tuple(
        member_configurations(
            *(model.name, model.labels, settings_of(model)),
            settings_of={},
            addresses={},
            cluster_names={},
            join_lists=model.join_lists,
            lite=(),
            zones={},
        )
    )


class Transitions:
    """The states of one model and how they follow from each other."""

    def __init__(
        self,
        model: Model,
        inputs: Inputs,
        incarnations: MemberStepper,
        on_record: Callable[[Record], None] | None = None,
    ) -> None:
        """`on_record` gets the records of members, and the records of events outside of them."""
        self.model = model
        self.on_record = on_record
        self._own_records = 0
        self.sequence = (*model.before, *model.commands)
        """All commands, in their order."""
        self.settings = settings_of(model)
        self._inputs = inputs
        self._incarnations = incarnations
        self._tick = inputs.number(TICK)
        self._prompt = frozenset(model.prompt)
        self.configurations = configurations_of(model)
        self._kinds: dict[int, str] = {}
        self._arrivals: dict[tuple[int, int], int] = {}
        self._places = {one.address: place for place, one in enumerate(self.configurations)}
        self._label_places = {label: place for place, label in enumerate(model.labels)}
        self._links = self._links_after_each_command()

    def down(self) -> State:
        count = len(self.configurations)
        return State(0, (DOWN,) * count, (0,) * count, (), Spent())

    def start(self, state: State, label: str) -> State:
        """Return the state after a new process of the member `label` has started."""
        return self._start(state, self._label_places[label])

    def read(self, state: State, place: int, reads: Iterable[Operation]) -> State:
        """Return the state after these reads at the member at `place`, with time for the answers."""
        for number, operation in enumerate(reads, start=self._calls(len(self.sequence)) + 1):
            state = self._step(state, place, self._inputs.number(Call(number, operation, watched=True)))
        return self.calm(state, state.now_us + self.settings.call_timeout_us)

    def execute(self, state: State, command: do.Command) -> State:
        """Return the state after a command that the model does not have. All of its own were carried out before."""
        self.sequence = (*self.sequence, command)
        self._links = self._links_after_each_command()
        return self.after(state, Transition("command", DOWN))

    # What can happen

    def _calm_choice(self, state: State, until_us: int) -> Transition | None:
        """Return the next event without faults, an arrival or a tick; None when it is later than `until_us`."""
        if state.in_flight:
            sender, receiver, content = state.in_flight[0]
            return Transition("deliver", receiver, sender, content)
        deadlines = self._deadlines_us(state)
        soonest_us = min(deadlines)
        return Transition("tick", deadlines.index(soonest_us)) if soonest_us <= until_us else None

    def calm(self, state: State, until_us: int) -> State:
        """Return the state of a cluster that is left alone: messages arrive at once, and clocks go on together."""
        while (choice := self._calm_choice(state, until_us)) is not None:
            state = self.after(state, choice)
        return state._replace(now_us=until_us)

    def choices(self, state: State) -> Iterator[Transition]:
        """Everything that can happen in `state`, each once."""
        bounds, spent = self.model.bounds, state.spent
        for message in dict.fromkeys(state.in_flight):
            yield Transition("deliver", message.receiver, message.sender, message.content)
            if isinstance(self._inputs.known[message.content], PeerUnreachable):
                continue
            if spent.drops < bounds.drops:
                yield Transition("drop", message.receiver, message.sender, message.content)
            if spent.duplicates < bounds.duplicates:
                yield Transition("duplicate", message.receiver, message.sender, message.content)
        if spent.commands < len(self.sequence):
            yield Transition("command", self._place_of(self.sequence[spent.commands]))
        if spent.crashes < bounds.crashes or spent.restarts < bounds.restarts:
            yield from self._crashes_and_restarts(state)
        if spent.ticks < bounds.ticks:
            yield from self._ticks(state)

    def _deadlines_us(self, state: State) -> list[int]:
        return [NEVER if member == DOWN else self._incarnations.deadline_us(member) for member in state.members]

    def _crashes_and_restarts(self, state: State) -> Iterator[Transition]:
        bounds, spent = self.model.bounds, state.spent
        for place, member in enumerate(state.members):
            if member != DOWN and spent.crashes < bounds.crashes:
                yield Transition("crash", place)
            elif member == DOWN and state.starts[place] and spent.restarts < bounds.restarts:
                yield Transition("restart", place)

    def _ticks(self, state: State) -> Iterator[Transition]:
        deadlines = self._deadlines_us(state)
        soonest_us = min(deadlines)
        if soonest_us == NEVER:
            return
        if soonest_us > state.now_us and state.in_flight and state.spent.late >= self.model.bounds.late:
            return
        for place, deadline_us in enumerate(deadlines):
            if deadline_us <= max(soonest_us, state.now_us):
                yield Transition("tick", place)

    # What comes of it

    def after(self, state: State, choice: Transition) -> State:
        """Return the state to which `choice` leads. It must be one of `choices(state)`."""
        now_us, members, starts, in_flight, spent = state
        kind, place, sender, content = choice
        match kind:
            case "deliver":
                arrived = MessageInFlight(sender, place, content)
                return self._deliver(State(now_us, members, starts, _without(in_flight, arrived), spent), arrived)
            case "duplicate":
                spent = spent._replace(duplicates=spent.duplicates + 1)
                arrived = MessageInFlight(sender, place, content)
                return self._deliver(State(now_us, members, starts, in_flight, spent), arrived)
            case "drop":
                spent = spent._replace(drops=spent.drops + 1)
                lost = MessageInFlight(sender, place, content)
                return State(now_us, members, starts, _without(in_flight, lost), spent)
            case "crash":
                return self._kill(state._replace(spent=spent._replace(crashes=spent.crashes + 1)), place)
            case "restart":
                return self._start(state._replace(spent=spent._replace(restarts=spent.restarts + 1)), place)
            case "tick":
                at_us = max(now_us, self._incarnations.deadline_us(members[place]))
                late = spent.late + bool(at_us > now_us and in_flight)
                spent = spent._replace(ticks=spent.ticks + 1, late=late)
                return self._step(State(at_us, members, starts, in_flight, spent), place, self._tick)
            case "command":
                return self._execute(state._replace(spent=spent._replace(commands=spent.commands + 1)))

    def _execute(self, state: State) -> State:
        """Return the state after the last command that was begun. One that is refused changes nothing."""
        done = state.spent.commands
        command = self.sequence[done - 1]
        match command:
            case do.StartMember(label):
                place = self._label_places[label]
                return self._start(state, place) if state.members[place] == DOWN else state
            case do.KillMember(label):
                place = self._label_places[label]
                return self._kill(state, place) if state.members[place] != DOWN else state
            case do.CallMap(label, operation):
                return self._order(state, label, Call(self._calls(done), operation, watched=True))
            case _ if isinstance(command, do.MemberOrder):
                own = {configuration.label: configuration.address for configuration in self.configurations}
                resolved = with_addresses(command, own, self.settings.join_port_try_count)
                return self._order(state, command.member, resolved)
            case _:
                self._record_links(state.now_us, self._links[done - 1], self._links[done])
                return state

    def _calls(self, commands: int) -> int:
        return sum(isinstance(command, do.CallMap) for command in self.sequence[:commands])

    def healed(self, state: State) -> State:
        """Return the same state with every link plain and no more commands to come."""
        self._record_links(state.now_us, self._links_of(state), self._links[-1])
        return state._replace(spent=state.spent._replace(commands=len(self._links) - 1))

    def _record_links(self, now_us: int, before: LinkConditions, after: LinkConditions) -> None:
        for source, target in sorted({*before.conditions, *after.conditions}):
            if before.of(source, target) != after.of(source, target):
                self._record(now_us, after.of(source, target) or LinkChanged(source, target))

    def _record(self, now_us: int, event: Event) -> None:
        if self.on_record is not None:
            self._own_records += 1
            run = self.model.name
            self.on_record(Record(run, run, run, self._own_records, now_us, now_us, event, form=FORM))

    def _order(self, state: State, label: str, order: Input) -> State:
        place = self._label_places[label]
        return state if state.members[place] == DOWN else self._step(state, place, self._inputs.number(order))

    def _start(self, state: State, place: int) -> State:
        starts = _with(state.starts, place, state.starts[place] + 1)
        step = self._incarnations.start(self.configurations[place], starts[place], state.now_us)
        return self._settle(state._replace(starts=starts), place, step)

    def _kill(self, state: State, place: int) -> State:
        self._record(state.now_us, ProcessKilled(self.model.labels[place]))
        state = state._replace(members=_with(state.members, place, DOWN))
        lost = self._inputs.number(PeerUnreachable(self.configurations[place].address, "connection lost"))
        links, running = self._links_of(state), [at for at, member in enumerate(state.members) if member != DOWN]
        reached = [other for other in running if not self._is_blocked(links, place, other)]
        return _sending(state, [MessageInFlight(place, other, lost) for other in reached])

    def _deliver(self, state: State, one: MessageInFlight) -> State:
        if state.members[one.receiver] != DOWN:
            return self._step(state, one.receiver, self._arriving(one))
        if state.members[one.sender] == DOWN or isinstance(self._inputs.known[one.content], PeerUnreachable):
            return state
        refused = PeerUnreachable(self.configurations[one.receiver].address, "connection refused")
        return _sending(state, [MessageInFlight(one.receiver, one.sender, self._inputs.number(refused))])

    def _arriving(self, one: MessageInFlight) -> int:
        """Return the number of the input that a message becomes at its receiver: news as they are, a message with its sender."""
        key = (one.sender, one.content)
        number = self._arrivals.get(key)
        if number is None:
            content = self._inputs.known[one.content]
            if isinstance(content, PeerUnreachable):
                number = one.content
            else:
                number = self._inputs.number(Receive(self.configurations[one.sender].address, content))  # type: ignore[arg-type]
            self._arrivals[key] = number
        return number

    def _step(self, state: State, place: int, number: int) -> State:
        return self._settle(state, place, self._incarnations.step(state.members[place], state.now_us, number))

    def _settle(self, state: State, place: int, step: SteppedMember) -> State:
        """Take over a step of the member at `place`: its messages are on their way, and prompt ones have arrived."""
        now_us, members, starts, in_flight, spent = state
        members = _with(members, place, DOWN if step.ended else step.state)
        if step.records and self.on_record is not None:
            for record in step.records:
                self.on_record(record)
        if not step.sent:
            return State(now_us, members, starts, in_flight, spent)
        slow, prompt = self._sent(spent.commands, place, step.sent)
        if slow:
            in_flight = tuple(sorted((*in_flight, *slow)))
        state = State(now_us, members, starts, in_flight, spent)
        for message in prompt:
            if state.members[message.receiver] != DOWN:
                state = self._deliver(state, message)
        return state

    def _sent(
        self, commands: int, place: int, sent: tuple[Sent, ...]
    ) -> tuple[list[MessageInFlight], list[MessageInFlight]]:
        """Divide sent messages into those on their way and those that arrive at once. Messages that a link drops are left out."""
        slow: list[MessageInFlight] = []
        prompt: list[MessageInFlight] = []
        links = self._links[commands]
        for address, content in sent:
            receiver = self._places.get(address)
            if receiver is None:
                continue
            kind = self.kind(content)
            if links.conditions and self._is_blocked(links, place, receiver, kind):
                continue
            (prompt if kind in self._prompt else slow).append(MessageInFlight(place, receiver, content))
        return slow, prompt

    def kind(self, content: int) -> str:
        kind = self._kinds.get(content)
        if kind is None:
            message: Message = self._inputs.known[content]  # type: ignore[assignment]
            kind = self._kinds[content] = str(message.__struct_config__.tag)
        return kind

    # Links

    def _links_after_each_command(self) -> tuple[LinkConditions, ...]:
        """By the number of commands that were carried out; the links after the last one have no faults."""
        after = [LinkConditions()]
        for command in self.sequence:
            following = LinkConditions()
            following.conditions = dict(after[-1].conditions)
            if isinstance(command, do.LinkCommand):
                following.apply(command)
            after.append(following)
        return (*after, LinkConditions())

    def _links_of(self, state: State) -> LinkConditions:
        return self._links[state.spent.commands]

    def _is_blocked(self, links: LinkConditions, source: int, target: int, kind: str = "") -> bool:
        labels = self.model.labels
        condition: LinkChanged | None = links.of(labels[source], labels[target])
        return condition is not None and (bool(condition.blocked) or kind in condition.dropped_kinds)

    def _place_of(self, command: do.Command) -> int:
        return self._label_places.get(getattr(command, "member", ""), DOWN)


def _with(values: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return (*values[:place], value, *values[place + 1 :])


def _sending(state: State, more: list[MessageInFlight]) -> State:
    return state._replace(in_flight=tuple(sorted((*state.in_flight, *more)))) if more else state


def _without(in_flight: tuple[MessageInFlight, ...], gone: MessageInFlight) -> tuple[MessageInFlight, ...]:
    place = in_flight.index(gone)
    return (*in_flight[:place], *in_flight[place + 1 :])


def recorded(transitions: Transitions, run: Callable[[], State]) -> tuple[list[Record], State]:
    """Return the records of `run`, and the state after it."""
    records: list[Record] = []
    before, transitions.on_record = transitions.on_record, records.append
    try:
        return records, run()
    finally:
        transitions.on_record = before
