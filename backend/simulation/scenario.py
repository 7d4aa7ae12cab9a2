"""Scenarios: what people write into a scenario file, as models (design 5.1).

The models say what may stand in a file; `backend.simulation.scenario_file` reads one and turns whatever is wrong in it
into an error with file, line and field. The same scenario drives a live cluster and a simulated one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from backend.core.commands import (
    BlockMode,
    Command,
    CutLink,
    DelayLink,
    Heal,
    HealLink,
    KillMember,
    LoseOnLink,
    Partition,
    PauseMember,
    ResumeMember,
    StartMember,
    StopMember,
)
from backend.core.events import Event
from backend.core.properties import Settings

LABEL_FORM = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
DURATION_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|m|h)")
UNIT_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
MOST_MEMBERS = 1_000

EVENT_KINDS: dict[str, type[Event]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Event)}
"""Every kind of event by the name that it has in journals and in scenario files."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error message: the known word that is closest to `word`, or else all of them."""
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"


def parse_duration(value: object) -> int:
    """Microseconds of a text such as ``20s``, ``500ms`` or ``2m``. Raises `ValueError`."""
    fit = DURATION_FORM.fullmatch(value.strip()) if isinstance(value, str) else None
    if fit is None:
        raise ValueError(f"{value!r} is not a duration; write a number and its unit, as in 20s, 500ms or 2m")
    return round(float(fit[1]) * UNIT_US[fit[2]])


def duration_text(duration_us: int) -> str:
    """A duration in the longest unit that divides it, as a scenario file would have it."""
    unit = next(unit for unit in ("h", "m", "s", "ms", "us") if duration_us % UNIT_US[unit] == 0)
    return f"{duration_us // UNIT_US[unit]}{unit}" if duration_us else "0s"


def _known_label(label: str, info: ValidationInfo) -> str:
    labels = (info.context or {}).get("labels")
    if labels is not None and label not in labels:
        raise ValueError(f"there is no member {label!r}; {did_you_mean(label, labels)}")
    return label


def _well_formed_label(label: str) -> str:
    if not LABEL_FORM.fullmatch(label):
        raise ValueError(f"{label!r} is no label; begin with a letter and go on with letters, digits, '-', '_' or '.'")
    return label


