"""Write the reference of events: every kind with its meaning and its fields, as the classes declare them.

Run it as ``python -m docs.generators.reference_tables``, which writes all pages of that kind.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator
from textwrap import dedent
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record

FIELDS = {
    "accepted": "The members that accepted the claim.",
    "address": "The address of the member that it is about.",
    "addresses": "The join list from now on.",
    "answer": "Its answer.",
    "asked": "The members that are asked.",
    "author": "The member that made it.",
    "backup": "The member that keeps the backup.",
    "backup_entries": "Entries that it keeps as a backup.",
    "blocked": "How the link is cut; empty when it is not. A black hole loses messages silently, a reset closes connections.",
    "by": "The member that answers.",
    "bytes": "How many bytes of data.",
    "call": "The number of the call that ends.",
    "cause": "Why, as one of these words.",
    "chunks": "In how many pieces the data was copied.",
    "command": "What was asked for.",
    "committed": "Whether it is committed; else it is rolled back.",
    "committed_ids": "The migrations that were found committed.",
    "current_replica_index": "The index of the replica that the participant holds before; -1 for none.",
    "decision": "Which cluster has to merge into the other, or that neither can.",
    "destination": "The member that gets a replica.",
    "destination_current": "The index of the destination's replica before; -1 for none.",
    "destination_new": "The index of the destination's replica after; -1 for none.",
    "digest": "A digest of the table; tables of one digest are alike.",
    "edition": "The number of the edit, by which a later edit wins.",
    "endpoint": "Whether the participant is source or destination.",
    "entries": "How many entries.",
    "every": "How often after that, in microseconds.",
    "granted": "Whether it was done.",
    "held": "Whether messages wait until they are replayed.",
    "index": "The index of the replica: 0 is the owner.",
    "join_list": "Where the member looks for others.",
    "join_version": "The version of the list that introduced the member.",
    "joined_uuid": "The uuid of the incarnation that is admitted.",
    "keep": "The members that stay.",
    "key": "The key in the map.",
    "kind": "The kind of message; empty for all.",
    "late_uuid": "The uuid of the incarnation whose heartbeat is late.",
    "left_out": "The members that were asked and are not on the new list.",
    "lineage": "The lineage of the list: lists of one lineage have one author.",
    "lite": "Whether the member holds no data.",
    "loss": "Probability that a message is dropped.",
    "lower_bound": "How many moves are needed at the least.",
    "duplicate": "Probability that a message arrives twice.",
    "delay": "Microseconds added to each message.",
    "delay_up_to": "Greater than `delay`: what is added is drawn from between the two.",
    "map": "The name of the map.",
    "maps": "What each map holds, and what was asked of it.",
    "master": "The master from then on.",
    "members": "The members on the list, the oldest first.",
    "merging": "The members that it brings along.",
    "migration_id": "The migration.",
    "migration_ids": "The migrations.",
    "moves": "How many copies the plan makes.",
    "needed": "The least number of members for operations.",
    "new_replica_index": "The index of the replica that the participant holds after; -1 for none.",
    "offered": "How many entries were offered.",
    "oldest": "How long the oldest of them has waited, in microseconds.",
    "operating": "Whether operations are done.",
    "operation": "What was asked for.",
    "owner": "The member that owns the partition.",
    "partition": "The number of the partition.",
    "partitions": "How many partitions.",
    "policy": "The merge policy that decides about each entry.",
    "problem": "Why it failed; empty when it did not.",
    "properties": "The new values by name.",
    "reads": "Reads since the last such event.",
    "reason": "Why, in a sentence for people.",
    "remaining": "How many migrations stood in the queue.",
    "remote": "The other side: its address.",
    "remove": "The members that have to go.",
    "removed_uuid": "The uuid of the incarnation that is removed.",
    "reporter": "The member that reports.",
    "role": "In which role it was asked.",
    "rolled_back_ids": "The migrations that were found rolled back.",
    "rule": "The rule that decided, by name.",
    "sender": "The member that sent it.",
    "silence": "How long nothing had come, in microseconds, where that is the evidence.",
    "size": "How many members are on the list.",
    "source": "The member that a replica comes from; none for a copy.",
    "source_current": "The index of the source's replica before; -1 for none.",
    "source_new": "The index of the source's replica after; -1 for none.",
    "state": "The state from now on.",
    "succeeded": "Whether it has moved.",
    "suspect_uuid": "The uuid of the suspected incarnation.",
    "suspected": "The older members that the claimant suspects.",
    "suspects": "The members that it suspects.",
    "table_version": "The version of the table.",
    "taken": "How many entries the winner took.",
    "target": "The member that it is done to.",
    "type": "What the migration does to replicas: move, copy, or shift them up or down.",
    "unavoidable": "Whether a replica that is wanted has to be given up on the way.",
    "uuid": "The uuid of the incarnation.",
    "version": "The version of the list.",
    "wanted": "The state that was asked for.",
    "why": "Why, in a sentence for people.",
    "writes": "Writes since the last such event.",
    "zone": "The zone of the member; the members of a zone fail together.",
}
"""What fields of these names mean, unless their class says so: in a string below the field, or in its docstring."""


def events_page() -> str:
    """Return the page: every kind of event with its fields, and the parts that fields are made of."""
    kinds = sorted(get_args(Event), key=lambda kind: kind.__struct_config__.tag)
    parts = sorted({part for kind in kinds for part in parts_of(kind)}, key=lambda part: part.__name__)
    envelope = ", ".join(f"`{field.name}`" for field in msgspec.structs.fields(Record))
    listed = "\n".join(_section(f"`{kind.__struct_config__.tag}`", kind) for kind in kinds)
    inner = "\n".join(_section(part.__name__, part) for part in parts)
    return f"""# Events

