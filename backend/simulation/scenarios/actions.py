"""What a `do` step of a scenario does, as models, and the operator's commands that it stands for (design 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from pydantic import Field, model_validator

from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    BlockMode,
    CallMap,
    ChangeState,
    Command,
    CutLink,
    DelayLink,
    DropMessages,
    DuplicateOnLink,
    Heal,
    HealLink,
    KillAt,
    KillMember,
    LoseOnLink,
    Operate,
    Partition,
    PauseMember,
    ResumeMember,
    SearchClusters,
    SetJoinList,
    SetProperties,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.data.calls.operations import Get, Put, Remove
from quarterdeck.backend.simulation.scenarios.values import (
    Duration,
    Entries,
    EventKind,
    Label,
    Labels,
    MessageKinds,
    Name,
    Properties,
    ScenarioModel,
    duration_text,
    settings_text,
    without_repeats,
)


class Links(ScenarioModel):
    sources: Labels = Field(alias="from")
    targets: Labels = Field(alias="to")
    one_way: bool = Field(default=False, alias="one-way", strict=True)


class Cut(Links):
    mode: BlockMode = "blackhole"


class Delay(Links):
    by_us: Duration = Field(alias="by")


class Lose(Links):
    probability: float = Field(ge=0, le=1)


class Duplicate(Links):
    probability: float = Field(ge=0, le=1)


class Drop(ScenarioModel):
    """One-way, as whole kinds of messages have a direction. No kinds: none are dropped any more."""

    sources: Labels = Field(alias="from")
    targets: Labels = Field(alias="to")
    kinds: MessageKinds


class Groups(ScenarioModel):
    groups: tuple[Labels, ...] = Field(min_length=2)
    mode: BlockMode = "blackhole"

    @model_validator(mode="before")
    @classmethod
    def _bare_list(cls, value: object) -> object:
        return {"groups": value} if isinstance(value, list | tuple) else value

    @model_validator(mode="after")
    def _each_member_once(self) -> Groups:
        without_repeats(tuple(label for group in self.groups for label in group))
        return self


class LinksToHeal(ScenarioModel):
    """Everything is healed unless both ends are named."""

    sources: Labels | None = Field(default=None, alias="from")
    targets: Labels | None = Field(default=None, alias="to")

    @model_validator(mode="before")
    @classmethod
    def _everything(cls, value: object) -> object:
        return {} if value is None or value is True else value

    @model_validator(mode="after")
    def _both_ends(self) -> LinksToHeal:
        if (self.sources is None) != (self.targets is None):
            raise ValueError("names one end only; give both from and to, or neither to heal everything")
        return self


class KillPoint(ScenarioModel):
    """Where a member dies: as it records the event, or with `after` when it has done all that it does in that instant."""

    event: EventKind
    after: bool = Field(default=False, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _bare_word(cls, value: object) -> object:
        return {"event": value} if isinstance(value, str) else value

    def text(self) -> str:
        return f"{'after' if self.after else 'at'} its next {self.event}"


class MapEntry(ScenarioModel):
    """One key of a map, and the member that is asked for it as a client would."""

    at: Label
    map: Name = "map"
    key: Name


class NewValue(MapEntry):
    value: str


class Load(ScenarioModel):
    """A workload that goes on beside the following steps: at even intervals one of the members is asked for one of the keys.

    Every value that is put is another one. `reads` is the share of gets among the operations.
    """

    at: Labels
    map: Name = "map"
    keys: int = Field(default=10, ge=1, le=100_000)
    rate: float = Field(default=10, gt=0, le=100_000)
    """Operations per second."""
    lasting_us: Duration = Field(alias="for")
    reads: float = Field(default=0.5, ge=0, le=1)
    removes: float = Field(default=0, ge=0, le=1)

    @model_validator(mode="after")
    def _shares(self) -> Load:
        if self.reads + self.removes > 1:
            raise ValueError(
                "more reads and removes than there are operations; their shares must not exceed 1 together"
            )
        return self

    def text(self) -> str:
        kind = f"{self.rate:g} operations a second on {self.keys} keys of {self.map}, {self.reads:.0%} of them reads"
        return f"load via {', '.join(self.at)} for {duration_text(self.lasting_us)}: {kind}"


class WaitLimit(ScenarioModel):
    within_us: Duration = Field(alias="within")


EXAMPLES = {
    "partition": "[[athens], [byzantium]]",
    "drop_messages": "{from: athens, to: byzantium, kinds: [heartbeat]}",
    "set_join_list": "{athens: [athens, byzantium]}",
    "change_state": "{athens: FROZEN}",
    "set": "{athens: {hazelcast.merge.next.run.delay.seconds: 1}}",
    "kill_at": "{athens: claim-started}",
    "wait": "2s",
    "put": "{at: athens, map: m, key: k, value: v}",
    **dict.fromkeys(("get", "remove"), "{at: athens, map: m, key: k}"),
    "load": "{at: [athens], keys: 10, rate: 10, for: 20s}",
    "wait_until_safe": "{within: 60s}",
    **dict.fromkeys(("cut", "delay", "lose", "duplicate"), "{from: athens, to: byzantium, ...}"),
}
"""How an action is written that is not done to members alone."""


class Action(ScenarioModel):
    """What a `do` step does: exactly one of these."""

    start: Labels | None = None
    stop: Labels | None = None
    kill: Labels | None = None
    restart: Labels | None = None
    pause: Labels | None = None
    resume: Labels | None = None
    partition: Groups | None = None
    cut: Cut | None = None
    delay: Delay | None = None
    lose: Lose | None = None
    duplicate: Duplicate | None = None
    drop_messages: Drop | None = Field(default=None, alias="drop-messages")
    set_join_list: Annotated[dict[Label, Entries], Field(min_length=1)] | None = Field(
        default=None, alias="set-join-list"
    )
    change_state: Annotated[dict[Label, ClusterState], Field(min_length=1)] | None = Field(
        default=None, alias="change-state"
    )
    set: Annotated[dict[Label, Properties], Field(min_length=1)] | None = None
    search: Labels | None = None
    operate: Labels | None = None
    kill_at: Annotated[dict[Label, KillPoint], Field(min_length=1)] | None = Field(default=None, alias="kill-at")
    arrange: Labels | None = None
    put: NewValue | None = None
    get: MapEntry | None = None
    remove: MapEntry | None = None
    load: Load | None = None
    wait_until_safe: WaitLimit | None = Field(default=None, alias="wait-until-safe")
    heal: Annotated[LinksToHeal, Field(default_factory=LinksToHeal)]
    wait: Duration = 0

    @model_validator(mode="before")
    @classmethod
    def _bare_word(cls, value: object) -> object:
        return {value: None} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _just_one(self) -> Action:
        if len(self.model_fields_set) != 1:
            raise ValueError("holds not exactly one action; give each action a step of its own")
        if getattr(self, self.name) is None:
            raise ValueError(
                f"{self.word} needs to know whom; write {{{self.word}: {EXAMPLES.get(self.name, 'athens')}}}"
            )
        return self

    @property
    def name(self) -> str:
        """The field that holds the action."""
        return next(iter(self.model_fields_set))

    @property
    def word(self) -> str:
        """The action as it is written."""
        return self.name.replace("_", "-")

    def commands(self, is_running: Callable[[str], bool]) -> Iterator[Command]:
        """The operator's commands that this action consists of; none for `wait`, `wait-until-safe` and `load`.

        A restart kills the member only when `is_running` says so at the moment the command is asked for.
        """
        one_each: dict[str, Callable[[str], Command]] = {
            "start": StartMember,
            "stop": StopMember,
            "kill": KillMember,
            "pause": PauseMember,
            "resume": ResumeMember,
            "search": SearchClusters,
            "operate": Operate,
            "arrange": ArrangePartitions,
        }
        what: Any = getattr(self, self.name)
        match self.name:
            case "restart":
                for label in what:
                    if is_running(label):
                        yield KillMember(label)
                    yield StartMember(label)
            case "partition":
                yield Partition(what.groups, what.mode)
            case "cut":
                yield CutLink(what.sources, what.targets, what.one_way, what.mode)
            case "delay":
                yield DelayLink(what.sources, what.targets, what.by_us, what.one_way)
            case "lose":
                yield LoseOnLink(what.sources, what.targets, what.probability, what.one_way)
            case "duplicate":
                yield DuplicateOnLink(what.sources, what.targets, what.probability, what.one_way)
            case "drop_messages":
                yield DropMessages(what.sources, what.targets, what.kinds)
            case "set_join_list":
                yield from (SetJoinList(label, entries) for label, entries in what.items())
            case "change_state":
                yield from (ChangeState(label, state) for label, state in what.items())
            case "set":
                yield from (SetProperties(label, dict(properties)) for label, properties in what.items())
            case "kill_at":
                yield from (KillAt(label, point.event, point.after) for label, point in what.items())
            case "put":
                yield CallMap(what.at, Put(what.map, what.key, what.value.encode()))
            case "get":
                yield CallMap(what.at, Get(what.map, what.key))
            case "remove":
                yield CallMap(what.at, Remove(what.map, what.key))
            case "heal":
                yield Heal() if what.sources is None else HealLink(what.sources, what.targets)
            case "wait" | "wait_until_safe" | "load":
                pass
            case name:
                yield from (one_each[name](label) for label in what)

    def text(self) -> str:
        """The action in one line, for people."""
        what: Any = getattr(self, self.name)
        match self.name:
            case "partition":
                return f"partition {' | '.join(', '.join(group) for group in what.groups)} ({what.mode})"
            case "cut" | "delay" | "lose" | "duplicate":
                arrow = "to" if what.one_way else "and"
                more = {"cut": "mode", "delay": "by_us"}.get(self.name, "probability")
                amount = duration_text(what.by_us) if more == "by_us" else getattr(what, more)
                return f"{self.name} {', '.join(what.sources)} {arrow} {', '.join(what.targets)} ({amount})"
            case "drop_messages":
                return (
                    f"drop {', '.join(what.kinds) or 'no'} messages from {', '.join(what.sources)} "
                    f"to {', '.join(what.targets)}"
                )
            case "set_join_list":
                return "; ".join(f"set join list via {label} to {', '.join(them)}" for label, them in what.items())
            case "change_state":
                return "; ".join(f"change state via {label} to {state}" for label, state in what.items())
            case "set":
                return "; ".join(f"set {settings_text(properties)} at {label}" for label, properties in what.items())
            case "kill_at":
                return "; ".join(f"kill {label} {point.text()}" for label, point in what.items())
            case "put":
                return f"put {what.key} = {what.value} into {what.map} via {what.at}"
            case "get" | "remove":
                return f"{self.name} {what.key} of {what.map} via {what.at}"
            case "load":
                text: str = what.text()
                return text
            case "wait_until_safe":
                return f"wait until all data is safe, at most {duration_text(what.within_us)}"
            case "heal":
                ends = f" {', '.join(what.sources)} and {', '.join(what.targets)}" if what.sources else ""
                return f"heal{ends}"
            case "wait":
                return f"wait {duration_text(what)}"
            case name:
                return f"{name} {', '.join(what)}"
