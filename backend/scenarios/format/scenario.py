"""Scenarios: what people write into a scenario file, as models.

The models say what may stand in a file; `backend.scenarios.format.reading` reads one and turns whatever is wrong in it
into an error with file, line and field. The same scenario drives a live cluster and a simulated one.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from quarterdeck.backend.commands.catalogue import description_of
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.messages import MESSAGE_KINDS
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.picture.fold.belief import Unsafety
from quarterdeck.backend.picture.text.formatting import follows_text
from quarterdeck.backend.scenarios.event_patterns import EventPatterns, event_text
from quarterdeck.backend.scenarios.format.actions import ScenarioAction
from quarterdeck.backend.scenarios.format.clocks import Clock, Latency, LatencyModel
from quarterdeck.backend.scenarios.format.questions import ScenarioQuestion
from quarterdeck.backend.scenarios.format.values import (
    AddressText,
    AnyLabels,
    Duration,
    Entries,
    Label,
    Labels,
    Members,
    MessageKinds,
    Name,
    ScenarioModel,
    Version,
    duration_text,
    known,
    plain_value,
)

UNREACHABLE = "unreachable"
"""The kind of the news that a member cannot be reached."""


class ScheduleDoesNotFit(ValueError):
    """A schedule asks for an impossible event: its scenario, model or core differs from the present one."""


class OnItsWay(ScenarioModel):
    """A message on its way. Where several of a kind are between two members, `which` counts them, in the order of their text."""

    source: Label = Field(alias="from")
    target: Label = Field(alias="to")
    kind: Annotated[str, known("message", (*MESSAGE_KINDS, UNREACHABLE))]
    which: Annotated[int, Field(ge=1, strict=True)] = 1


class ScheduledChoice(ScenarioModel):
    """The next event: a message arrives, gets lost, or arrives and is still on its way; or a member is woken by its clock."""

    deliver: OnItsWay | None = None
    drop: OnItsWay | None = None
    duplicate: OnItsWay | None = None
    tick: Label | None = None

    @model_validator(mode="after")
    def _just_one(self) -> ScheduledChoice:
        if len(self.model_fields_set) != 1 or getattr(self, self.kind) is None:
            raise ValueError("is exactly one of deliver, drop, duplicate and tick; begin each with its own dash")
        return self

    @property
    def kind(self) -> Literal["deliver", "drop", "duplicate", "tick"]:
        return next(iter(self.model_fields_set))  # type: ignore[arg-type]

    @property
    def message(self) -> OnItsWay | None:
        """The message that it happens to; None for a tick."""
        return self.deliver or self.drop or self.duplicate

    def text(self) -> str:
        message = self.message
        if message is None:
            return f"tick {self.tick}"
        which = f" ({message.which})" if message.which > 1 else ""
        return f"{self.kind} {message.kind}{which} {message.source} → {message.target}"


__all__ = ["ClockSettings", "Expect", "Jump", "LatencySettings", "Scenario", "ScenarioQuestion", "ScenarioStep"]


class MigrationsExpectation(ScenarioModel):
    """How many migrations may have begun since the last action."""

    at_most: Version = Field(alias="at-most")


class ExpectedValue(ScenarioModel):
    """The value that the latest `get` of a key since the last action found; `is: null` stands for no value."""

    map: Name = "map"
    key: Name
    value: str | None = Field(alias="is")


PartitionId = Annotated[int, Field(ge=0)]


def _known_unsafety(value: object) -> object:
    if not isinstance(value, bool) and value not in get_args(Unsafety):
        raise ValueError(
            f"{value!r} is not known here; write true, false, or what is missing: {', '.join(get_args(Unsafety))}"
        )
    return value


class Expect(ScenarioModel):
    """What must hold, at once or `within` a time. Views are compared as sets; `order` holds them from the oldest member on.

    `event`, `never`, `migrations` and `value` look at the records since the last action other than `wait`, or since this
    step began. With `never`, the whole of `within` passes first and everything else has to hold at its end. `refused` and
    `not-merging` are parts of the reason.
    """

    within_us: Duration | None = Field(default=None, alias="within")
    since: Literal["action", "here"] = "action"
    views: dict[Label, Labels] = {}
    order: dict[Label, Labels] = {}
    masters: dict[Label, Label] = {}
    versions: dict[Label, Version] = {}
    version_at_least: Version | None = Field(default=None, alias="version-at-least")
    one_cluster: bool | None = Field(default=None, alias="one-cluster", strict=True)
    suspects: dict[Label, AnyLabels] = {}
    removed: AnyLabels = ()
    state: dict[Label, ClusterState] = {}
    held_back: AnyLabels | None = Field(default=None, alias="held-back")
    not_merging: dict[Label, str] = Field(default={}, alias="not-merging")
    refused: str | None = None
    event: EventPatterns = ()
    never: EventPatterns = ()
    table: dict[PartitionId, tuple[Label | None, ...]] = {}
    balanced: bool | None = Field(default=None, strict=True)
    safe: (
        Annotated[bool | Unsafety, BeforeValidator(_known_unsafety, json_schema_input_type=bool | Unsafety)] | None
    ) = None
    no_lost_writes: Literal[True] | None = Field(default=None, alias="no-lost-writes")
    migrations: MigrationsExpectation | None = None
    value: ExpectedValue | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Expect:
        if not self.model_fields_set - {"within_us", "since"}:
            raise ValueError(
                "expects nothing; name at least one of views, masters, versions, one-cluster, state, event, never, table, safe"
            )
        if self.since == "here" and not self.within_us:
            raise ValueError("looks at what happens from here on, and lasts no time; add within: how long")
        return self

    @property
    def since_text(self) -> str:
        """From when on records count, in words."""
        return "the last action" if self.since == "action" else "this step began"

    def text(self) -> str:
        within = f"within {duration_text(self.within_us)}: " if self.within_us is not None else ""
        return within + self.fact()

    def fact(self) -> str:
        """Return the expectation without its time limit."""
        parts = [f"{one}'s list is {', '.join(view)}" for one, view in self.views.items()]
        parts += [f"{one}'s list is {', '.join(view)} in this order" for one, view in self.order.items()]
        parts += [follows_text(one, master) for one, master in self.masters.items()]
        parts += [f"{one} stands at version {version}" for one, version in self.versions.items()]
        parts += [f"every version is at least {self.version_at_least}"] * (self.version_at_least is not None)
        if self.one_cluster is not None:
            parts.append("all members form one cluster" if self.one_cluster else "the members form several clusters")
        parts += [f"{one} suspects {', '.join(them) or 'nobody'}" for one, them in self.suspects.items()]
        parts += [f"{', '.join(self.removed)} removed from the others' lists"] * bool(self.removed)
        parts += [f"{one} believes that the cluster is {state}" for one, state in self.state.items()]
        if self.held_back is not None:
            parts.append(f"held back: {', '.join(self.held_back) or 'nobody'}")
        parts += [f"{one} does not merge: {reason}" for one, reason in self.not_merging.items()]
        parts += [f"the last command is refused: {self.refused}"] * (self.refused is not None)
        parts += map(event_text, self.event)
        parts += [f"no {event_text(pattern).removeprefix('event ')}" for pattern in self.never]
        parts += self._texts_about_data()
        return "; ".join(parts)

    def _texts_about_data(self) -> list[str]:
        parts = [
            f"partition {partition} is held by {', '.join(label or '-' for label in labels)}"
            for partition, labels in self.table.items()
        ]
        parts += [f"the table is {'' if self.balanced else 'not '}balanced"] * (self.balanced is not None)
        if self.safe is not None:
            why = f": {self.safe}" if isinstance(self.safe, str) else ""
            parts.append(f"all data is {'' if self.safe is True else 'not '}safe{why}")
        parts += ["no acknowledged write is lost"] * (self.no_lost_writes is not None)
        if self.migrations is not None:
            parts.append(f"at most {self.migrations.at_most} migrations")
        if self.value is not None:
            parts.append(f"{self.value.key} of {self.value.map} was read as {self.value.value or 'nothing'}")
        return parts


class ScenarioStep(ScenarioModel):
    """One step: something to say, to ask the trainee, to do or to expect, what happens next, or, at the end, free play."""

    say: str | None = None
    ask: ScenarioQuestion | None = None
    do: ScenarioAction | None = None
    schedule: tuple[ScheduledChoice, ...] | None = None
    expect: Expect | None = None
    free_play: Literal[True] | None = Field(default=None, alias="free-play")

    @model_validator(mode="after")
    def _just_one(self) -> ScenarioStep:
        if len(self.model_fields_set) != 1:
            raise ValueError("a step is exactly one of say, ask, do, schedule and expect; begin each with its own dash")
        if all(part is None for part in (self.say, self.ask, self.do, self.schedule, self.expect, self.free_play)):
            raise ValueError("says, does and expects nothing; put something behind the colon")
        return self

    @property
    def is_silent(self) -> bool:
        """Whether nothing is done and nothing is checked in it."""
        return self.do is None and self.schedule is None and self.expect is None

    def summary(self) -> tuple[str, str]:
        """Return the kind of the step, as it is written, and its text in one line."""
        if self.say is not None:
            return "say", " ".join(paragraphs(self.say))
        if self.ask is not None:
            choices = f" ({'; '.join(self.ask.choices)})" if self.ask.choices else ""
            return "ask", f"{self.ask.question}{choices}"
        if self.do is not None:
            return "do", self.do.text()
        if self.schedule is not None:
            return "schedule", "; ".join(choice.text() for choice in self.schedule)
        if self.expect is not None:
            return "expect", self.expect.text()
        return "free-play", ""


EMPHASIS = re.compile(r"\*\*|(?<!\w)\*(?=\w)|(?<=[\w.!?])\*(?!\w)|`")


def without_emphasis(markdown: str) -> str:
    """Return the words of a script without the marks of emphasis."""
    return EMPHASIS.sub("", markdown)


def paragraphs(markdown: str) -> list[str]:
    """Return the paragraphs of a script's words, each in one line, without the marks of emphasis."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", without_emphasis(markdown).strip())]


