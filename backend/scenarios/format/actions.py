"""The action of a `do` step of a scenario, as models, and the operator's commands that it stands for.

How a command is written in a scenario follows from the catalogue of commands and from the kinds of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import msgspec
from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, PlainSerializer, create_model, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from quarterdeck.backend.commands.catalogue import (
    CATALOGUE,
    Argument,
    ArgumentKind,
    CommandDescription,
    described,
    description_of,
)
from quarterdeck.backend.core import commands as do
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.scenarios.format.values import (
    AddressText,
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
    one_or_many,
    settings_text,
    without_repeats,
)

LinkFaults = Annotated[
    tuple[do.LinkFault, ...],
    BeforeValidator(one_or_many, json_schema_input_type=do.LinkFault | tuple[do.LinkFault, ...]),
]

YAML_TYPES: dict[ArgumentKind, Any] = {
    "member": Label,
    "other member": Label,
    "members": Labels,
    "block mode": do.BlockMode,
    "duration": Duration,
    "probability": Annotated[float, Field(ge=0, le=1)],
    "message kinds": MessageKinds,
    "link faults": LinkFaults,
    "address": AddressText,
    "join list": Entries,
    "cluster state": ClusterState,
    "properties": Properties,
    "event kind": EventKind,
    "flag": Annotated[bool, Field(strict=True)],
    "text": Name,
    "bytes": str,
    "count": Annotated[int, Field(ge=1)],
}
"""The values that a file may have for arguments of each kind."""

YAML_EXAMPLES: dict[ArgumentKind, str] = {
    "other member": "byzantium",
    "message kinds": "[heartbeat]",
    "address": "'127.0.0.1:5711'",
    "join list": "[athens, byzantium]",
    "cluster state": "FROZEN",
    "properties": "{hazelcast.merge.next.run.delay.seconds: 1}",
    "event kind": "claim-started",
    "count": "4",
}

SENTENCE_PARTS: dict[ArgumentKind, Callable[[Any], str]] = {
    "members": ", ".join,
    "groups": lambda groups: " | ".join(map(", ".join, groups)),
    "duration": duration_text,
    "message kinds": lambda kinds: ", ".join(kinds) or "no",
    "link faults": ", ".join,
    "join list": ", ".join,
    "properties": settings_text,
    "bytes": bytes.decode,
}
"""How sentences say arguments of the kinds that are not said as they are."""

MAP_OF_SCENARIOS = "map"


class Groups(ScenarioModel):
    groups: tuple[Labels, ...] = Field(min_length=2)
    mode: do.BlockMode = "blackhole"
    short_form = {
        "type": "array",
        "items": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    }

    @model_validator(mode="before")
    @classmethod
    def _bare_list(cls, value: object) -> object:
        return {"groups": value} if isinstance(value, list | tuple) else value

    @model_validator(mode="after")
    def _each_member_once(self) -> Groups:
        without_repeats(tuple(label for group in self.groups for label in group))
        return self


class LinksToHeal(ScenarioModel):
    """Heal all links unless both ends are named, and all conditions of these links unless some are named."""

    sources: Labels | None = Field(default=None, alias="from")
    targets: Labels | None = Field(default=None, alias="to")
    only: LinkFaults = ()
    short_form = {"enum": [None, True]}

    @model_validator(mode="before")
    @classmethod
    def _everything(cls, value: object) -> object:
        return {} if value is None or value is True else value

    @model_validator(mode="after")
    def _both_ends(self) -> LinksToHeal:
        if (self.sources is None) != (self.targets is None):
            raise ValueError("names one end only; give both from and to, or neither to heal everything")
        if self.only and self.sources is None:
            raise ValueError("says what to heal, and not where; give from and to as well")
        return self


class Details(ScenarioModel):
    """Several arguments of a command on a member; the first one may stand alone."""

    short_form = {"type": "string"}

    @model_validator(mode="before")
    @classmethod
    def _bare_word(cls, value: object) -> object:
        return {next(iter(cls.model_fields)): value} if isinstance(value, str) else value


class LoadAction(ScenarioModel):
    """A workload that goes on beside the following steps: at even intervals one of the members is asked for one of the keys.

    Every value that is put is another one. `reads` is the share of gets among the operations. With `skew` the first keys are
    asked for more often than the last: 1 is a little, 9 a lot. With `read-back` the key of each write is read so long after
    it, through the same member.
    """

    at: Labels
    map: Name = MAP_OF_SCENARIOS
    keys: int = Field(default=10, ge=1, le=100_000)
    rate: float = Field(default=10, gt=0, le=100_000)
    """Operations per second."""
    lasting_us: Duration = Field(alias="for")
    reads: float = Field(default=0.5, ge=0, le=1)
    removes: float = Field(default=0, ge=0, le=1)
    value_bytes: int = Field(default=0, alias="value-bytes", ge=0, le=1_000_000)
    """How long values are at least."""
    skew: float = Field(default=0, ge=0, le=100)
    read_back_us: Duration = Field(default=0, alias="read-back")

    @model_validator(mode="after")
    def _shares(self) -> LoadAction:
        if self.reads + self.removes > 1:
            raise ValueError(
                "more reads and removes than there are operations; their shares must not exceed 1 together"
            )
        return self

    def text(self) -> str:
        kind = f"{self.rate:g} operations a second on {self.keys} keys of {self.map}, {self.reads:.0%} of them reads"
        return f"load via {', '.join(self.at)} for {duration_text(self.lasting_us)}: {kind}"


def _each_once(value: object) -> object:
    """Members that come back where they were may stand in a list, or alone."""
    labels = one_or_many(value)
    if isinstance(labels, list | tuple) and all(isinstance(label, str) for label in labels):
        return dict.fromkeys(without_repeats(tuple(labels)))
    return value


Restarts = Annotated[
    dict[Label, AddressText | None],
    BeforeValidator(_each_once, json_schema_input_type=str | tuple[str, ...] | dict[str, str | None]),
    PlainSerializer(lambda addresses: addresses if any(addresses.values()) else list(addresses)),
    Field(min_length=1),
]
"""Members, and where each starts; None: where it was."""


class WaitLimit(ScenarioModel):
    within_us: Duration = Field(alias="within")


class Delay(ScenarioModel):
    """A range may stand in one word: `by: 500ms..5s`."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema with a delay that may be a range."""
        found = handler.resolve_ref_schema(super().__get_pydantic_json_schema__(schema, handler))
        found["properties"]["by"] = {"type": "string"}
        return found

    @model_validator(mode="before")
    @classmethod
    def _range(cls, value: object) -> object:
        if isinstance(value, dict) and isinstance(by := value.get("by"), str) and ".." in by:
            least, _, most = by.partition("..")
            return {**value, "by": least, "up-to": most}
        return value

    @model_validator(mode="after")
    def _not_empty(self) -> Delay:
        least_us, most_us = self.__dict__["delay_us"], self.__dict__["up_to_us"]
        if 0 < most_us < least_us:
            raise ValueError(
                f"the range ends before it begins; write {duration_text(most_us)}..{duration_text(least_us)}"
            )
        return self


