"""What all plans share about their input: JSON, read strictly, one clear error when it is bad."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import ErrorDetails

LONGEST_QUOTE = 60
"""How much of what was given an error repeats."""


class BadInput(ValueError):
    """Input that is not what the plan takes. The message names the field and has a hint."""

    def __init__(self, text: str, *, contradictory: bool = False) -> None:
        """`contradictory`: it has the form that the schema describes, but what it says cannot be."""
        super().__init__(text)
        self.contradictory = contradictory


def is_contradiction(error: ErrorDetails) -> bool:
    """Whether what the error complains of is beyond what a schema can describe."""
    return error["type"] == "value_error"


class StrictModel(BaseModel):
    """A part of the input: unknown fields are errors, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _printable(name: str) -> str:
    if not name.isprintable():
        raise ValueError(f"{shortened(name)} holds characters that cannot be printed; write a plain name")
    return name


Name = Annotated[str, Field(min_length=1), AfterValidator(_printable)]


def _whole(value: object) -> object:
    """JSON knows one kind of number: 40.0 is as whole as 40."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]


def check_each_once(names: Iterable[str]) -> None:
    """Raise ValueError for a name that stands twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{shortened(name)} is named twice; name every member once")
        seen.add(name)


def input_error_text(error: ErrorDetails, problem_of: Callable[[ErrorDetails], str | None]) -> str:
    """Field, problem and hint in one line. `problem_of` has the words of the command itself; None for the usual ones."""
    field = "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in error["loc"]).lstrip(".")
    problem = problem_of(error) or usual_problem(error)
    return f"{field}: {problem}" if field else problem


def usual_problem(error: ErrorDetails) -> str:
    """Return what is wrong, where no command knows better."""
    match error["type"]:
        case "json_invalid":
            return f"is not JSON: {error['ctx']['error']}"
        case "value_error":
            return str(error["ctx"]["error"])
        case _:
            message = error["msg"]
            return f"{shortened(error['input'])} does not fit here; {message[0].lower()}{message[1:]}"


def shortened(given: Any) -> str:
    """Return what was given, as JSON, in a few words."""
    return shortened_text(json.dumps(given, ensure_ascii=False, default=repr))


def shortened_text(text: str) -> str:
    """`text`, cut down to a length that fits into an error message."""
    return text if len(text) <= LONGEST_QUOTE else f"{text[: LONGEST_QUOTE - 1]}…"
