"""Which member owns a key of a map: `:owner MAP KEY` and `cluster owner MAP KEY`, by the hash of the product."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple, get_args

from quarterdeck.backend.core.data.partition_store import partition_of
from quarterdeck.backend.hazelcast.key_partition import KeyType, partition_of_key
from quarterdeck.backend.judgement.agreement import ListAgreement

KEY_TYPES: tuple[KeyType, ...] = get_args(KeyType)


class MapKey(NamedTuple):
    """A key of a map."""

    map: str
    key: str
    type: KeyType = "string"
    """The type of the key for members of Hazelcast. For ours all keys are text."""


class KeyOwner(NamedTuple):
    """Who owns a key, as one master has it; `owner` is a label, or None: no member."""

    master: str
    partition: int
    owner: str | None


def key_owner(agreement: ListAgreement, text: str) -> str:
    """In words, who owns the key, as each master has it. `text` is MAP KEY, and for Hazelcast its type if it is no string.

    Raises ValueError for what cannot be read.
    """
    try:
        wanted = map_key(*shlex.split(text))
    except TypeError as problem:
        raise ValueError(f"write owner MAP KEY [{'|'.join(KEY_TYPES)}], in quotes where there are blanks") from problem
    answers = [
        f"{owner.owner or 'no member'} owns partition {owner.partition} with {wanted.key!r}, as {owner.master} has it"
        for owner in key_owners(agreement, wanted)
    ]
    if not answers:
        raise ValueError("no master reports a table, so its owner is not known")
    return "; ".join(answers)


def map_key(name: str, key: str, key_type: str = "string") -> MapKey:
    """Return the key that these words name. Raises `ValueError` when they name none."""
    for known in KEY_TYPES:
        if known == key_type:
            return MapKey(name, key, known)
    raise ValueError(f"there is no type {key_type!r}; write one of {', '.join(KEY_TYPES)}")


def key_owners(agreement: ListAgreement, wanted: MapKey) -> Iterator[KeyOwner]:
    """Who owns the key, as each master that has a table reports it. Raises `BadKey`."""
    label_of = agreement.picture.label_of
    for belief in agreement.masters:
        table = belief.table
        if table is None or not table.partitions:
            continue
        if belief.witnessed_by:  # a member of Hazelcast, also in a recording
            partition = partition_of_key(wanted.key, wanted.type, table.partitions)
        else:
            partition = partition_of(wanted.map, wanted.key, table.partitions)
        holder = next(iter(table.row(partition)), None)
        yield KeyOwner(belief.label, partition, None if holder is None else label_of(holder.address))
