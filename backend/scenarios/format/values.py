"""The kinds of values that stand in scenario files: durations, labels, names of events and of messages."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationInfo,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from quarterdeck.backend.core.address import DEFAULT_PORT, BadJoinList, parse_address, parse_join_list
from quarterdeck.backend.core.events import EVENT_KINDS
from quarterdeck.backend.core.messages import MESSAGE_KINDS
from quarterdeck.backend.core.properties import SECOND_US, PropertyValue, check_changeable
from quarterdeck.backend.documents.validation import did_you_mean

LABEL_FORM = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
DURATION_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|m|h)")
UNIT_US = {"us": 1, "ms": 1_000, "s": SECOND_US, "m": 60_000_000, "h": 3_600_000_000}
MOST_MEMBERS = 1_000


def parse_duration(value: object) -> int:
    """Microseconds of a text such as ``20s``, ``500ms`` or ``2m``. Raises `ValueError`."""
    fit = DURATION_FORM.fullmatch(value.strip()) if isinstance(value, str) else None
    if fit is None:
        raise ValueError(f"{value!r} is not a duration; write a number and its unit, as in 20s, 500ms or 2m")
    return round(float(fit[1]) * UNIT_US[fit[2]])


def duration_text(duration_us: int) -> str:
    """Return a duration in the longest unit that divides it, as a scenario file would have it."""
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


def _join_entry(entry: str, info: ValidationInfo) -> str:
    """Check an entry of a join list: a label or an address.

    A host without a port has to look like one, so that a mistaken label is reported as that.

    Raises:
        ValueError: It is neither.
    """
    labels = (info.context or {}).get("labels")
    if labels is None or entry in labels:
        return entry
    if "." not in entry and ":" not in entry:
        raise ValueError(
            f"there is no member {entry!r}; {did_you_mean(entry, labels)}; a host is written with its port"
        )
    try:
        parse_join_list([entry])
    except BadJoinList as problem:
        raise ValueError(str(problem).partition(": ")[2]) from problem
    return entry


def one_or_many(value: object) -> object:
    """Return a single text as a list of one."""
    return [value] if isinstance(value, str) else value


def without_repeats(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return the same labels.

    Raises:
        ValueError: A label is there twice.
    """
    for place, label in enumerate(labels):
        if label in labels[:place]:
            raise ValueError(f"{label!r} stands there twice; name each member once")
    return labels


def _number_of_members(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= MOST_MEMBERS:
            raise ValueError(
                f"{value} is not a possible number of members; give 1 to {MOST_MEMBERS}, or a list of labels"
            )
        return [f"n{number}" for number in range(1, value + 1)]
    return value


def known(what: str, names: Collection[str]) -> AfterValidator:
    """Return a validator that refuses a name that is not among `names`; `what` says what these name."""

    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"there is no {what} {name!r}; {did_you_mean(name, names)}")
        return name

    return AfterValidator(check)


def plain_value(value: object) -> object:
    """Return the same value.

    Raises:
        ValueError: It is a list or a mapping.
    """
    if not isinstance(value, str | int | float | bool):
        raise ValueError(f"{value!r} is not a single value; write a text, a number or true/false")
    return value


def settings_text(properties: Mapping[str, object]) -> str:
    """Properties in one line."""
    return ", ".join(f"{name} = {value}" for name, value in properties.items())


def _changeable(properties: dict[str, PropertyValue]) -> dict[str, PropertyValue]:
    check_changeable(properties)
    return properties


Duration = Annotated[
    int,
    BeforeValidator(parse_duration, json_schema_input_type=Annotated[str, Field(pattern=f"^{DURATION_FORM.pattern}$")]),
    PlainSerializer(duration_text),
]
"""Microseconds, written as a number with its unit."""

Label = Annotated[str, AfterValidator(_known_label)]
OneOrMany = BeforeValidator(one_or_many, json_schema_input_type=str | tuple[str, ...])
AnyLabels = Annotated[tuple[Label, ...], OneOrMany, AfterValidator(without_repeats)]
Labels = Annotated[AnyLabels, Field(min_length=1)]
Members = Annotated[
    tuple[Annotated[str, AfterValidator(_well_formed_label)], ...],
    BeforeValidator(_number_of_members, json_schema_input_type=int | tuple[str, ...]),
    AfterValidator(without_repeats),
    Field(min_length=1, max_length=MOST_MEMBERS),
]
EventKind = Annotated[str, known("event", EVENT_KINDS), Field(json_schema_extra={"enum": sorted(EVENT_KINDS)})]
MessageKind = Annotated[str, known("message", MESSAGE_KINDS), Field(json_schema_extra={"enum": sorted(MESSAGE_KINDS)})]
MessageKinds = Annotated[
    tuple[MessageKind, ...], BeforeValidator(one_or_many, json_schema_input_type=MessageKind | tuple[MessageKind, ...])
]
Entries = Annotated[tuple[Annotated[str, AfterValidator(_join_entry)], ...], OneOrMany, Field(min_length=1)]
"""Of a join list: labels, addresses, and hosts, which stand for a few ports."""
Version = Annotated[int, Field(ge=0, strict=True)]
Properties = Annotated[
    dict[str, Annotated[Any, AfterValidator(plain_value)]], Field(min_length=1), AfterValidator(_changeable)
]
"""Values of the properties that a running member can change, by name."""
Name = Annotated[str, Field(min_length=1)]
"""Of a map or a key: any text."""

AddressText = Annotated[str, AfterValidator(lambda text: parse_address(text, DEFAULT_PORT))]
"""Of a member; the port may be left out."""


class ScenarioModel(BaseModel):
    """A part of a scenario: unknown fields are errors, and nothing changes once it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    short_form: ClassVar[JsonSchemaValue] = {}
    """The JSON Schema of the short form that may replace the fields."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of the fields, and of the short form where it exists."""
        fields = handler(schema)
        return {"anyOf": [cls.short_form, fields]} if cls.short_form else fields
