"""Reading model files: shipped models by name, others by path. Every mistake is one error with file, line and field."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from quarterdeck.backend.core.commands import Command, CutLink, Partition
from quarterdeck.backend.core.properties import BadProperty, PropertyValue, Settings
from quarterdeck.backend.documents.validation import did_you_mean
from quarterdeck.backend.documents.yaml_document import (
    BadDocument,
    FieldPath,
    Problem,
    YamlDocument,
    names_in,
    problems_of,
    text_of,
)
from quarterdeck.backend.scenarios.format.actions import ScenarioAction
from quarterdeck.backend.scenarios.format.reading import known_in_scenarios
from quarterdeck.backend.scenarios.format.values import Label, Labels, Members, MessageKinds, ScenarioModel
from quarterdeck.backend.simulation.model_checking.model import KNOWN_COMMANDS, Bounds, Model

SHIPPED = Path(__file__).parent / "models"
LABELS = tuple("abcdefgh")
"""The names of members that a model does not name itself."""

MOST_MEMBERS = 8
"""More members have more states than any machine looks through."""


class BadModel(BadDocument):
    """A model that cannot be used. The message names file, line and field, the problem, and a remedy."""


def _known_to_models(action: ScenarioAction) -> ScenarioAction:
    commands = list(action.commands(lambda _: True))
    if not commands:
        raise ValueError(f"{action.word} is not a command; a model's clock goes on by itself")
    for command in commands:
        if not isinstance(command, KNOWN_COMMANDS):
            raise ValueError(f"{action.word} is nothing that a model can do; delays, losses and crashes are its bounds")
        if isinstance(command, CutLink | Partition) and command.mode == "reset":
            raise ValueError("a model's links are cut without a word; leave out mode: reset")
    return action


CommandAction = Annotated[ScenarioAction, AfterValidator(_known_to_models)]


class NoSuchSize(ValueError):
    """The model file has no variant for this number of members."""


class SizeFile(ScenarioModel):
    """The changes for another number of members at first. Fields without a value stay."""

    members: Members
    before: tuple[CommandAction, ...] | None = None
    commands: tuple[CommandAction, ...] | None = None


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
    bounds: Bounds = Bounds()
    sizes: dict[int, SizeFile] = {}

    def model(self, name: str, members: int | None = None) -> Model:
        """Make the model with this number of members at first.

        Raises:
            NoSuchSize: The file does not say how the model looks with so many.
        """
        size = self._size(len(self.members) if members is None else members)
        before = self.before if size.before is None else size.before
        commands = self.commands if size.commands is None else size.commands
        return Model(
            name,
            self.title,
            size.members,
            self.bounds,
            _commands(commands),
            self.later,
            self.settings,
            self.join_lists,
            _commands(before),
            self.prompt,
            self.calm_every,
        )

    def _size(self, members: int) -> SizeFile:
        if members in self.sizes:
            return self.sizes[members]
        missing = members - len(self.members)
        if missing == 0:
            return SizeFile.model_construct(members=self.members)
        is_divided = any(
            isinstance(command, Partition) for command in (*_commands(self.before), *_commands(self.commands))
        )
        if missing < 0 or not self.members or is_divided:
            sizes = ", ".join(map(str, sorted({len(self.members), *self.sizes})))
            raise NoSuchSize(f"it does not say what {members} members do; it is for {sizes}")
        free = (label for label in LABELS if label not in (*self.members, *self.later))
        return SizeFile.model_construct(members=(*self.members, *islice(free, missing)))


def _known_labels(data: dict[str, Any]) -> list[str]:
    sizes = data.get("sizes")
    parts = [data, *(sizes.values() if isinstance(sizes, dict) else ())]
    named = [part[key] for part in parts if isinstance(part, dict) for key in ("members", "later") if key in part]
    return list(dict.fromkeys(label for value in named for label in TypeAdapter(Members).validate_python(value)))


def shipped_models() -> tuple[str, ...]:
    """Return the names of the models that come with the program."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.yaml")))


def load_model(name: str, members: int | None = None) -> Model:
    """Load the shipped model of this name, or the one in the file at this path, with this number of members at first.

    Raises:
        BadModel: There is none, or it cannot be read.
    """
    if name in shipped_models():
        return read_model((SHIPPED / f"{name}.yaml").read_text(), f"{name}.yaml", name, members)
    path = Path(name)
    if not path.suffix and not path.exists():
        raise BadModel(name, 0, "", f"there is no such model and no such file; {did_you_mean(name, shipped_models())}")
    return read_model(text_of(path, BadModel), name, path.stem, members)


def read_model(text: str, file: str, name: str, members: int | None = None) -> Model:
    """Read the model that `text` holds; `file` names it in errors.

    Raises:
        BadModel: The text is no model.
    """
    document = YamlDocument(text, file, BadModel)
    data = document.fields("is no model; write title, members and commands as keys")
    try:
        model = ModelFile.model_validate(data, context={"labels": _known_labels(data)}).model(name, members)
    except ValidationError as failure:
        raise document.first(problems_of(failure, _known), ("groups",)) from failure
    except NoSuchSize as refusal:
        raise BadModel(file, 0, "--members", str(refusal)) from None
    document.refuse(_problems(model))
    return model


def _known(place: FieldPath) -> tuple[str, Iterable[str]]:
    if place[0] in ("before", "commands"):
        return known_in_scenarios(("steps", 0, "do", *place[2:]))
    return names_in(ModelFile)(place)


def _problems(model: Model) -> list[Problem]:
    problems: list[Problem] = []
    if not 1 <= len(model.labels) <= MOST_MEMBERS:
        problem = f"{len(model.labels)} members cannot be looked through; give 1 to {MOST_MEMBERS}"
        problems.append((("members",), problem))
    if twice := set(model.members) & set(model.later):
        problems.append((("later",), f"{', '.join(sorted(twice))} is among the members already; name each once"))
    try:
        Settings.of(dict(model.properties), preset="training")
    except BadProperty as problem:
        problems.append((("settings", problem.name), problem.problem))
    return problems


def _commands(actions: tuple[ScenarioAction, ...]) -> tuple[Command, ...]:
    """Return the commands of these actions. A restart is a kill and a start: between them the member is down."""
    return tuple(command for action in actions for command in action.commands(lambda _: True))
