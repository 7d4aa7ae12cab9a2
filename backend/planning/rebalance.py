"""Who would hold which replica after members came or went (Hazelcast: repartitioning)."""

from __future__ import annotations

import time
from collections import Counter
from operator import attrgetter
from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import ErrorDetails

from quarterdeck.backend.core.partitions.arrangement.arrangement import arrange
from quarterdeck.backend.documents.validation import did_you_mean
from quarterdeck.backend.planning.strict_input import WHOLE, Name, PlanInput, StrictModel, each_once, shortened

LIST_EXAMPLES: dict[int | str, str] = {
    "members": '[{"name": "A"}]',
    "leaving": '["A"]',
    "table": '[["A", "B"], ["B", null]]',
}


class RebalanceMember(StrictModel):
    """A member that may hold replicas."""

    name: Name
    group: Name | None = None
    """Members of one group never hold two replicas of a partition; without it a member is its own group."""


class Rebalance(PlanInput):
    """The problem: the number of partitions, the members, and the present holders."""

    example = '{"partitions": 271, "backups": 1, "members": [{"name": "A"}, …], "table": null}'

    partitions: Annotated[int, Field(ge=1, le=100_000), WHOLE] = 271
    backups: Annotated[int, Field(ge=0, le=6), WHOLE] = 1
    members: Annotated[tuple[RebalanceMember, ...], Field(min_length=1), each_once(attrgetter("name"))]
    leaving: Annotated[tuple[Name, ...], each_once()] = ()
    """The members that stop gracefully: they get no replica, and their replicas move away."""
    table: tuple[Annotated[tuple[str | None, ...], each_once()], ...] | None = None
    """By partition and replica index, who holds it now; null stands for no table so far."""

    @model_validator(mode="after")
    def _a_row_for_every_partition(self) -> Rebalance:
        if self.table is not None and len(self.table) != self.partitions:
            raise ValueError(
                f"table: has {len(self.table)} rows for {self.partitions} partitions; write one row for each, or null"
            )
        return self

    @model_validator(mode="after")
    def _leaving_members_are_some_of_the_members(self) -> Rebalance:
        names = [member.name for member in self.members]
        for name in self.leaving:
            if name not in names:
                raise ValueError(f"leaving: {shortened(name)} is not among the members; {did_you_mean(name, names)}")
        if len(self.leaving) == len(names):
            raise ValueError("leaving: has every member; leave one out at least, to hold the partitions")
        return self

    def grouped(self) -> list[tuple[str, str]]:
        """Name and group. A member without a group differs from a group of the same name."""
        return [
            (member.name, f"member {member.name}" if member.group is None else f"group {member.group}")
            for member in self.members
        ]

    @classmethod
    def remedy(cls, error: ErrorDetails) -> str | None:
        place = error["loc"]
        match error["type"]:
            case "missing":
                return 'write the members as [{"name": "A", "group": "rack1"}, …]'
            case "model_type" | "model_attributes_type":
                member = place[:1] == ("members",) and len(place) > 1
                return 'write a member as {"name": "A", "group": "rack1"}' if member else f"write {cls.example}"
            case "tuple_type":
                return f"write a list, as in {LIST_EXAMPLES[place[0]]}"
            case "too_short":
                return "name one member at least"
        return None


def plan_rebalance(given: Rebalance, *, explain: bool) -> dict[str, object]:
    """Return the target table as a document; `explain` adds the replicas of each member and the lost partitions."""
    began = time.monotonic()
    found = arrange(given.table, given.grouped(), given.partitions, given.backups, leaving=given.leaving)
    document: dict[str, object] = {
        "table": found.table,
        "moves": found.moves,
        "lower_bound": found.lower_bound,
        "imbalance": found.imbalance,
        "seconds": round(time.monotonic() - began, 6),
    }
    if explain:
        columns = [Counter(column) for column in zip(*found.table, strict=True)]
        document["counts"] = {member.name: [column[member.name] for column in columns] for member in given.members}
        document["lost"] = found.lost
    return document
