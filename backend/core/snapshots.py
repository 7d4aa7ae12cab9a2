"""A member's whole state at one moment, to be kept, compared and gone on with.

The model checker needs this: it goes back to states it has been in, and knows when two ways lead to the same one.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import cache
from types import GenericAlias, NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.membership.views.identity import Randomness, drawn_from
from quarterdeck.backend.core.partitions.state import PartitionContext
from quarterdeck.backend.core.properties import Settings

KEPT = tuple(field.name for field in fields(MemberState) if field.compare)
"""All that is state: not the context."""

HISTORY = frozenset({"record_count", "measurements", "written_us"})
"""What shows how a member came to where it is, and decides about nothing that it does."""


FORM = 2
"""The form of snapshots: raised whenever the declared state changes. Form 1 did not name itself."""


class BadSnapshot(ValueError):
    """Bytes that are no snapshot of this version's members. The message says where they are not."""


def freeze(state: MemberState) -> bytes:
    """Everything that `state` has between two steps, as MessagePack. It holds only data, so that of any member can be thawed."""
    return _ENCODER.encode((FORM, _Kept(*[getattr(state, name) for name in KEPT])))


def thaw(frozen: bytes, context: PartitionContext, randomness: Randomness | None = None) -> MemberState:
    """Return a state of its own, as it was when it was frozen, but for its `randomness` if another one is given.

    Raises:
        BadSnapshot: The bytes are no snapshot, or one of another form.
    """
    try:
        envelope = _ENVELOPE_DECODER.decode(frozen)
        form = msgspec.msgpack.decode(envelope[0], type=int) if len(envelope) == 2 else 1
        if form != FORM:
            raise BadSnapshot(f"the snapshot cannot be read: it has form {form}, and this version reads form {FORM}")
        kept = _DECODER.decode(envelope[1])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as problem:
        raise BadSnapshot(f"what a member is said to know cannot be read: {problem}") from problem
    state = MemberState.__new__(MemberState)
    state.context = context
    for name in KEPT:
        setattr(state, name, getattr(kept, name))
    if randomness is not None:
        state.randomness = drawn_from(randomness)
    return state


def _as_declared(declared: Any, value: Any) -> Any:
    """Return what msgspec does not make by itself: dictionaries and queues that are emptied from their fronts."""
    origin, inner = get_origin(declared), get_args(declared)
    if origin is OrderedDict:
        return OrderedDict(msgspec.convert(value, GenericAlias(dict, inner), dec_hook=_as_declared))
    if origin is deque:
        return deque(msgspec.convert(value, GenericAlias(list, inner), dec_hook=_as_declared))
    raise NotImplementedError(declared)


_HINTS = get_type_hints(MemberState)
_Kept = msgspec.defstruct("Kept", [(name, _HINTS[name]) for name in KEPT], array_like=True)
_ENCODER = msgspec.msgpack.Encoder(enc_hook=list)
_DECODER: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(_Kept, dec_hook=_as_declared)
_ENVELOPE_DECODER = msgspec.msgpack.Decoder(list[msgspec.Raw])


def canonical(state: MemberState) -> str:
    """Return a text that two states share only if they have the same future.

    Sets have no order; that of a dictionary counts, so that some equal states have different texts.
    """
    return repr(_plain(MemberState)(state))


Plain = Callable[[Any], Any]
"""What makes of a value tuples, texts, numbers and frozen structs: no records that brought it about."""


@cache
def _plain(declared: Any) -> Plain:
    """How values of the type `declared` are made plain: derived once from what it declares."""
    origin, inner = get_origin(declared), get_args(declared)
    kind = origin or declared
    found: Plain = _unchanged
    if declared is RecordId:
        found = _nothing
    elif declared is Settings:
        found = _settings_text
    elif origin in (Union, UnionType):
        found = _one_of(inner)
    elif not isinstance(kind, type) or kind in (int, str, bytes, bool, float):
        pass
    elif issubclass(kind, Mapping):
        found = _mapping(_plain(inner[0]), _plain(inner[1]))
    elif issubclass(kind, Set):
        found = _set(_plain(inner[0]))
    elif kind is tuple and inner[-1] is not Ellipsis:
        found = _tuple(tuple(map(_plain, inner)))
    elif inner and issubclass(kind, Sequence | deque):
        found = _sequence(_plain(inner[0]))
    elif is_dataclass(kind) or issubclass(kind, Struct | tuple):
        found = _record(kind)
    return found


def _unchanged(value: Any) -> Any:
    return value


def _nothing(value: Any) -> None:
    return None


_settings_text: Callable[[Settings], str] = cache(repr)
"""Settings seldom change, and have many fields."""


def _one_of(kinds: Sequence[Any]) -> Plain:
    by_kind = {get_origin(kind) or kind: _plain(kind) for kind in kinds}
    if all(plain is _unchanged for plain in by_kind.values()):
        return _unchanged
    others = [plain for kind, plain in by_kind.items() if kind is not NoneType]
    if len(others) == 1:
        (only,) = others
        return lambda value: None if value is None else only(value)
    return lambda value: by_kind[type(value)](value)


def _mapping(key: Plain, value: Plain) -> Plain:
    if key is value is _unchanged:
        return _unchanged
    return lambda pairs: tuple([(key(name), value(held)) for name, held in pairs.items()])


def _set(element: Plain) -> Plain:
    return lambda elements: tuple(sorted(map(element, elements), key=repr))


def _sequence(element: Plain) -> Plain:
    return _unchanged if element is _unchanged else lambda elements: tuple(map(element, elements))


def _tuple(places: tuple[Plain, ...]) -> Plain:
    if all(place is _unchanged for place in places):
        return _unchanged
    return lambda value: tuple([place(part) for place, part in zip(places, value, strict=True)])


def _record(kind: type) -> Plain:
    """Return a data class, a struct or a named tuple, by what its fields declare."""
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        hints = {field.name: hints[field.name] for field in fields(kind) if field.compare and field.name not in HISTORY}
    places = tuple((name, _plain(declared)) for name, declared in hints.items())
    if issubclass(kind, Struct) and kind.__struct_config__.frozen and all(plain is _unchanged for _, plain in places):
        return _unchanged
    title = kind.__name__
    return lambda value: (title, *[place(getattr(value, name)) for name, place in places])
