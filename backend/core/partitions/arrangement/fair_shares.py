"""How much of a table each group and each member is to hold, what an arrangement costs, and how even it is.

See Avoid Data Loss on Migration background; Hazelcast: repartitioning, weighted by members.

Members are numbered from 0, and so are groups. Every member gets the same share of a replica index, except that a group never
holds more than one replica of a partition: one that is too large for its members' full shares is *capped* and holds exactly
one replica of every partition. Shares are fractions of whole numbers; a share is kept when a count is its floor or its ceiling.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import contains, ne


@dataclass(frozen=True, slots=True)
class FairShares:
    """How much of `partitions` rows of `replicas` each every group is to hold. Made by `shares_of`."""

    partitions: int
    replicas: int
    members_of: tuple[tuple[int, ...], ...]
    """By group."""
    capped: tuple[bool, ...]
    """By group: it has to stand in every row."""

    @property
    def alike(self) -> bool:
        """All groups are of one size."""
        return len({len(members) for members in self.members_of}) == 1

    @property
    def one_by_one(self) -> bool:
        """Every member is its own group."""
        return all(len(members) == 1 for members in self.members_of)

    @property
    def mixed(self) -> bool:
        """Some groups are capped and some are not."""
        return any(self.capped) and not all(self.capped)


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """By group, the least and the most that it may hold at one replica index."""

    least: list[int]
    most: list[int]


def shares_of(partitions: int, replicas: int, members_of: Sequence[Sequence[int]]) -> FairShares:
    """Return the fair shares of these groups, of which there must be at least `replicas`."""
    capped = [False] * len(members_of)
    open_members, open_replicas = sum(map(len, members_of)), replicas
    for group in sorted(range(len(members_of)), key=lambda group: (-len(members_of[group]), group)):
        size = len(members_of[group])
        if size * open_replicas < open_members:
            break
        capped[group] = True
        open_members -= size
        open_replicas -= 1
    return FairShares(partitions, replicas, tuple(map(tuple, members_of)), tuple(capped))


def ideal_limits(shares: FairShares) -> GroupLimits:
    """Return the limits of any replica index, seen by itself."""
    return limits_at(shares, 0, [0] * len(shares.members_of), exact=False)


def limits_at(shares: FairShares, index: int, held: Sequence[int], *, exact: bool) -> GroupLimits:
    """Return the limits of replica `index` when the groups have `held` at all hotter ones together.

    A capped group must come to one replica in every row, so what it has already is set off. With `exact`, and groups of one size,
    this is done for all groups: then the rows can always be completed. Proof: let every row give each of the n = groups - index
    groups that it does not hold yet 1/n of its slot. So a group gets (partitions - held) / n, which lies between the floor and
    the ceiling of partitions / groups if it did so at all hotter indices, and a flow with whole bounds has a whole solution.
    """
    partitions, groups = shares.partitions, len(shares.members_of)
    if exact and shares.alike:
        return _rounded((partitions - count, groups - index) for count in held)
    slots = shares.replicas - index
    capped_rows = sum(partitions - count for count in compress(held, shares.capped))
    open_members = sum(map(len, shares.members_of)) - sum(map(len, compress(shares.members_of, shares.capped)))
    open_rows = max(partitions * slots - capped_rows, 0)
    return _rounded(
        (partitions - one, slots) if capped else (open_rows * len(members), slots * open_members)
        for one, capped, members in zip(held, shares.capped, shares.members_of, strict=True)
    )


def group_quotas(shares: FairShares, limits: GroupLimits, counts: Sequence[int]) -> list[int]:
    """Return what each group is to hold at one index, where members have `counts`.

    That is the least that it may, and one more for those groups in which a member then keeps a replica that it would have to give
    away, as far as the rows suffice.
    """
    quotas = list(limits.least)
    spare = shares.partitions - sum(quotas)
    totals = totals_by_group(shares, counts)
    for group in sorted(
        range(len(quotas)),
        key=lambda group: (not _keeps_one_more(shares.members_of[group], quotas[group], counts), -totals[group], group),
    ):
        if spare <= 0:
            break
        if limits.most[group] > quotas[group]:
            quotas[group] += 1
            spare -= 1
    return quotas


def member_quotas(shares: FairShares, quotas: Sequence[int], counts: Sequence[int]) -> list[int]:
    """Return what each member is to hold when its group is to hold `quotas`: even, the rest for those who hold most."""
    wanted = [0] * sum(map(len, shares.members_of))
    for members, quota in zip(shares.members_of, quotas, strict=True):
        each, over = divmod(quota, len(members))
        for place, member in enumerate(sorted(members, key=lambda member: (-counts[member], member))):
            wanted[member] = each + (place < over)
    return wanted


def _keeps_one_more(members: Sequence[int], quota: int, counts: Sequence[int]) -> bool:
    each, over = divmod(quota, len(members))
    return sum(counts[member] > each for member in members) > over


def totals_by_group(shares: FairShares, counts: Sequence[int]) -> list[int]:
    """Return the sum of the counts of each group's members."""
    return [sum(counts[member] for member in members) for members in shares.members_of]


def _rounded(fractions: Iterable[tuple[int, int]]) -> GroupLimits:
    pairs = list(fractions)
    return GroupLimits([top // bottom for top, bottom in pairs], [-(-top // bottom) for top, bottom in pairs])


# Costs


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
    """Return by replica index the rows that have another member in `after` than in `before`; both are columns by index."""
    return [list(compress(range(len(new)), map(ne, old, new))) for old, new in zip(before, after, strict=False)]


def copies(
    before: Sequence[Sequence[int]], after: Sequence[Sequence[int]], changed: list[list[int]], lost: frozenset[int]
) -> int:
    """Count replicas in `after` whose member held no replica of the partition in `before`, `lost` rows left out."""
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
