"""Whether members have the same partition table, as far as what is known of them is of one moment.

Members that keep a journal record each change of their table. Of a witnessed member the owners come when they change, at each
member at its own moment, and its own stamp of the table comes with its metrics. So its table is another one only if the owners
still differ after two samples; stamps alone show no difference.
"""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import Fact, Tone, not_told, under
from quarterdeck.backend.picture.text.formatting import age_text, counted

SAMPLE_US = 5 * SECOND_US
"""How often a witnessed member reports its metrics, and with them the stamp of its table."""
LASTING_US = 2 * SAMPLE_US
DIGEST_SHOWN = 6


def differs_from_master(picture: Picture, belief: MemberBelief, now_us: int | None = None) -> bool:
    """Return whether the member's partition table is not the one that its master has, at `now_us` or the latest record.

    False while no master is seen, or nothing of it is reported.
    """
    return _is_another_table(picture, belief) and _has_lasted(picture, belief, picture.at if now_us is None else now_us)


def table_digests(picture: Picture, labels: Iterator[str], now_us: int) -> dict[str, list[str]]:
    """Return the members that hold each table, by its digest; one that its master has just changed counts as the master's."""
    holders: dict[str, list[str]] = {}
    for label in labels:
        belief = picture.members.get(label)
        if belief is None or not belief.running or belief.table is None:
            continue
        master = picture.master_of(label)
        unsettled = _is_another_table(picture, belief) and not differs_from_master(picture, belief, now_us)
        table = master.table if unsettled and master is not None and master.table is not None else belief.table
        holders.setdefault(table.digest, []).append(label)
    return holders


def is_unsettled(picture: Picture, now_us: int) -> bool:
    """Return whether members of one cluster report other owners, and it is not known yet whether that lasts."""
    return any(
        _is_another_table(picture, belief) and not _has_lasted(picture, belief, now_us)
        for belief in picture.members.values()
    )


def same_table(picture: Picture, now_us: int) -> Iterator[Fact]:
    """Answer whether all members have the same partition table."""
    known = {label: belief for label, belief in picture.members.items() if belief.running}
    holders = table_digests(picture, iter(known), now_us)
    answers: list[tuple[str, Tone]] = []
    if len(holders) == 1:
        digest, labels = next(iter(holders.items()))
        answers.append((f"yes: {counted(len(labels), 'member')} with table {digest[:DIGEST_SHOWN]}", "good"))
        answers += _stamps([known[label] for label in labels], now_us)
    elif holders:
        answers.append((f"no: there are {len(holders)} tables", "warning"))
        answers += [
            (f"table {digest[:DIGEST_SHOWN]}: {', '.join(labels)}", "plain") for digest, labels in holders.items()
        ]
    else:
        answers.append(("no table is known: partitions are arranged at the first use of data", "faint"))
    unknown = [label for label, belief in known.items() if not belief.shows("owners")]
    if unknown:
        answers.append((f"{', '.join(unknown)}: {not_told('owners', known[unknown[0]].witnessed_by)}", "faint"))
    yield from under("have all the same partition table", answers)


def _stamps(holders: list[MemberBelief], now_us: int) -> Iterator[tuple[str, Tone]]:
    """Yield that members whose owners are equal have other stamps, if that has lasted."""
    stamped = [belief for belief in holders if belief.state_stamp is not None]
    by_stamp: dict[int | None, list[str]] = {}
    for belief in stamped:
        by_stamp.setdefault(belief.state_stamp, []).append(belief.label)
    since_us = max((belief.stamp_since_us for belief in stamped), default=now_us)
    if len(by_stamp) < 2 or now_us - since_us <= LASTING_US:
        return
    few = min(by_stamp.values(), key=len)
    yield (
        f"{', '.join(few)}: another state stamp for {age_text(now_us - since_us)}, with the same owners: what differs behind the "
        "owners is not known",
        "plain",
    )


def _is_another_table(picture: Picture, belief: MemberBelief) -> bool:
    master = picture.master_of(belief.label)
    if master is None or master.table is None or not belief.running or not belief.shows("owners"):
        return False
    return belief.table is None or belief.table.digest != master.table.digest


def _has_lasted(picture: Picture, belief: MemberBelief, now_us: int) -> bool:
    """Return whether what was reported of both is old enough to be of one moment."""
    master = picture.master_of(belief.label)
    if master is None or not (belief.witnessed_by or master.witnessed_by):
        return True
    changed = [holder.table.since_us if holder.table is not None else holder.started_us for holder in (belief, master)]
    return now_us - max(changed) > LASTING_US
