"""Which member holds which replica of every partition: the first arrangement, and every later one.

See Avoid Data Loss on Migration; Hazelcast: partitions.

A table is a list of rows, one per partition; a row has the name of a member, or None, at every replica index: the owner at 0,
then the backups. The replica indices are settled one after the other, the hottest first. At each, a member stays if it may;
vacant slots go to members that lack replicas, if possible to the next colder holder of the same partition, which moves up; and
then members that hold more than their fair share give some away. Equal input gives an equal table: there is no chance in it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, combinations, compress, cycle, repeat
from math import gcd
from operator import and_, eq, ge

from msgspec import Struct

from quarterdeck.backend.core.partitions.arrangement.column_exchange import avoid_cycles, exchange_columns, unevenness
from quarterdeck.backend.core.partitions.arrangement.column_filling import settle_column
from quarterdeck.backend.core.partitions.arrangement.fair_shares import (
    FairShares,
    changed_rows,
    copies,
    imbalance,
    receipts_needed,
    shares_of,
)
from quarterdeck.backend.core.partitions.arrangement.slots import LEAVING, VACANT, Slots, counts_in
from quarterdeck.backend.core.partitions.table.partition_table import MOST_REPLICAS, Row


class Arrangement(Struct, frozen=True):
    """A table, and what it takes to get there from the present one."""

    table: list[Row]
    """Rows that did not change are the very ones that were given, if they have the right length."""
    moves: int
    """Replicas that must be copied: pairs of a partition and a member that holds a replica of it now and held none before, at
    whatever index. To change the index takes no copy. A partition that is lost, or new, has nothing to copy."""
    lower_bound: int
    """What members must receive to get their fair shares, each replica index seen by itself; see `receipts_needed`.
    It may exceed `moves` where a member that changes the index saves a copy."""
    imbalance: int
    """The greatest difference at any index between the replicas of two members with the same claim."""
    lost: tuple[int, ...]
    """Partitions without any holder; they begin empty. Not those of a first arrangement."""


def replica_count(groups: int, backups: int) -> int:
    """Return the number of replicas of every partition: never two in a group, at most seven (Hazelcast: partitions)."""
    return min(groups, backups + 1, MOST_REPLICAS)


def arrange(
    table: Sequence[Sequence[str | None]] | None,
    members: Sequence[tuple[str, str]],
    partitions: int,
    backups: int,
    *,
    leaving: Collection[str] = (),
) -> Arrangement:
    """Return the table that `members` should have, given as name and group in order of age; `table` is None before the first.

    No row has two members of one group, and every row is full. `leaving` members, which stop gracefully, get nothing; what they
    hold now is moved away. Names that are no members' are dropped. Lite members are not to be passed in.

    If every member is its own group, counts at each replica index differ by one at most. If groups are of different sizes, the
    same is aimed at for the members of all groups that are not capped (`fair_shares`), and for those within one capped group.

    Raises:
        ValueError: No member can hold anything, a name stands twice, a number is out of range, or the table has another number
            of rows.
    """
    staying = [(name, group) for name, group in members if name not in leaving]
    _check(staying, members, partitions, backups, table)
    groups = {group: number for number, group in enumerate(dict.fromkeys(group for _, group in staying))}
    group_of = [groups[group] for _, group in staying]
    members_of: list[list[int]] = [[] for _ in groups]
    for member, number in enumerate(group_of):
        members_of[number].append(member)
    shares = shares_of(partitions, replica_count(len(groups), backups), members_of)
    names = [name for name, _ in staying]
    if table is None:
        if shares.alike:
            columns = first_columns(shares)
        else:
            empty = [[VACANT] * partitions for _ in range(shares.replicas)]
            no_counts = [counts_in(column, len(names)) for column in empty]
            columns = _arranged(shares, group_of, empty, no_counts).columns
        uneven = imbalance(shares, [counts_in(column, len(names)) for column in columns])
        return Arrangement(_rows(columns, names), 0, 0, uneven, ())
    before = _numbered(table, names, frozenset(leaving), shares.replicas)
    return _rearranged(table, before, shares, group_of, names)


def _check(
    staying: Sequence[tuple[str, str]],
    members: Sequence[tuple[str, str]],
    partitions: int,
    backups: int,
    table: Sequence[Sequence[str | None]] | None,
) -> None:
    if not staying:
        raise ValueError("no member is there to hold partitions")
    if len({name for name, _ in members}) < len(members):
        raise ValueError("a member is named twice")
    if partitions < 1:
        raise ValueError(f"{partitions} partitions; there must be one at least")
    if not 0 <= backups < MOST_REPLICAS:
        raise ValueError(f"{backups} backups; there can be 0 to {MOST_REPLICAS - 1}")
    if table is not None and len(table) != partitions:
        raise ValueError(f"the table has {len(table)} rows for {partitions} partitions")


def _numbered(
    table: Sequence[Sequence[str | None]], names: list[str], leaving: frozenset[str], replicas: int
) -> list[list[int]]:
    """Return the table by columns, with numbers for names, as wide as its widest row and at least as wide as it is to be."""
    number_of: dict[str | None, int] = dict.fromkeys(leaving, LEAVING)
    number_of.update((name, number) for number, name in enumerate(names))
    widths = set(map(len, table))
    width = max(widths)
    rows = table if len(widths) == 1 else [(*row, *repeat(None, width - len(row))) for row in table]
    numbered = [list(map(number_of.get, column, repeat(VACANT))) for column in zip(*rows, strict=True)]
    return numbered + [[VACANT] * len(table) for _ in range(replicas - width)]


def _rearranged(
    table: Sequence[Sequence[str | None]],
    before: list[list[int]],
    shares: FairShares,
    group_of: list[int],
    names: list[str],
) -> Arrangement:
    counts = [counts_in(column, len(names)) for column in before]
    lost = _rows_without_holder(before, counts)
    slots = _arranged(shares, group_of, before, counts)
    changed = changed_rows(before, slots.columns)
    return Arrangement(
        table=_with_changed_rows(table, slots.columns, changed, names),
        moves=copies(before, slots.columns, changed, frozenset(lost)),
        lower_bound=receipts_needed(shares, counts[: shares.replicas], len(lost)),
        imbalance=imbalance(shares, slots.counts),
        lost=tuple(lost),
    )


def _rows_without_holder(before: list[list[int]], counts: list[list[int]]) -> list[int]:
    if not all(count[VACANT] for count in counts):
        return []
    rows: list[int] = [row for row, member in enumerate(before[0]) if member == VACANT]
    for column in before[1:]:
        rows = [row for row in rows if column[row] == VACANT]
    return rows


def _arranged(shares: FairShares, group_of: list[int], before: list[list[int]], counts: list[list[int]]) -> Slots:
    """Return the settled slots. Another call leaves the result as it is.

    Groups of one size always come to fair shares, and a table that has them is not changed. Others may not; so a table that is in
    order changes only if it gets more even, and the result is arranged again for as long as that helps.
    """
    slots = _settled(shares, group_of, before, counts)
    if slots.cycle_rows:
        avoid_cycles(slots)
    if shares.alike or not (found := unevenness(slots)).surplus:
        return slots
    present = Slots(shares, group_of, before, counts)
    if present.is_in_order() and unevenness(present) <= found:
        return present
    while found.surplus:
        again = _settled(shares, group_of, slots.columns, slots.counts)
        if unevenness(again) >= found:
            break
        slots, found = again, unevenness(again)
    return slots


def _settled(shares: FairShares, group_of: list[int], before: list[list[int]], counts: list[list[int]]) -> Slots:
    """Return the slots with all replica indices filled and balanced.

    Where the easy limits fail, the exact ones or exchanges do not.
    """
    for exact in (False, True):
        slots = Slots(shares, group_of, before, counts)
        _drop_what_may_not_stay(slots)
        held = [0] * len(shares.members_of)
        within = [settle_column(slots, index, held, exact=exact) for index in range(shares.replicas)]
        if all(within):
            break
        if not shares.alike:
            exchange_columns(slots)
            break
    return slots


def _drop_what_may_not_stay(slots: Slots) -> None:
    """Vacate the colder of two slots of one group in a row, and all slots at indices that are no longer used."""
    columns = slots.columns
    groups = columns
    if not slots.shares.one_by_one:
        groups = [list(map(slots.group_of.__getitem__, column)) for column in columns]
    # By their last 8 bits, as all of a column are compared at once then.
    last_bits = [int.from_bytes(bytes(map(and_, column, repeat(255))), "little") for column in groups]
    for hotter, colder in combinations(range(len(groups)), 2):
        if 0 not in (last_bits[hotter] ^ last_bits[colder]).to_bytes(slots.shares.partitions, "little"):
            continue
        for row in list(compress(range(slots.shares.partitions), map(eq, groups[hotter], groups[colder]))):
            if columns[colder][row] >= 0:
                slots.vacate(row, colder)
    for column in slots.before[len(columns) :]:
        for row in compress(range(len(column)), map(ge, column, repeat(0))):
            slots.given_up[row] = 1


def _with_changed_rows(
    table: Sequence[Sequence[str | None]], after: list[list[int]], changed: list[list[int]], names: list[str]
) -> list[Row]:
    rows: list[Row] = list(map(tuple, table))
    if set(map(len, rows)) != {len(after)}:
        return _rows(after, names)
    places = list(dict.fromkeys(chain.from_iterable(changed)))
    for row, new in zip(places, _rows([list(map(column.__getitem__, places)) for column in after], names), strict=True):
        rows[row] = new
    return rows


def _rows(columns: list[list[int]], names: list[str]) -> list[Row]:
    return list(zip(*(map(names.__getitem__, column) for column in columns), strict=True))


def first_columns(shares: FairShares) -> list[list[int]]:
    """Return the first table by replica index, with the member of every partition. The groups must be of one size.

    A block has as many rows as there are groups. Within it, replica index j of row a is group a + shift(j), so every group
    stands once at every index of the block, and what is left of the last block is contiguous: counts differ by one at most. The
    shifts walk through all others, so what a lost group held is shared by all of them.
    """
    groups, rows = len(shares.members_of), shares.partitions
    twice = [*range(groups), *range(groups)]
    columns: list[list[int]] = [[] for _ in range(shares.replicas)]
    for block in range(-(-rows // groups)):
        for column, shift in zip(columns, _shifts(block, groups, shares.replicas), strict=True):
            column += twice[shift : shift + groups]
    for column in columns:
        del column[rows:]
    if len(shares.members_of[0]) == 1:
        only = [members[0] for members in shares.members_of]
        return [list(map(only.__getitem__, column)) for column in columns]
    # Each index begins one member further on, lest the first of a group get what is over every time.
    rotations = [[cycle(members[j % len(members) :] + members[: j % len(members)]) for members in shares.members_of]
             for j in range(shares.replicas)]  # fmt: skip
    return [[next(rotation[group]) for group in column] for column, rotation in zip(columns, rotations, strict=True)]


def _shifts(block: int, groups: int, replicas: int) -> list[int]:
    """Return distinct shifts modulo `groups`, the owner's 0; each of the others is every value from 1 on in turn."""
    others = groups - 1
    if not others:
        return [0]
    stride = 1 + block // others % others
    while gcd(stride, others) != 1:
        stride += 1
    return [0, *(1 + (block + place * stride) % others for place in range(replicas - 1))]
