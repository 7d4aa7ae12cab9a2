"""Reading model files: the shipped ones by name, others by path. Whatever is wrong is one error with file, line and field."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, get_args

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from quarterdeck.backend.core.commands.commands import (
    CallMap,
    Command,
    CutLink,
    DropMessages,
    Heal,
    HealLink,
    KillMember,
    Partition,
    StartMember,
)
from quarterdeck.backend.core.inputs import MemberOrder
from quarterdeck.backend.core.properties import BadProperty, PropertyValue, Settings
from quarterdeck.backend.documents.yaml_document import (
    BadDocument,
    FieldPath,
    Problem,
    YamlDocument,
    did_you_mean,
    names_in,
    problems_of,
    text_of,
)
from quarterdeck.backend.simulation.model_checking.model import Bounds, Model
from quarterdeck.backend.simulation.scenarios.actions import Action
from quarterdeck.backend.simulation.scenarios.reading import known_in_scenarios
from quarterdeck.backend.simulation.scenarios.values import Label, Labels, Members, MessageKinds, ScenarioModel

SHIPPED = Path(__file__).parent / "models"
MOST_MEMBERS = 8
"""More members have more states than any machine looks through."""

KNOWN_COMMANDS = (
    *(StartMember, KillMember, CallMap, Partition, CutLink, DropMessages, Heal, HealLink),
    *get_args(MemberOrder),
)
"""What `transitions` carries out."""

Count = Annotated[int, Field(ge=0, strict=True)]


class BadModel(BadDocument):
    """A model that cannot be used. The message names file, line and field, the problem, and a remedy."""


class BoundsFile(ScenarioModel):
    """The bounds of a model, as they are written."""

    drops: Count = 0
    duplicates: Count = 0
    crashes: Count = 0
    restarts: Count = 0
    late: Count = 0
    ticks: Annotated[int, Field(ge=1, strict=True)] = 10


def _known_to_models(action: Action) -> Action:
    commands = list(action.commands(lambda _: True))
    if not commands:
        raise ValueError(f"{action.word} is no command; a model's clock goes on by itself")
    for command in commands:
        if not isinstance(command, KNOWN_COMMANDS):
            raise ValueError(f"{action.word} is nothing that a model can do; delays, losses and crashes are its bounds")
        if isinstance(command, CutLink | Partition) and command.mode == "reset":
            raise ValueError("a model's links are cut without a word; leave out mode: reset")
    return action


CommandAction = Annotated[Action, AfterValidator(_known_to_models)]


class ModelFile(ScenarioModel):
    """A model, as it is written. `members` have formed a cluster before it begins; `later` are started by commands."""

    title: str
    members: Members = ()
    later: Members = ()
    settings: dict[str, PropertyValue] = {}
    join_lists: dict[Label, Labels] = Field(default={}, alias="join-lists")
    before: tuple[CommandAction, ...] = ()
    commands: tuple[CommandAction, ...] = ()
    prompt: MessageKinds = ("heartbeat",)
    calm_every: Annotated[int, Field(ge=1, strict=True)] = Field(default=500, alias="calm-every")
    bounds: BoundsFile = BoundsFile()

    def model(self, name: str) -> Model:
        """The model itself."""
        return Model(
            name,
            self.title,
            self.members,
            Bounds(**self.bounds.model_dump()),
            _commands(self.commands),
            self.later,
            self.settings,
            self.join_lists,
            _commands(self.before),
            self.prompt,
            self.calm_every,
        )


def shipped_models() -> tuple[str, ...]:
    """The names of the models that come with the program."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.yaml")))


def load_model(name: str) -> Model:
    """The shipped model of this name, or the one in the file at this path. Raises `BadModel`."""
    if name in shipped_models():
        return read_model((SHIPPED / f"{name}.yaml").read_text(), f"{name}.yaml", name)
    path = Path(name)
    if not path.suffix and not path.exists():
        raise BadModel(name, 0, "", f"there is no such model and no such file; {did_you_mean(name, shipped_models())}")
    return read_model(text_of(path, BadModel), name, path.stem)


def read_model(text: str, file: str, name: str) -> Model:
    """The model that `text` holds; `file` names it in errors. Raises `BadModel`."""
    document = YamlDocument(text, file, BadModel)
    data = document.fields("is no model; write title, members and commands as keys")
    try:
        known = [
            label
            for key in ("members", "later")
            if key in data
            for label in TypeAdapter(Members).validate_python(data[key])
        ]
        model = ModelFile.model_validate(data, context={"labels": known}).model(name)
    except ValidationError as failure:
        raise document.first(problems_of(failure, _known), ("groups",)) from failure
    document.refuse(_problems(model))
    return model


def _known(place: FieldPath) -> tuple[str, Iterable[str]]:
    if place[0] in ("before", "commands"):
        return known_in_scenarios(("steps", 0, "do", *place[2:]))
    return names_in(ModelFile)(place)


def _problems(model: Model) -> list[Problem]:
    problems: list[Problem] = []
    if not 1 <= len(model.labels) <= MOST_MEMBERS:
        problems.append(
            (("members",), f"{len(model.labels)} members cannot be looked through; give 1 to {MOST_MEMBERS}")
        )
    if twice := set(model.members) & set(model.later):
        problems.append((("later",), f"{', '.join(sorted(twice))} is among the members already; name each once"))
    try:
        Settings.of(dict(model.properties), preset="training")
    except BadProperty as problem:
        problems.append((("settings", problem.name), str(problem).removeprefix(f"{problem.name}: ")))
    return problems


def _commands(actions: tuple[Action, ...]) -> tuple[Command, ...]:
    """A restart is a kill and a start: between them the member is down."""
    return tuple(command for action in actions for command in action.commands(lambda _: True))
