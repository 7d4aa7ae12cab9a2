"""The `schedule` of a scenario: which message arrives next, and whose clock wakes it next, one by one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from quarterdeck.backend.core.messages import MESSAGE_KINDS
from quarterdeck.backend.documents.yaml_document import did_you_mean
from quarterdeck.backend.scenarios.format.values import Label, ScenarioModel

UNREACHABLE = "unreachable"
"""The kind of the news that a member cannot be reached."""


class ScheduleDoesNotFit(ValueError):
    """A schedule asks for what cannot happen: the scenario, the model or the core is not the one that it was made of."""


def _known_kind(kind: str) -> str:
    if kind != UNREACHABLE and kind not in MESSAGE_KINDS:
        raise ValueError(f"there is no message {kind!r}; {did_you_mean(kind, (*MESSAGE_KINDS, UNREACHABLE))}")
    return kind


class OnItsWay(ScenarioModel):
    """A message on its way. Where several of a kind are between two members, `which` counts them, in the order of their text."""

    source: Label = Field(alias="from")
    target: Label = Field(alias="to")
    kind: Annotated[str, AfterValidator(_known_kind)]
    which: Annotated[int, Field(ge=1, strict=True)] = 1


class ScheduledChoice(ScenarioModel):
    """What happens next: a message arrives, gets lost, or arrives and is still on its way; or a member is woken by its clock."""

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
        """What happens."""
        return next(iter(self.model_fields_set))  # type: ignore[arg-type]

    @property
    def message(self) -> OnItsWay | None:
        """The message that it happens to; None for a tick."""
        return self.deliver or self.drop or self.duplicate

    def text(self) -> str:
        """In a few words."""
        message = self.message
        if message is None:
            return f"tick {self.tick}"
        which = f" ({message.which})" if message.which > 1 else ""
        return f"{self.kind} {message.kind}{which} {message.source} → {message.target}"
