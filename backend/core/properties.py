"""The ``hazelcast.*`` properties: names, defaults, units and bounds (behaviour, section 12), and the settings made of them.

Code reads `Settings`, whose names say their units; people write properties, whose names they know. Two presets exist:
``production``, the documented defaults, and ``training``, seconds instead of minutes (design 5.4).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from typing import Any, Literal

SECOND_US = 1_000_000

Preset = Literal["production", "training"]
PropertyValue = str | int | float | bool


class BadProperty(ValueError):
    """A property with an unknown name or a value out of bounds. `name` is the property; the message has a hint."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name


@dataclass(frozen=True)
class Property:
    """How one field of `Settings` is written by people."""

    name: str
    unit: Literal["seconds"]
    at_least: float
    training: float
    """Value in the training preset, in the property's unit."""


def _seconds(name: str, default: float, *, training: float, at_least: float) -> Any:
    return field(default=int(default * SECOND_US), metadata={"property": Property(name, "seconds", at_least, training)})


@dataclass(frozen=True)
class Settings:
    """Everything that can be set, in microseconds."""

    heartbeat_interval_us: int = _seconds("hazelcast.heartbeat.interval.seconds", 5, training=1, at_least=0.001)
    max_no_heartbeat_us: int = _seconds("hazelcast.max.no.heartbeat.seconds", 60, training=4, at_least=0.001)
    list_publish_interval_us: int = _seconds(
        "hazelcast.member.list.publish.interval.seconds", 60, training=10, at_least=0.001
    )
    mastership_claim_timeout_us: int = _seconds(
        "hazelcast.mastership.claim.timeout.seconds", 120, training=8, at_least=0.001
    )
    max_join_us: int = _seconds("hazelcast.max.join.seconds", 300, training=60, at_least=1)

    @classmethod
    def of(cls, properties: Mapping[str, PropertyValue] | None = None, *, preset: Preset = "production") -> Settings:
        """The preset with `properties` on top. Raises `BadProperty` on the first that cannot be taken."""
        settings = cls()
        if preset == "training":
            settings = settings.with_properties({name: kind.training for name, (_, kind) in PROPERTIES.items()})
        return settings.with_properties(properties or {})

    def with_properties(self, properties: Mapping[str, PropertyValue]) -> Settings:
        """These settings with some properties changed. Raises `BadProperty`; nothing is changed then."""
        changed: dict[str, Any] = {}
        for name, value in properties.items():
            if name not in PROPERTIES:
                raise BadProperty(name, f"there is no such property{_suggestion(name)}")
            attribute, kind = PROPERTIES[name]
            changed[attribute] = _read(kind, value)
        settings = replace(self, **changed)
        settings._check_together()
        return settings

    def as_properties(self) -> dict[str, PropertyValue]:
        """The settings as people write them."""
        shown: dict[str, PropertyValue] = {}
        for name, (attribute, _) in PROPERTIES.items():
            seconds = getattr(self, attribute) / SECOND_US
            shown[name] = int(seconds) if seconds == int(seconds) else seconds
        return shown

    def _check_together(self) -> None:
        if self.max_no_heartbeat_us <= self.heartbeat_interval_us:
            raise BadProperty(
                "hazelcast.max.no.heartbeat.seconds",
                f"{self.max_no_heartbeat_us / SECOND_US:g} s is not longer than the heartbeat interval of "
                f"{self.heartbeat_interval_us / SECOND_US:g} s, so every member would be suspected; use at least three intervals",
            )


PROPERTIES: dict[str, tuple[str, Property]] = {
    one.metadata["property"].name: (one.name, one.metadata["property"]) for one in fields(Settings)
}
"""Property name to (field of `Settings`, how it is written)."""


def _read(kind: Property, value: PropertyValue) -> int:
    try:
        if isinstance(value, bool):
            raise ValueError
        seconds = float(value)
        if not isfinite(seconds):
            raise ValueError
    except ValueError:
        raise BadProperty(kind.name, f"{value!r} is not a number of seconds") from None
    if seconds < kind.at_least:
        raise BadProperty(kind.name, f"{value} is too small; the least is {kind.at_least:g}")
    return round(seconds * SECOND_US)


def _suggestion(name: str) -> str:
    close = difflib.get_close_matches(name, PROPERTIES, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""
