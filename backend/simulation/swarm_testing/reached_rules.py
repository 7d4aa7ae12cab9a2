"""How often runs reached each rule and each branch that the reference names, so that what chance never reaches is seen.

A rule is what a member does with a message, by what it is doing (docs/engineers/membership.md), or one of the merge decision
(docs/reference/plan-merge.md). A branch is a kind of event with each of its causes (docs/reference/events.md). All names derive
from the core's own tables. Rules are counted where the core looks them up, and only in runs that ask for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import chain
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from msgspec import Struct

from quarterdeck.backend.core.events import (
    EVENT_KINDS,
    JournalChanged,
    MembersExpected,
    OperatorAsked,
    Record,
    StrangerRefused,
)
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.handlers import MESSAGE_RULES, ignore
from quarterdeck.backend.core.membership.split_brain.merge_decision import RULES as MERGE_RULES
from quarterdeck.backend.core.membership.undertakings import Claim, Doing, Following, JoinSearch, Leading
from quarterdeck.backend.core.witnessed import events as witnessed

DOING: dict[type[Doing], str] = {JoinSearch: "joining", Following: "following", Claim: "claiming", Leading: "leading"}

ELSEWHERE = {
    *(events.AddressUnusable, StrangerRefused, OperatorAsked, JournalChanged, MembersExpected),
    *filter(callable, vars(witnessed).values()),
}
"""The kinds that only live members, their processes or witnesses record."""
NO_BRANCHES = ("unknown", "")

CANNOT_BE_REACHED: dict[str, tuple[str, ...]] = {
    "only logs of other members have this cause": (
        *("member-removed: cause refused", "suspicion-raised: cause refused", "migration-decided: cause master-left"),
    ),
    "a master finds it, and removes the member": tuple(
        f"suspicion-raised: cause {cause}"
        for cause in ("disconnected", "leads-another-cluster", "no-confirmation", "no-list-confirmed")
    ),
    "it keeps a merge from beginning": tuple(
        f"merge-abandoned: cause {cause}"
        for cause in (
            *("links-missing", "nobody-answers", "nobody-known", "somebody-joins", "state", "state-changes", "verdict"),
        )
    ),
    "it makes a plan due, and cancels none": tuple(
        f"migrations-cancelled: cause {cause}" for cause in ("arranged", "new-master", "state-changed")
    ),
    "a place in the table is cleared without a migration": ("migration-started: type CLEAR",),
    "all members of a run have the same of these": tuple(
        f"merge-verdict: rule {rule}"
        for rule in ("cluster-name", "cluster-version", "joiner", "partition-count", "partition-groups")
    ),
    "a master that is on the list is suspected before its cluster is judged": (
        "merge-verdict: rule remote-is-my-member",
    ),
    "a simulated network damages nothing, and two replicas with one stamp are equal": (
        *("backup-out-of-step: cause copy-damaged", "backup-out-of-step: cause other-digest"),
    ),
}
"""What stands in the reference, and what no simulated run records, by the reason for that."""


class ReachedRules:
    """Counts what one run reaches; a journal of that run."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def append(self, record: Record) -> None:
        event = record.event
        tag, fields = _branches()[type(event)]
        self.counts[tag] += 1
        for field, name, values in fields:
            value = getattr(event, field)
            if value in values:
                self.counts[f"{name}{value}"] += 1

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count in the meantime which rules members of this process look up."""
        before = {kind: dict(rules) for kind, rules in MESSAGE_RULES.items()}
        for kind, rules in MESSAGE_RULES.items():
            for doing, word in DOING.items():
                if rules[doing] is not ignore:
                    rules[doing] = self._counted(rules[doing], _rule_name(kind, word))
        try:
            yield
        finally:
            for kind, rules in before.items():
                MESSAGE_RULES[kind].update(rules)

    def _counted(self, rule: Callable[..., None], name: str) -> Callable[..., None]:
        counts = self.counts

        def count(*arguments: Any) -> None:
            counts[name] += 1
            rule(*arguments)

        return count


@cache
def rule_and_branch_names() -> tuple[str, ...]:
    """Return all that a simulated run may reach: rules of messages, rules of the merge decision, events and their causes."""
    rules: list[str] = []
    for kind, by_doing in MESSAGE_RULES.items():
        rules += [_rule_name(kind, word) for doing, word in DOING.items() if by_doing[doing] is not ignore]
    branches: list[str] = []
    for kind, (tag, fields) in _branches().items():
        if kind not in ELSEWHERE:
            branches += [tag, *(f"{name}{value}" for _, name, values in fields for value in values)]
    left_out = set(chain.from_iterable(CANNOT_BE_REACHED.values()))
    return (*sorted(rules), *sorted(set(branches) - left_out))


class ReachedSummary(Struct, frozen=True):
    """How often runs reached each rule and branch, in the order of the reference, and which they never did."""

    times: dict[str, int]
    never: tuple[str, ...]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Self:
        times = {name: counts.get(name, 0) for name in rule_and_branch_names()}
        return cls(times, tuple(name for name, count in times.items() if not count))

    @property
    def text(self) -> str:
        """How many were reached, and which never were."""
        reached, never = len(self.times) - len(self.never), ", ".join(self.never) or "none"
        return f"{reached} of {len(self.times)} rules and branches were reached; never: {never}"


def _rule_name(kind: type, doing: str) -> str:
    return f"{kind.__struct_config__.tag} while {doing}"  # type: ignore[attr-defined]


@cache
def _branches() -> dict[type, tuple[str, tuple[tuple[str, str, frozenset[str]], ...]]]:
    """Return for each kind of event its tag, and its fields of a closed set with the values that count."""
    found: dict[type, tuple[str, tuple[tuple[str, str, frozenset[str]], ...]]] = {}
    for tag, kind in EVENT_KINDS.items():
        hints = get_type_hints(kind)
        fields = [(field, _values(hints[field])) for field in kind.__struct_fields__]
        if tag == "merge-verdict":
            fields.append(("rule", frozenset(rule.name for rule in MERGE_RULES)))
        found[kind] = tag, tuple((field, f"{tag}: {field} ", values) for field, values in fields if values)
    return found


def _values(hint: Any) -> frozenset[str]:
    """Return the texts that a field may have, where they are a closed set."""
    if get_origin(hint) is not Literal:
        return frozenset()
    return frozenset(_texts(hint)) - frozenset(NO_BRANCHES)


def _texts(hint: Any) -> Iterator[str]:
    for value in get_args(hint):
        if get_origin(value) is Literal:
            yield from _texts(value)
        elif isinstance(value, str):
            yield value
