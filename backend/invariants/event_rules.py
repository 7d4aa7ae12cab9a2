"""Rules by kind of event: the types of a method's parameters say which events it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from inspect import isfunction
from types import UnionType
from typing import Any, get_args, get_type_hints

RULE_PARAMETERS = ("self", "record", "event")


class EventRules:
    """Has a rule for each kind of event that one of its methods takes beside a `record`, as the type of its `event` says."""

    def rules(self) -> Mapping[type, Callable[..., Any]]:
        """Return the kinds of events that the rule needs, each with the function that handles it."""
        return {kind: getattr(self, name) for kind, name in _rules_of(type(self)).items()}  # type: ignore[arg-type]


@cache
def _rules_of(kind: type) -> dict[type, str]:
    """Return the names of the methods that are rules, by the kind of event."""
    found: dict[type, str] = {}
    for name in dir(kind):
        method = getattr(kind, name)
        if isfunction(method) and method.__code__.co_varnames[: method.__code__.co_argcount] == RULE_PARAMETERS:
            declared = get_type_hints(method)["event"]
            events = get_args(declared) if isinstance(declared, UnionType) else (declared,)
            if twice := found.keys() & events:
                raise TypeError(f"{kind.__name__} has two rules for {twice}")
            found.update(dict.fromkeys(events, name))
    return found
