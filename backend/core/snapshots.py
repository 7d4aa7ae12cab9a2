"""A member's whole state at one moment, to be kept, compared and gone on with (design section 2).

The model checker lives on this: it goes back to states it has been in, and knows when two ways lead to the same one.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from msgspec import Struct

from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.membership.state import MemberConfiguration, Membership
from quarterdeck.backend.core.membership.views.identity import Randomness
from quarterdeck.backend.core.properties import Settings

NOT_KEPT = ("member_configuration", "services", "effects", "stopwatch", "heartbeat_round")
"""What is the same for every state of a member, what is empty between two steps, and what is made again when it is wanted."""

HISTORY = frozenset({*NOT_KEPT, "_records"})
"""What tells how a member came to where it is, and decides about nothing that it does."""


def freeze(state: Membership) -> bytes:
    """Everything that `state` has between two steps, in a form that outlives all changes."""
    kept = {name: getattr(state, name) for name in Membership.__slots__ if name not in NOT_KEPT}
    return pickle.dumps(kept, protocol=pickle.HIGHEST_PROTOCOL)


def thaw(frozen: bytes, member_configuration: MemberConfiguration, randomness: Randomness | None = None) -> Membership:
    """A state of its own, as it was when it was frozen, but for its `randomness` if another one is given.

    `services` are for the caller to set.
    """
    state = Membership.__new__(Membership)
    state.member_configuration, state.stopwatch = member_configuration, None
    state.effects, state.heartbeat_round = [], None
    for name, value in pickle.loads(frozen).items():
        setattr(state, name, value)
    if randomness is not None:
        state.randomness = randomness
    return state


def canonical(state: Membership) -> str:
    """A text that two states of a member share only if, at the same time, they have the same future.

    Times are not made relative. Sets have no order; that of a dictionary counts, so that some equal states are told apart.
    """
    return repr(tuple(_plain(getattr(state, name)) for name in Membership.__slots__ if name not in HISTORY))


def _plain(value: Any) -> Any:
    """The same as tuples, texts, numbers and frozen structs, without the records that brought it about."""
    kind = type(value)
    if kind in (int, str, bool, float, bytes, type(None)) or isinstance(value, str):
        return value
    if kind is RecordId:
        return None
    if kind is Settings:
        return _settings_text(value)
    if isinstance(value, Struct) and value.__struct_config__.frozen and "because" not in value.__struct_fields__:
        return value
    if isinstance(value, Mapping):
        return tuple((_plain(key), _plain(one)) for key, one in value.items())
    if isinstance(value, Set):
        return tuple(sorted((_plain(one) for one in value), key=repr))
    if isinstance(value, Sequence | deque):
        return tuple(map(_plain, value))
    return (kind.__name__, *(_plain(getattr(value, name)) for name in _field_names(value)))


_settings_text = cache(repr)
"""Settings seldom change, and have many fields."""


def _field_names(value: Any) -> Sequence[str]:
    if isinstance(value, Struct):
        return value.__struct_fields__
    if is_dataclass(value):
        return [one.name for one in fields(value)]
    return [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())] or list(vars(value))
