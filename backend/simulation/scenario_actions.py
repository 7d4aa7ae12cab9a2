"""What a `do` step of a scenario does, as models, and the operator's commands that it stands for (design 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from pydantic import Field, model_validator

from backend.core.cluster_profile import ClusterState
from backend.core.commands import (
    BlockMode,
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
    StartMember,
    StopMember,
)
from backend.simulation.scenario_values import (
    Duration,
    Entries,
    EventKind,
    Label,
    Labels,
    MessageKinds,
    Part,
    duration_text,
    without_repeats,
)


class Links(Part):
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


class Drop(Part):
    """One-way, as whole kinds of messages have a direction. No kinds: none are dropped any more."""

    sources: Labels = Field(alias="from")
    targets: Labels = Field(alias="to")
    kinds: MessageKinds


class Groups(Part):
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


class Healing(Part):
    """Everything is healed unless both ends are named."""

    sources: Labels | None = Field(default=None, alias="from")
    targets: Labels | None = Field(default=None, alias="to")

    @model_validator(mode="before")
    @classmethod
    def _everything(cls, value: object) -> object:
        return {} if value is None or value is True else value

    @model_validator(mode="after")
    def _both_ends(self) -> Healing:
        if (self.sources is None) != (self.targets is None):
            raise ValueError("names one end only; give both from and to, or neither to heal everything")
        return self


EXAMPLES = {
    "partition": "[[athens], [byzantium]]",
    "drop_messages": "{from: athens, to: byzantium, kinds: [heartbeat]}",
    "set_join_list": "{athens: [athens, byzantium]}",
    "change_state": "{athens: FROZEN}",
    "kill_at": "{athens: claim-started}",
    "wait": "2s",
    **dict.fromkeys(("cut", "delay", "lose", "duplicate"), "{from: athens, to: byzantium, ...}"),
}
"""How an action is written that is not done to members alone."""


class Action(Part):
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
    search: Labels | None = None
    operate: Labels | None = None
    kill_at: Annotated[dict[Label, EventKind], Field(min_length=1)] | None = Field(default=None, alias="kill-at")
    heal: Annotated[Healing, Field(default_factory=Healing)]
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
        """The operator's commands that this action consists of; none for `wait`.

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
            case "kill_at":
                yield from (KillAt(label, event) for label, event in what.items())
            case "heal":
                yield Heal() if what.sources is None else HealLink(what.sources, what.targets)
            case "wait":
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
            case "kill_at":
                return "; ".join(f"kill {label} at its next {event}" for label, event in what.items())
            case "heal":
                ends = f" {', '.join(what.sources)} and {', '.join(what.targets)}" if what.sources else ""
                return f"heal{ends}"
            case "wait":
                return f"wait {duration_text(what)}"
            case name:
                return f"{name} {', '.join(what)}"
