"""The order in which members stand wherever they are listed: by age, the oldest first, for the oldest of a cluster leads."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.picture.fold.picture import Picture


def members_by_age(picture: Picture, labels: Sequence[str]) -> tuple[str, ...]:
    """`labels` as the lists of the running members have them, the list that most of them hold first.

    Members of another cluster come after those of the first, in the order of their own list. Whoever is on no list of a running
    member comes last: when it starts again it is the youngest. Lists of one cluster that differ do not move anybody who is on
    both.
    """
    holders: dict[int, int] = {}
    lists: dict[int, tuple[Member, ...]] = {}
    for belief in picture.members.values():
        if belief.running and belief.members:
            one = id(belief.members)
            lists[one] = belief.members
            holders[one] = holders.get(one, 0) + 1
    wanted = dict.fromkeys(labels)
    ordered: dict[str, None] = {}
    for one in sorted(lists, key=lambda known: -holders[known]):  # sorting keeps the order of appearance of equals
        held = [picture.label_of(member.address) for member in lists[one]]
        ordered.update(dict.fromkeys(filter(wanted.__contains__, held)))
    ordered.update(wanted)
    return tuple(ordered)
