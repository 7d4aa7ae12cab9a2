"""Which member owns a key of a map: `:owner MAP KEY`, by the hash of whoever keeps the data."""

from __future__ import annotations

import shlex

from quarterdeck.backend.core.data.partition_store import partition_of
from quarterdeck.backend.hazelcast.key_partition import BadKey, KeyType, partition_of_key
from quarterdeck.backend.picture.fold.picture import Picture

KEY_TYPES: dict[str, KeyType] = {"string": "string", "int": "int", "long": "long"}


def key_owner(picture: Picture, text: str, *, hazelcast: bool) -> str:
    """In words, who owns the key, as each master has it. `text` is MAP KEY, and for Hazelcast its type if it is no string.

    Raises ValueError for what cannot be read.
    """
    try:
        words = shlex.split(text)
    except ValueError as problem:
        raise ValueError(f"a quote is not closed: {problem}") from problem
    if not 2 <= len(words) <= 3 or (len(words) == 3 and words[2] not in KEY_TYPES):
        raise ValueError("write owner MAP KEY [string|int|long], in quotes where there are blanks")
    name, key, kind = words[0], words[1], KEY_TYPES[words[2] if len(words) == 3 else "string"]
    answers = []
    for label in picture.masters():
        table = picture.members[label].table
        if table is None or not table.partitions:
            continue
        try:
            partition = (
                partition_of_key(key, kind, table.partitions)
                if hazelcast
                else partition_of(name, key, table.partitions)
            )
        except BadKey as problem:
            raise ValueError(str(problem)) from problem
        holder = next(iter(table.row(partition)), None)
        owner = picture.label_of(holder.address) if holder is not None else "nobody"
        answers.append(f"{owner} owns partition {partition} with {key!r}, as {label} has it")
    if not answers:
        raise ValueError("no master tells a table, so nobody is known to own it")
    return "; ".join(answers)