A journal holds one JSON object per line. Each is a record with the fields {envelope}.
`at` is in microseconds on the clock of the run, `utc` in microseconds since 1970. (`uuid`, `seq`) is its identity, and `seq`
counts from 1 without gaps within a `uuid`. `event` holds `kind` and the fields below. What the operator and the network did
stands under the name of the cluster. An address is text such as `10.0.0.1:5701`. A field with a default may be missing, as it is
in journals of earlier releases: then the default is meant.

{listed}
## The parts of fields

{inner}
This page is written by `python -m docs.generators.reference_tables`.
"""


def meanings_of(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Return what each field means, by its name; empty where that is not said."""
    below = texts_below(kind)
    docstring = inspect.cleandoc(kind.__doc__ or "")
    names = [field.name for field in msgspec.structs.fields(kind)]
    return {
        name: below.get(name) or ("see above" if f"`{name}`" in docstring else FIELDS.get(name, "")) for name in names
    }


def texts_below(kind: type) -> dict[str, str]:
    """Return by field of a class the string that stands below it, where one does."""
    (declared,) = ast.parse(dedent(inspect.getsource(kind))).body
    assert isinstance(declared, ast.ClassDef)
    return {
        field.target.id: " ".join(str(text.value.value).split())
        for field, text in zip(declared.body, declared.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def _section(title: str, kind: type[msgspec.Struct]) -> str:
    meanings = meanings_of(kind)
    docstring = "\n\n".join(" ".join(text.split()) for text in inspect.cleandoc(kind.__doc__ or "").split("\n\n"))
    lines = ["| field | type | meaning |", "| --- | --- | --- |"]
    for field in msgspec.structs.fields(kind):
        kind_of_field = _shown(field.type) + ("" if field.required else f"; {_default(field)} by default")
        lines.append(f"| `{field.name}` | {kind_of_field} | {meanings[field.name]} |".replace("|  |", "| |"))
    return f"### {title}\n\n{docstring}\n\n" + "\n".join(lines) + "\n"


def _default(field: Any) -> str:
    value = field.default
    if value is None:
        return "null"
    if value in ("", (), msgspec.NODEFAULT):
        return "empty"
    return f"`{msgspec.json.encode(value).decode()}`"


def _shown(kind: Any) -> str:
    """Return a type in words, such as `list of address`."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return "one of " + ", ".join(f"`{word}`" if word else "nothing" for word in inner)
    if origin in (Union, types.UnionType):
        return " or ".join("null" if kind is type(None) else _shown(kind) for kind in inner)
    if origin is Annotated:
        return _shown(inner[0])
    if origin is tuple:
        return f"list of {_shown(inner[0])}"
    if origin is dict:
        return f"{_shown(inner[1])} by {_shown(inner[0])}"
    names = {Address: "address", str: "text", int: "number", float: "number", bool: "true or false"}
    return names.get(kind) or kind.__name__


def parts_of(kind: Any) -> Iterator[type[msgspec.Struct]]:
    """Yield the structs in the fields of a struct, at any depth."""
    for field in msgspec.structs.fields(kind):
        for part in _types_in(field.type):
            if isinstance(part, type) and issubclass(part, msgspec.Struct):
                yield part
                yield from parts_of(part)


def _types_in(kind: Any) -> Iterator[Any]:
    yield kind
    for inner in get_args(kind):
        if not isinstance(inner, str):
            yield from _types_in(inner)
