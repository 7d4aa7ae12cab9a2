"""Who stays and who is removed when some members cannot reach one another (Partial Member Disconnection Resolution)."""

from __future__ import annotations

import time
from operator import attrgetter
from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import ErrorDetails

from quarterdeck.backend.core.membership.partial_disconnection.conflict_graph import (
    CliqueCandidate,
    ConflictSearch,
    visits_within,
)
from quarterdeck.backend.core.membership.partial_disconnection.conflict_graph import shortened as shortened_list
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.documents.validation import did_you_mean
from quarterdeck.backend.planning.strict_input import Name, PlanInput, StrictModel, each_once, shortened, shortened_text


class DisconnectionMember(StrictModel):
    """A member as the problem names it."""

    name: Name
    lite: bool = False


class Disconnections(PlanInput):
    """`members` in order of age, the master first; `suspicions` has, by reporter, whom a member suspects."""

    example = '{"members": [{"name": "N1"}, …], "suspicions": {"N2": ["N3"]}}'

    members: Annotated[tuple[DisconnectionMember, ...], Field(min_length=1), each_once(attrgetter("name"))]
    suspicions: dict[str, tuple[str, ...]] = {}
    timeout_seconds: float = Field(default=5.0, ge=0, allow_inf_nan=False)
    """After this the best answer so far is given; 0 stands for no limit, as in the property."""

    @model_validator(mode="after")
    def _suspicions_are_about_members(self) -> Disconnections:
        names = [member.name for member in self.members]
        known = set(names)
        for reporter, suspects in self.suspicions.items():
            if reporter not in known:
                raise ValueError(f"suspicions: {_unknown_member(reporter, names)}")
            for suspect in suspects:
                if suspect not in known:
                    raise ValueError(f"suspicions.{reporter}: {_unknown_member(suspect, names)}")
                if suspect == reporter:
                    raise ValueError(f"suspicions.{reporter}: a member cannot suspect itself; take it from the list")
        return self

    def conflicts(self) -> list[tuple[str, str]]:
        return [(reporter, suspect) for reporter, suspects in self.suspicions.items() for suspect in suspects]

    def about_the_master(self) -> list[tuple[str, str]]:
        """Suspicions of or by the first member, which do not count."""
        return [pair for pair in self.conflicts() if self.members[0].name in pair]

    def one_way(self) -> list[tuple[str, str]]:
        """Suspicions that count and that the other side does not return, each once."""
        pairs = dict.fromkeys(self.conflicts())
        alone = [(suspecting, suspected) for suspecting, suspected in pairs if (suspected, suspecting) not in pairs]
        return [pair for pair in alone if self.members[0].name not in pair]

    @classmethod
    def remedy(cls, error: ErrorDetails) -> str | None:
        place = error["loc"]
        member = place[:1] == ("members",) and len(place) > 1
        match error["type"]:
            case "missing" | "model_type" | "model_attributes_type" if member:
                return 'write a member as {"name": "N1", "lite": false}'
            case "missing":
                return 'list the members in order of age, the master first, as in [{"name": "N1"}]'
            case "model_type" | "model_attributes_type":
                return 'write {"members": […], "suspicions": {…}}'
            case "dict_type":
                return 'write by reporter whom it suspects, as in {"N2": ["N3"]}'
            case "tuple_type":
                example = '["N3", "N4"]' if place[0] == "suspicions" else '[{"name": "N1"}]'
                return f"write a list, as in {example}"
            case "too_short":
                return "name at least the master"
        return None


def plan_disconnections(given: Disconnections, *, explain: bool) -> dict[str, object]:
    """Return the decision as a document; `explain` adds why."""
    began = time.monotonic()
    until = began + given.timeout_seconds
    search = ConflictSearch(
        [CliqueCandidate(member.name, member.lite) for member in given.members],
        given.conflicts(),
        work_budget=visits_within(round(given.timeout_seconds * SECOND_US)),
    )
    while (resolution := search.search_on()) is None:
        if given.timeout_seconds and time.monotonic() > until:
            resolution = search.stop()
            break
    document: dict[str, object] = {
        "keep": resolution.keep,
        "remove": resolution.remove,
        "exact": resolution.exact,
        "seconds": round(time.monotonic() - began, 6),
    }
    if explain:
        document["why"] = f"{resolution.why} {_one_way_in_words(given)}".strip()
    return document


def _one_way_in_words(given: Disconnections) -> str:
    one_way = [f"{reporter} suspects {suspect}" for reporter, suspect in given.one_way()]
    if not one_way:
        return ""
    return f"One-way only: {shortened_list(one_way)}; a link that fails one way counts as failed both ways."


def _unknown_member(name: str, names: list[str]) -> str:
    return f"{shortened(name)} is not among the members; {shortened_text(did_you_mean(name, names))}"
