"""What would be lost if some members died now: what the replica map is most often asked."""

from __future__ import annotations

from collections.abc import Collection

from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.fold.table_belief import ReplicaLoss, TableBelief
from quarterdeck.backend.picture.text.fact import Fact, not_told
from quarterdeck.backend.picture.text.formatting import counted, listed, one_line

NAMED = 12
"""How many partitions a sentence names before it only counts the rest."""

HEIRS_NAMED = 6


def incarnations_left(picture: Picture) -> frozenset[str]:
    """Return the incarnations that have not ended, as far as that was seen. A frozen one may run on, so it counts."""
    return frozenset(belief.uuid for belief in picture.members.values() if belief.status not in ("stopped", "killed"))


def incarnations_by_table(picture: Picture, labels: Collection[str]) -> list[tuple[TableBelief, list[str]]]:
    """Group the incarnations of `labels` that have not ended by the table that says who holds their data.

    That is the table of the master that each follows, or its own where that has none.
    """
    living = incarnations_left(picture)
    found: dict[int, tuple[TableBelief, list[str]]] = {}
    for label in labels:
        belief = picture.members.get(label)
        if belief is None or belief.uuid not in living:
            continue
        master = picture.master_of(label)
        table = master.table if master is not None and master.table is not None else belief.table
        if table is not None:
            found.setdefault(id(table), (table, []))[1].append(belief.uuid)
    return list(found.values())


def loss_of(picture: Picture, table: TableBelief, labels: Collection[str]) -> ReplicaLoss:
    """Return what `table` would lose if the members `labels` died now. Members that are gone take nothing with them."""
    living = incarnations_left(picture)
    dying = [belief.uuid for label in labels if (belief := picture.members.get(label)) and belief.uuid in living]
    return table.loss_without(dying, living)


def who_does_not_tell(picture: Picture, labels: Collection[str]) -> MemberBelief | None:
    """One of `labels` by whose table, or whose master's, it is not told who holds backups; None where all is told."""
    for label in labels:
        belief = picture.members.get(label)
        teller = picture.master_of(label) or belief
        if teller is not None and not teller.tells("backups"):
            return teller
    return None


def loss_facts(picture: Picture, loss: ReplicaLoss, labels: Collection[str]) -> tuple[Fact, ...]:
    """`loss` in words, one line each, the worst first."""
    dying = [label for label in labels if label in picture.members]
    if not dying:
        return ()
    who = listed([one_line(label) for label in dying], HEIRS_NAMED)
    unknown = who_does_not_tell(picture, dying)
    if unknown is not None:
        owned = f"{counted(len(loss.lost) + sum(loss.heirs.values()), 'partition')} would need another owner; "
        why = f"who holds their backups is {not_told('backups', unknown.witnessed_by)}"
        return Fact("if now died", who, "strong"), Fact("what is lost", f"{owned if loss.lost else ''}{why}", "warning")
    facts = []
    if loss.lost:
        facts.append(Fact("✕ lost", f"{_partitions(loss.lost)}: nobody else holds a replica", "bad"))
    if loss.bared:
        facts.append(Fact("! one copy", f"{_partitions(loss.bared)}", "warning"))
    if loss.heirs:
        told = [f"{one_line(_label(picture, uuid))} {count}" for uuid, count in loss.heirs.items()]
        more = f" and {len(told) - HEIRS_NAMED} more members" if len(told) > HEIRS_NAMED else ""
        owned = counted(sum(loss.heirs.values()), "partition")
        facts.append(Fact("→ taken over", f"{owned}, by {', '.join(told[:HEIRS_NAMED])}{more}", "plain"))
    if not facts:
        facts.append(Fact("✓ nothing", "they hold no replica", "good"))
    if not loss.lost and (loss.bared or loss.heirs):
        facts.insert(0, Fact("✓ nothing lost", "of every partition a replica would be left", "good"))
    return (Fact("if now died", who, "strong"), *facts)


def _partitions(partitions: tuple[int, ...]) -> str:
    return f"{counted(len(partitions), 'partition')} ({listed([f'p{partition}' for partition in partitions], NAMED)})"


def _label(picture: Picture, uuid: str) -> str:
    return next((label for label, belief in picture.members.items() if belief.uuid == uuid), uuid)
