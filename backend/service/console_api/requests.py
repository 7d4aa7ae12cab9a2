"""Bodies of requests to the console's interface (docs/reference/http-api.md): unknown fields are errors, nothing is converted."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.properties import FIXED_AT_START, PROPERTIES

BASE64 = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
"""As RFC 4648 has it, with padding."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class RequestModel(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _only_text(cls, given: object) -> object:
        r"""Refuse halves of letters, which JSON can write as ``\\ud800`` and which could be neither stored nor sent back."""
        if not _is_text(given):
            raise ValueError("there is a letter that is none; write both halves of a surrogate pair")
        return given


class NewJoinList(RequestModel):
    addresses: tuple[str, ...] = Field(
        max_length=1_000,
        strict=False,
        description="host:port each; one without a port stands for a few ports",
        examples=[["127.0.0.1:5701", "127.0.0.1:5702"]],
    )


class SecretTurn(RequestModel):
    do: Literal["add", "use", "remove"]
    secret: str = Field(min_length=1, max_length=1_000, repr=False, examples=["the content of the file"])


class StateWanted(RequestModel):
    state: ClusterState = Field(examples=["FROZEN"])


class SuspectWanted(RequestModel):
    suspect: str = Field(max_length=300, description="its address", examples=["127.0.0.1:5702"])


class NewProperties(RequestModel):
    properties: dict[str, bool | int | float | str] = Field(
        min_length=1,
        max_length=200,
        examples=[{"hazelcast.merge.next.run.delay.seconds": 30}],
        json_schema_extra={"propertyNames": {"enum": [*sorted(set(PROPERTIES) - FIXED_AT_START)]}},
    )


def _alone(given: str, other: str) -> dict[str, JsonValue]:
    return {"required": [given], "properties": {given: {"type": "string"}, other: {"type": "null"}}}


class NewValue(RequestModel):
    """Exactly one of the two."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"value": "Byzantium"}],
            "oneOf": [_alone("value", "value_base64"), _alone("value_base64", "value")],
        }
    )
    value: str | None = None
    value_base64: str | None = Field(default=None, pattern=BASE64)

    @model_validator(mode="after")
    def _one_of_two(self) -> NewValue:
        if (self.value is None) == (self.value_base64 is None):
            raise ValueError("give either value, as text, or value_base64")
        return self


class NewEntry(NewValue):
    """A value, and the key to store it under."""

    key: str = Field(min_length=1)


class NewEntries(RequestModel):
    """Many at once; each is a put of its own."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"entries": [{"key": "a", "value": "Byzantium"}]}]})
    entries: list[NewEntry]


class NewMapEntries(NewEntries):
    """Many entries of one map, which may have any name."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"map": "cities", "entries": [{"key": "a", "value": "Byzantium"}]}]}
    )
    map: str = Field(min_length=1)


def _is_text(given: object) -> bool:
    if isinstance(given, str):
        return given.isascii() or _SURROGATE.search(given) is None
    if isinstance(given, dict):
        return all(map(_is_text, given)) and all(map(_is_text, given.values()))
    return not isinstance(given, list) or all(map(_is_text, given))