class LatencySettings(ScenarioModel):
    """How long messages take in a simulated run (`backend.scenarios.format.clocks`)."""

    model: LatencyModel = "uniform"
    least_us: Duration = Field(default=Latency.least_us, alias="least")
    typical_us: Duration = Field(default=Latency.typical_us, alias="typical")
    most_us: Duration = Field(default=Latency.most_us, alias="most")

    @model_validator(mode="after")
    def _possible(self) -> LatencySettings:
        self.latency()
        return self

    def latency(self) -> Latency:
        return Latency(self.model, self.least_us, self.typical_us, self.most_us)


class Jump(ScenarioModel):
    """A clock leaps ahead `by_us` at the moment `at_us` of the run."""

    at_us: Duration = Field(alias="at")
    by_us: Duration = Field(alias="by")


class ClockSettings(ScenarioModel):
    """A member's own clock in a simulated run: seconds that it gains in a second, and when it leaps ahead."""

    rate: float = Field(default=1.0, ge=0.1, le=10)
    jumps: tuple[Jump, ...] = ()

    def clock(self) -> Clock:
        return Clock(self.rate, {jump.at_us: jump.by_us for jump in self.jumps})


Values = dict[str, Annotated[Any, AfterValidator(plain_value)]]
"""Of properties by name."""