def _one_or_many(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _without_repeats(labels: tuple[str, ...]) -> tuple[str, ...]:
    for place, label in enumerate(labels):
        if label in labels[:place]:
            raise ValueError(f"{label!r} stands there twice; name each member once")
    return labels


def _number_of_members(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= MOST_MEMBERS:
            raise ValueError(f"{value} is no possible number of members; give 1 to {MOST_MEMBERS}, or a list of labels")
        return [f"n{number}" for number in range(1, value + 1)]
    return value


def _known_kind(kind: str) -> str:
    if kind not in EVENT_KINDS:
        raise ValueError(f"there is no event {kind!r}; {did_you_mean(kind, EVENT_KINDS)}")
    return kind


def _plain_value(value: object) -> object:
    if not isinstance(value, str | int | float | bool):
        raise ValueError(f"{value!r} is not a single value; write a text, a number or true/false")
    return value


Duration = Annotated[int, BeforeValidator(parse_duration)]
"""Microseconds, written as a number with its unit."""

Label = Annotated[str, AfterValidator(_known_label)]
AnyLabels = Annotated[tuple[Label, ...], BeforeValidator(_one_or_many), AfterValidator(_without_repeats)]
Labels = Annotated[AnyLabels, Field(min_length=1)]
Members = Annotated[
    tuple[Annotated[str, AfterValidator(_well_formed_label)], ...],
    BeforeValidator(_number_of_members),
    AfterValidator(_without_repeats),
    Field(min_length=1, max_length=MOST_MEMBERS),
]
EventKinds = Annotated[
    tuple[Annotated[str, AfterValidator(_known_kind)], ...], BeforeValidator(_one_or_many), Field(min_length=1)
]
Version = Annotated[int, Field(ge=0, strict=True)]


class Part(BaseModel):
    """A part of a scenario: unknown fields are errors, and nothing changes once it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


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


class Groups(Part):
    groups: tuple[Labels, ...] = Field(min_length=2)
    mode: BlockMode = "blackhole"

    @model_validator(mode="before")
    @classmethod
    def _bare_list(cls, value: object) -> object:
        return {"groups": value} if isinstance(value, list | tuple) else value

    @model_validator(mode="after")
    def _each_member_once(self) -> Groups:
        _without_repeats(tuple(label for group in self.groups for label in group))
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
            raise ValueError(f"{self.name} needs to know whom; write {{{self.name}: athens}}")
        return self

    @property
    def name(self) -> str:
        return next(iter(self.model_fields_set))

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
            case "cut" | "delay" | "lose":
                arrow = "to" if what.one_way else "and"
                more = {"cut": "mode", "delay": "by_us", "lose": "probability"}[self.name]
                amount = duration_text(what.by_us) if more == "by_us" else getattr(what, more)
                return f"{self.name} {', '.join(what.sources)} {arrow} {', '.join(what.targets)} ({amount})"
            case "heal":
                ends = f" {', '.join(what.sources)} and {', '.join(what.targets)}" if what.sources else ""
                return f"heal{ends}"
            case "wait":
                return f"wait {duration_text(what)}"
            case name:
                return f"{name} {', '.join(what)}"


class Expect(Part):
    """What must hold, at once or `within` a time. Views are compared as sets: order of age is an invariant anyway.

    `event` and `never` look at the records since the last action other than `wait`. With `never`, the whole of `within`
    passes first and everything else has to hold at its end.
    """

    within_us: Duration | None = Field(default=None, alias="within")
    views: dict[Label, Labels] = {}
    masters: dict[Label, Label] = {}
    versions: dict[Label, Version] = {}
    version_at_least: Version | None = Field(default=None, alias="version-at-least")
    one_cluster: bool | None = Field(default=None, alias="one-cluster", strict=True)
    suspects: dict[Label, AnyLabels] = {}
    removed: AnyLabels = ()
    event: dict[str, Any] = {}
    never: EventKinds = ()

    @model_validator(mode="after")
    def _not_empty(self) -> Expect:
        if not self.model_fields_set - {"within_us"}:
            raise ValueError(
                "expects nothing; name at least one of views, masters, versions, one-cluster, event, never"
            )
        return self

    def text(self) -> str:
        """The expectation in one line, for people."""
        parts = [f"{one}'s list is {', '.join(view)}" for one, view in self.views.items()]
        parts += [f"{one} follows {master}" for one, master in self.masters.items()]
        parts += [f"{one} stands at version {version}" for one, version in self.versions.items()]
        parts += [f"every version is at least {self.version_at_least}"] * (self.version_at_least is not None)
        parts += [f"all are {'' if self.one_cluster else 'not '}one cluster"] * (self.one_cluster is not None)
        parts += [f"{one} suspects {', '.join(them) or 'nobody'}" for one, them in self.suspects.items()]
        parts += [f"{', '.join(self.removed)} removed from the others' lists"] * bool(self.removed)
        parts += [event_text(self.event)] * bool(self.event)
        parts += [f"no {kind}" for kind in self.never]
        within = f"within {duration_text(self.within_us)}: " if self.within_us is not None else ""
        return within + "; ".join(parts)


def event_text(pattern: dict[str, Any]) -> str:
    """An event pattern in a few words."""
    rest = ", ".join(f"{name} {value}" for name, value in pattern.items() if name != "kind")
    return f"event {pattern.get('kind')}{f' ({rest})' if rest else ''}"


class Step(Part):
    """One of: something to say, something to do, something to expect."""

    say: str | None = None
    do: Action | None = None
    expect: Expect | None = None

    @model_validator(mode="after")
    def _just_one(self) -> Step:
        if len(self.model_fields_set) != 1:
            raise ValueError("a step is exactly one of say, do and expect; begin each with its own dash")
        if all(part is None for part in (self.say, self.do, self.expect)):
            raise ValueError("says, does and expects nothing; put something behind the colon")
        return self


class Scenario(Part):
    """A whole scenario. `members` start in this order; `join_lists` holds only those that do not list everybody."""

    title: str
    summary: str = ""
    members: Members
    settings: dict[str, Annotated[Any, AfterValidator(_plain_value)]] = {}
    join_lists: dict[Label, Labels] = Field(default={}, alias="join-lists")
    steps: tuple[Step, ...] = Field(min_length=1)

    def timing(self) -> Settings:
        """The training preset with the scenario's settings on top. Raises `BadProperty`."""
        return Settings.of(self.settings, preset="training")
