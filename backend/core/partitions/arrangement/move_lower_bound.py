"""What an arrangement costs, what it could not cost less than, and how even it is (design goals of repartitioning)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from operator import contains, ne

from quarterdeck.backend.core.partitions.arrangement.fair_shares import (
    FairShares,
    group_quotas,
    ideal_limits,
    member_quotas,
)


def receipts_needed(shares: FairShares, counts_by_index: Iterable[Sequence[int]], lost: int) -> int:
    """Return the lower bound: what members must receive, index by index, until every count is its fair share.

    At each replica index, the shares are rounded in favour of those who hold most there, and what each member then lacks is
    summed up; holes are lacking too. The `lost` rows take one receipt at each index and copy nothing, so they are subtracted. No
    table whose counts are fair shares changes fewer slots. It may copy less: a member that held another replica of the partition
    changes the index without a copy.
    """
    limits = ideal_limits(shares)
    total = 0
    for counts in counts_by_index:
        quotas = group_quotas(shares, limits, counts)
        wanted = member_quotas(shares, quotas, counts)
        lacking = sum(quota - have for quota, have in zip(wanted, counts, strict=False) if quota > have)
        total += max(lacking - lost, 0)
    return total


def changed_rows(before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> list[list[int]]:
    """By replica index, the rows that have another member in `after` than in `before`; both are columns by index."""
    return [list(compress(range(len(new)), map(ne, old, new))) for old, new in zip(before, after, strict=False)]


def copies(
    before: Sequence[Sequence[int]], after: Sequence[Sequence[int]], changed: list[list[int]], lost: frozenset[int]
) -> int:
    """Replicas in `after` whose member held no replica of the partition in `before`, `lost` rows left out."""
    made = 0
    for new, rows in zip(after, changed, strict=True):
        copied = [row for row in rows if row not in lost] if lost else rows
        holders = zip(*(map(column.__getitem__, copied) for column in before), strict=True)
        made += len(copied) - sum(map(contains, holders, map(new.__getitem__, copied)))
    return made


def imbalance(shares: FairShares, counts_by_index: Iterable[Sequence[int]]) -> int:
    """Return the greatest difference at any index between two members with a claim to the same share.

    These are all members, if each is its own group.
    """
    alike: dict[tuple[bool, int], list[int]] = {}
    for group, members in enumerate(shares.members_of):
        alike.setdefault((shares.capped[group], shares.capped[group] and len(members)), []).extend(members)
    worst = 0
    for counts in counts_by_index:
        for claimants in alike.values():
            held = [counts[member] for member in claimants]
            worst = max(worst, max(held) - min(held))
    return worst