PROMPT = ("heartbeat",)
"""The kinds of messages that no schedule names."""

NOT_WITH_SCHEDULE = frozenset({"member_settings", "cluster_names", "lite", "zones", "addresses", "latency", "clocks"})
"""The fields that a scenario with a schedule cannot have."""


class Scenario(ScenarioModel):
    """A whole scenario.

    `members` start in this order, but for those that are `late`: they wait for a `start` step. Those that are `lite` hold no
    data. `zones` names where members stand, for groups that are zone-aware. `member_settings` and `cluster_names` hold for a
    member in each of its incarnations.

    `join_lists` holds only those that do not list all members. `latency` and `clocks` are for simulated runs: live members
    have the network and the clock of their machine. With `addresses` or a schedule it runs simulated only. Messages of the kinds
    in `prompt` arrive at once, where a schedule says when the others do. `chapter`, `goal`, `minutes` and
    `seed_of` are for trainees: where it belongs, what is learnt, how long that takes, and in which document to read more.
    """

    title: str
    summary: str = ""
    chapter: str = ""
    goal: str = ""
    minutes: float | None = Field(default=None, gt=0, le=600)
    seed_of: str = Field(default="", alias="seed-of")
    members: Members
    settings: Values = {}
    member_settings: dict[Label, Values] = Field(default={}, alias="member-settings")
    cluster_names: dict[Label, Name] = Field(default={}, alias="cluster-names")
    join_lists: dict[Label, Entries] = Field(default={}, alias="join-lists")
    late: AnyLabels = ()
    lite: AnyLabels = ()
    zones: dict[Label, str] = {}
    addresses: dict[Label, AddressText] = {}
    latency: LatencySettings = LatencySettings()
    clocks: dict[Label, ClockSettings] = {}
    prompt: MessageKinds = PROMPT
    steps: tuple[ScenarioStep, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _schedule_decides(self) -> Scenario:
        if self.has_schedule and (unused := ", ".join(sorted(self.model_fields_set & NOT_WITH_SCHEDULE))):
            raise ValueError(
                f"has a schedule, in which messages take no time and members are alike; leave out {unused}"
            )
        return self

    @property
    def has_schedule(self) -> bool:
        return any(step.schedule is not None for step in self.steps)

    @property
    def questions(self) -> int:
        """How many questions it asks a trainee."""
        return sum(step.ask is not None for step in self.steps)

    def refusal_is_expected(self, number: int) -> bool:
        """Whether the step after step `number`, words and questions left aside, expects that one to be refused."""
        following = next((step for step in self.steps[number:] if not step.is_silent), None)
        return following is not None and following.expect is not None and following.expect.refused is not None

    def only_simulated(self) -> str:
        """Return the parts that no live cluster can play, in words; empty when all of it can be played live."""
        if self.has_schedule:
            return "it has a schedule, and no real network follows one"
        if self.addresses:
            return "it gives members addresses, and live members have those of this machine"
        for number, step in enumerate(self.steps, start=1):
            for command in step.do.commands(lambda _: True) if step.do is not None else ():
                if description_of(command).ability == "simulation":
                    return f"step {number} does {step.do.word}, which no real member or network can" if step.do else ""
        return ""

    def timing(self) -> Settings:
        """Return the training preset with the scenario's settings on top.

        Raises:
            BadProperty: A setting is unknown or has a bad value.
        """
        return Settings.of(self.settings, preset="training")

    def settings_of(self) -> dict[str, Settings]:
        """Return the settings of the members that have some of their own, by label.

        Raises:
            BadProperty: A setting is unknown or has a bad value.
        """
        common = self.timing()
        return {label: common.with_properties(values) for label, values in self.member_settings.items()}