def _model(description: CommandDescription, base: type[ScenarioModel], arguments: Iterable[Argument]) -> Any:
    of_command = msgspec.structs.fields(description.operation or description.command)
    defaults: dict[str, Any] = {
        field.name: field.default for field in of_command if field.default is not msgspec.NODEFAULT
    }
    if description.operation is not None:
        defaults["map"] = MAP_OF_SCENARIOS
    fields: dict[str, Any] = {}
    for argument in arguments:
        default = (defaults[argument.name],) if argument.name in defaults else ()
        fields[argument.name] = (YAML_TYPES[argument.kind], Field(*default, alias=argument.key))
    return create_model(description.command.__name__, __base__=base, **fields)


def _form(description: CommandDescription) -> Any:
    """Return the type of the value in a scenario behind the name of a command."""
    if description.target == "everything":
        return LinksToHeal
    if description.target == "groups":
        return Groups
    if description.target == "links" or description.operation is not None:
        # To whom it is done comes first, then flags, then the rest.
        places = {"member": 0, "members": 0, "flag": 1}
        base = Delay if description.command is do.DelayLink else ScenarioModel
        return _model(description, base, sorted(description.arguments, key=lambda one: places.get(one.kind, 2)))
    details = description.details
    if not details:
        return Labels
    of_one = YAML_TYPES[details[0].kind] if len(details) == 1 else _model(description, Details, details)
    table, annotated = cast("tuple[Any, Any]", (dict, Annotated))
    return annotated[table[Label, of_one], Field(min_length=1)]


ACTIONS = {
    described.tag: described
    for described in CATALOGUE
    if described.command is not do.HealLink
    and described.ability != "diagnostics"
    and (described.operation is None or described.sentence)
}
"""The commands that a scenario has an action for, by its name. Some links are healed by the action that heals all."""

FORMS: dict[str, Any] = {tag: _form(one) for tag, one in ACTIONS.items()}

MODELS: dict[str, type[ScenarioModel]] = {
    **{tag: form for tag, form in FORMS.items() if isinstance(form, type)},
    "kill-at": get_args(get_args(FORMS["kill-at"])[0])[1],
    "load": LoadAction,
    "wait-until-safe": WaitLimit,
}
"""The models of the values behind the names of actions, where an action has fields."""


