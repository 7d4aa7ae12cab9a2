"""Mistakes in an input that pydantic refused, in words: the phrases for all documents, requests and plans."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pydantic_core import ErrorDetails


def message_of(error: ErrorDetails) -> str:
    """Return the message of an error; that of a validator of ours as the validator wrote it."""
    return error["msg"].removeprefix("Value error, ")


def misfit_text(error: ErrorDetails, given: str) -> str:
    """Return that `given` does not fit, with the message of an error."""
    return f"{given} does not fit here; {error['msg'][0].lower()}{error['msg'][1:]}"


def validation_problem_text(error: ErrorDetails) -> str:
    """Return a mistake in words, with a remedy; for every kind that does not depend on what else could stand there."""
    context, given = error.get("ctx", {}), repr(error["input"])
    match error["type"]:
        case "value_error":
            return message_of(error)
        case "missing":
            return "is missing; add it"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{given} does not fit here; write fields, as in {{name: value}}"
        case "tuple_type" | "list_type":
            return f"{given} does not fit here; write a list, as in [athens, byzantium]"
        case "string_type":
            return f"{given} is not a text; put quotes around it if it is meant as one"
        case "too_short":
            return f"has {context['actual_length']} entries; at least {context['min_length']} must be given"
        case "literal_error":
            return f"{given} is not known here; write {context['expected']}"
        case _:
            return misfit_text(error, given)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the known word that is closest to `word`, or else all of them."""
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
