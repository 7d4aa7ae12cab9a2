"""Which of two clusters that meet would merge into the other, and why (Split-brain Recovery Improvements)."""

from __future__ import annotations

import json
from operator import attrgetter
from typing import Annotated

import msgspec
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, JsonValue
from pydantic_core import ErrorDetails

from quarterdeck.backend.core.address import Address, parse_address
from quarterdeck.backend.core.cluster_profile import ClusterProfile, ProfiledMember, ShownState
from quarterdeck.backend.core.membership.split_brain.merge_decision import (
    NO_ANSWER,
    NO_ANSWER_PASSED,
    MergeDecision,
    decide_merge,
    passed_before,
)
from quarterdeck.backend.planning.strict_input import MOST_COUNTED, WHOLE, PlanInput, StrictModel, each_once

NOT_MASTER = "not-master"
NOT_MASTER_PASSED = "both are masters of their clusters"


def _short_form(value: object) -> object:
    return {"address": value} if isinstance(value, str) else value


WrittenAddress = Annotated[str, AfterValidator(parse_address)]


class MergeMember(StrictModel):
    """A member of one of the two clusters."""

    address: WrittenAddress
    lite: bool = False


class MergeSide(StrictModel):
    """One of two clusters that meet. `members` are in order of age; a master missing in its list is its first data member."""

    address: WrittenAddress
    cluster_name: str
    state: ShownState
    members: Annotated[
        tuple[Annotated[MergeMember, BeforeValidator(_short_form)], ...], each_once(attrgetter("address"))
    ]
    data_member_count: Annotated[int, Field(ge=0, le=MOST_COUNTED), WHOLE] | None = None
    """Wins over counting `members`."""
    is_master: bool = True
    joined: bool = True
    cluster_version: str = "1.0"
    partition_count: Annotated[int | None, Field(ge=1, le=MOST_COUNTED, strict=False)] = None
    joiner: str = "tcp-ip"
    partition_groups: JsonValue = None
    """The value as configured, in any form: the two sides only have to agree."""

    def profile(self) -> ClusterProfile:
        listed = [ProfiledMember(Address(member.address), "", member.lite) for member in self.members]
        if all(member.address != self.address for member in self.members):
            listed.insert(0, ProfiledMember(Address(self.address), "", False))
        data_members = sum(not member.lite for member in listed)
        return ClusterProfile(
            address=Address(self.address),
            uuid="",
            cluster_name=self.cluster_name,
            state=self.state,
            members=tuple(listed),
            list_version=len(listed),
            data_member_count=data_members if self.data_member_count is None else self.data_member_count,
            partition_count="" if self.partition_count is None else str(self.partition_count),
            joiner=self.joiner,
            partition_groups=_as_text(self.partition_groups),
            cluster_version=self.cluster_version,
        )


class Meeting(PlanInput):
    """`local` has asked; `remote` is the answer, None for no answer."""

    example = '{"local": {…}, "remote": {…}}'

    local: MergeSide
    remote: MergeSide | None

    @classmethod
    def remedy(cls, error: ErrorDetails) -> str | None:
        place = error["loc"]
        match error["type"]:
            case "missing" if place == ("remote",):
                return "write null when there was no answer"
            case "missing":
                return f"needed are {', '.join(_required_around(place))}"
            case "model_type" | "model_attributes_type":
                return f"write {{…}} with {', '.join(_required_around((*place, '')))}"
            case "tuple_type":
                return 'write a list, as in ["10.0.0.1:5701"]'
        return None


def plan_merge(meeting: Meeting, *, explain: bool) -> dict[str, object]:
    """Return the decision as a document; `explain` adds the rules that were passed before one decided."""
    decision = _decide(meeting)
    document: dict[str, object] = msgspec.to_builtins(decision)
    if explain:
        document["passed"] = _passed_before(decision.rule)
    return document


def _decide(meeting: Meeting) -> MergeDecision:
    """Return what comes of the meeting.

    Only masters that have joined come as far as the rules of the merge (Hazelcast: split-brain handler and merge validation).
    """
    local, remote = meeting.local, meeting.remote
    for side in (local, remote):
        if side is not None and not side.joined:
            why = f"{side.address} has not joined a cluster, so it neither looks for others nor answers them"
            return MergeDecision("cannot-merge", NO_ANSWER, why)
    if remote is None:
        return decide_merge(local.profile(), None)
    if not local.is_master:
        why = f"{local.address} is not master, so it looks for no other cluster and answers with {_master_of(local)}"
        return MergeDecision("cannot-merge", NOT_MASTER, why)
    if not remote.is_master:
        why = f"{remote.address} is not master, so it answers with {_master_of(remote)}, whom {local.address} asks next"
        return MergeDecision("cannot-merge", NOT_MASTER, why)
    return decide_merge(local.profile(), remote.profile())


def _passed_before(rule: str) -> dict[str, str]:
    """Return the rules that let the two clusters pass before `rule` decided: the name of each rule and its reason, in order."""
    if rule == NOT_MASTER:
        return {NO_ANSWER: NO_ANSWER_PASSED}
    passed: dict[str, str] = {}
    for name, held in passed_before(rule):
        passed[name] = held
        if name == NO_ANSWER:
            passed[NOT_MASTER] = NOT_MASTER_PASSED
    return passed


def _master_of(side: MergeSide) -> str:
    oldest = side.members[0].address if side.members else side.address
    return "the address of its master" if oldest == side.address else f"the address of its master, {oldest}"


def _as_text(value: JsonValue) -> str:
    """Return one text for one meaning, whatever the order in which its keys are written."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _model_around(place: tuple[int | str, ...]) -> type[BaseModel]:
    """Return the model of which the last step of `place` is, or should be, a field."""
    models: tuple[type[BaseModel], ...] = (Meeting, MergeSide, MergeMember)
    return models[min(len(place), 3) - 1]


def _required_around(place: tuple[int | str, ...]) -> list[str]:
    return [name for name, field in _model_around(place).model_fields.items() if field.is_required()]