def _fields() -> dict[str, Any]:
    found: dict[str, Any] = {
        tag.replace("-", "_"): (form | None, Field(None, alias=tag)) for tag, form in FORMS.items() if tag != "heal"
    }
    return found | {"heal": (LinksToHeal, Field(default_factory=LinksToHeal))}


if TYPE_CHECKING:
    CommandActions = ScenarioModel
else:
    CommandActions = create_model("CommandActions", __base__=ScenarioModel, **_fields())


class ScenarioAction(CommandActions):
    """The action of a `do` step: exactly one of these, or of the commands."""

    restart: Restarts | None = None
    load: LoadAction | None = None
    wait_until_safe: WaitLimit | None = Field(default=None, alias="wait-until-safe")
    wait: Duration = 0
    short_form = {"type": "string"}

    @model_validator(mode="before")
    @classmethod
    def _bare_word(cls, value: object) -> object:
        return {value: None} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _just_one(self) -> ScenarioAction:
        if len(self.model_fields_set) != 1:
            raise ValueError("holds not exactly one action; give each action a step of its own")
        if getattr(self, self.name) is None:
            raise ValueError(f"{self.word} needs to know whom; write {{{self.word}: {_example(self.word)}}}")
        return self

    @property
    def name(self) -> str:
        return next(iter(self.model_fields_set))

    @property
    def word(self) -> str:
        return self.name.replace("_", "-")

    def commands(self, is_running: Callable[[str], bool]) -> Iterator[do.Command]:
        """Yield the operator's commands of this action; none for `wait`, `wait-until-safe` and `load`.

        A restart kills the member only when `is_running` says so at the moment the command is asked for.
        """
        for label, address in (self.restart or {}).items():
            if is_running(label):
                yield do.KillMember(label)
            if address is not None:
                yield do.MoveMember(label, address)
            yield do.StartMember(label)
        description = ACTIONS.get(self.word)
        if description is not None:
            what: Any = getattr(self, self.name)
            if isinstance(what, LinksToHeal) and what.sources is not None:
                description = described(do.HealLink)
            yield from map(description.make, _arguments(description, what))

    def text(self) -> str:
        what: Any = getattr(self, self.name)
        match self.word:
            case "load":
                text: str = what.text()
                return text
            case "wait-until-safe":
                return f"wait until all data is safe, at most {duration_text(what.within_us)}"
            case "wait":
                return f"wait {duration_text(what)}"
            case "restart":
                return f"restart {', '.join(f'{one} at {where}' if where else one for one, where in what.items())}"
            case word if isinstance(what, tuple):
                return f"{word} {', '.join(what)}"
            case _:
                return "; ".join(map(_sentence, self.commands(lambda _: True)))


def _arguments(description: CommandDescription, what: Any) -> Iterator[dict[str, Any]]:
    """By command name, the arguments that stand for the value behind the name of an action."""
    if isinstance(what, tuple):
        yield from ({"member": label} for label in what)
    elif isinstance(what, dict):
        first, *more = description.details
        for label, value in what.items():
            yield {"member": label} | (dict(value) if more else {first.name: value})
    else:
        found = {argument.name: (argument.kind, getattr(what, argument.name)) for argument in description.arguments}
        yield {name: value.encode() if kind == "bytes" else value for name, (kind, value) in found.items()}


def _sentence(command: do.Command) -> str:
    description = description_of(command)
    values, texts = description.values(command), {}
    for argument in description.arguments:
        value = values[argument.name]
        text = "" if argument.kind == "flag" else SENTENCE_PARTS.get(argument.kind, str)(value)
        texts[argument.name] = argument.said[bool(value)].format(text) if argument.said != ("", "") else text
    return description.sentence.format(**texts)


def _example(word: str) -> str:
    description = ACTIONS.get(word)
    if description is None:
        load = "{at: [athens], keys: 10, rate: 10, for: 20s}"
        return {"wait": "2s", "load": load, "wait-until-safe": "{within: 60s}"}.get(word, "athens")
    details = [(detail, YAML_EXAMPLES[detail.kind]) for detail in description.details if detail.kind in YAML_EXAMPLES]
    if description.target == "groups":
        return "[[athens], [byzantium]]"
    if description.target == "links":
        return f"{{from: athens, to: byzantium, {', '.join(f'{one.key}: {text}' for one, text in details) or '...'}}}"
    if description.operation is not None:
        return f"{{at: athens, {', '.join(f'{detail.key}: {detail.key[0]}' for detail in description.details)}}}"
    return f"{{athens: {details[0][1]}}}" if details else "athens"
