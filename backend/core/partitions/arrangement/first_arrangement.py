"""The first table, for groups of one size: in blocks, so that who stands beside whom changes from block to block.

A block has as many rows as there are groups. Within it, replica index j of row a is group a + shift(j), so every group stands
once at every index of the block, and what is left of the last block is contiguous: counts differ by one at most. The shifts walk
through all others, so what a lost group held is shared by all of them.
"""

from __future__ import annotations

from itertools import cycle
from math import gcd

from quarterdeck.backend.core.partitions.arrangement.fair_shares import FairShares


def first_columns(shares: FairShares) -> list[list[int]]:
    """By replica index, the member of every partition. The groups must be of one size."""
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
    """Distinct shifts modulo `groups`, the owner's 0; each of the others takes every value from 1 on in turn."""
    others = groups - 1
    if not others:
        return [0]
    stride = 1 + block // others % others
    while gcd(stride, others) != 1:
        stride += 1
    return [0, *(1 + (block + place * stride) % others for place in range(replicas - 1))]
