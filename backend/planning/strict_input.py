"""The input of all plans: JSON, read strictly, one clear error when it is bad."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from quarterdeck.backend.documents.validation import did_you_mean, message_of, misfit_text
from quarterdeck.backend.documents.yaml_document import field_text, names_in

LONGEST_QUOTE = 60
"""The number of letters of the input that an error repeats."""

EMPTY_OR_MISSING = {"missing": "is missing", "too_short": "is empty", "string_too_short": "the name is empty"}

Remedy = Callable[[ErrorDetails], str | None]


class BadInput(ValueError):
    """Input that a plan refuses. The message names the field and has a hint."""


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


MOST_COUNTED = 2**31 - 1
"""The greatest count that an input may name: Hazelcast counts in 32 bits."""

WHOLE = BeforeValidator(_whole)
"""Goes behind the bounds of a number, so that schemas show them."""


def each_once(name_of: Callable[[Any], str] = str) -> AfterValidator:
    """Return a validator of members that refuses a name which stands twice; None stands for no member."""

    def check(members: tuple[Any, ...]) -> tuple[Any, ...]:
        seen: set[str] = set()
        for name in map(name_of, filter(None, members)):
            if name in seen:
                raise ValueError(f"{shortened(name)} is named twice; name every member once")
            seen.add(name)
        return members

    return AfterValidator(check)


def refuse_repeated_fields(text: bytes) -> None:
    """Refuse JSON in which an object has a field twice: readers differ about which of the two counts.

    Raises:
        BadInput: A field is written twice.
    """

    def once(pairs: list[tuple[str, Any]]) -> None:
        for name, count in Counter(name for name, _ in pairs).items():
            if count > 1:
                raise BadInput(f"{shortened(name)} is written twice in one object; write every field once")

    with suppress(json.JSONDecodeError, UnicodeDecodeError, RecursionError):  # the model says what is wrong
        json.loads(text, object_pairs_hook=once)


class PlanInput(StrictModel):
    """The whole input of a plan."""

    example: ClassVar[str]

    @classmethod
    def remedy(cls, error: ErrorDetails) -> str | None:
        """Return the remedy for a given value, where the plan knows more than its types say."""
        return None

    @classmethod
    def read(cls, text: bytes) -> Self:
        """Return the problem that `text` describes.

        Raises:
            BadInput: The text is wrong.
        """
        if not text.strip():
            raise BadInput(f"is empty; write {cls.example}")
        refuse_repeated_fields(text)
        try:
            return cls.model_validate_json(text)
        except ValidationError as failure:
            error = failure.errors()[0]
            field, problem = field_text(error["loc"]), problem_text(error, cls, cls.remedy)
            raise BadInput(f"{field}: {problem}" if field else problem) from failure


def problem_text(error: ErrorDetails, root: type[BaseModel], remedy: Remedy) -> str:
    """Return the mistake and its remedy; the usual words where `remedy` has none."""
    given = shortened(error["input"])
    match error["type"]:
        case "json_invalid":
            return f"is not JSON: {error['ctx']['error']}"
        case "value_error":
            return message_of(error)
        case "extra_forbidden":
            return f"there is no such field; {did_you_mean(str(error['loc'][-1]), names_in(root)(error['loc'])[1])}"
        case "literal_error":
            return f"{given} is not known here; write {error['ctx']['expected']}"
    wanted = remedy(error)
    if wanted is None:
        return misfit_text(error, given)
    return f"{EMPTY_OR_MISSING.get(error['type'], f'{given} does not fit here')}; {wanted}"


def shortened(given: Any) -> str:
    """Return the given value, as JSON, in a few words."""
    return shortened_text(json.dumps(given, ensure_ascii=False, default=repr))


def shortened_text(text: str) -> str:
    """`text`, cut down to a length that fits into an error message."""
    return text if len(text) <= LONGEST_QUOTE else f"{text[: LONGEST_QUOTE - 1]}…"
