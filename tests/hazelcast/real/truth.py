"""What was true of real members at each moment: the lists that they logged, and what was done to them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

from quarterdeck.backend.core.address import Address
from tests.hazelcast.real.member_logs import LoggedList, LoggedWords

StepKind = Literal[
    "start", "kill", "stop", "end", "freeze", "thaw", "cut", "heal", "blind", "see", "latency", "state", "clock",
]  # fmt: skip
"""What was done: `stop` asks a member to leave, and at its `end` the process is gone; `cut` cuts links as well as groups."""

Link = tuple[Address, Address]
"""From whom no packet comes, and to whom."""


class DoneStep(NamedTuple):
    """What the driver has done, and when."""

    at_us: int
    kind: StepKind
    members: tuple[Address, ...] = ()
    """Those that it was done to."""
    links: frozenset[Link] = frozenset()
    """The links that are cut from then on."""
    value: str = ""
    """The state, delay or clock that was set."""


class EntryCount(NamedTuple):
    """How many entries of each map a client of the product found between two moments; None where it got no answer."""

    from_us: int
    until_us: int
    entries: dict[str, int | None]


class EntryLoss(NamedTuple):
    """How many entries were gone after members were killed."""

    at_us: int
    entries: int


@dataclass(frozen=True, slots=True)
class TruthAtMoment:
    """What was true at one moment."""

    at_us: int
    lists: Mapping[Address, LoggedList]
    """The list that each running member holds."""
    running: frozenset[Address]
    """Those whose process runs; of them a starting one has no list yet."""
    leaving: frozenset[Address]
    frozen: frozenset[Address]
    cut: frozenset[Link]
    quiet_us: int
    """How long nothing was done and no list changed."""
    merging: frozenset[Address] = frozenset()
    """Those that have left their cluster and have no list of the next one yet."""

    @property
    def masters(self) -> frozenset[Address]:
        """The running members that stand first on their own list."""
        return frozenset(it for it, held in self.lists.items() if held.addresses[0] == it and it not in self.leaving)

    @property
    def leading(self) -> frozenset[Address]:
        """The masters that lead somebody: one that stands still, or has left to merge, does not."""
        return self.masters - self.frozen - self.merging

    @property
    def whole(self) -> bool:
        """Whether all members hold one list, and all on it run."""
        held = {it.uuids for member, it in self.lists.items() if member not in self.leaving}
        on_it = {address for member, it in self.lists.items() if member not in self.leaving for address in it.addresses}
        return len(held) == 1 and self.lists.keys() - self.leaving <= on_it <= self.lists.keys() and not self.frozen

    def answers(self, member: Address) -> bool:
        """Return whether a member's process has come so far that it answers: a starting one refuses connections for seconds."""
        return member in self.lists and member not in self.leaving

    def is_cut(self, one: Address, other: Address) -> bool:
        """Return whether packets do not pass between two members in both directions."""
        return (one, other) in self.cut or (other, one) in self.cut


@dataclass(frozen=True, eq=False)
class Truth:
    """The lists that each member logged, and the steps that were done, both oldest first; and the entries that were lost."""

    logged: Mapping[Address, Sequence[LoggedList]]
    done: Sequence[DoneStep]
    loss: EntryLoss | None = None
    words: Mapping[Address, Sequence[LoggedWords]] = field(default_factory=dict)
    """All that each member logged, oldest first."""
    ends_late_us: int = 1_500_000
    """How much later than it was an end may be noted: runs of before looked for ends once a second."""
    counts: Sequence[EntryCount] = ()
    """What a client counted, oldest first."""
    maps: Mapping[str, int] = field(default_factory=dict)
    """How many entries each map was given before anything happened."""

    known: dict[int, TruthAtMoment] = field(default_factory=dict)
    """What was found to be true of moments."""
    found: dict[tuple[str, Address], list[LoggedWords]] = field(default_factory=dict)
    """What members logged that matches a pattern."""

    def at(self, moment_us: int) -> TruthAtMoment:
        """Return what was true at a moment."""
        if moment_us not in self.known:
            self.known[moment_us] = self._at(moment_us)
        return self.known[moment_us]

    def _at(self, moment_us: int) -> TruthAtMoment:
        running: dict[Address, int] = {}
        leaving: set[Address] = set()
        frozen: set[Address] = set()
        cut: frozenset[Link] = frozenset()
        latest_us = 0
        for step in self.done:
            if step.at_us > moment_us:
                break
            latest_us = step.at_us
            if step.kind == "start":
                running |= dict.fromkeys(step.members, step.at_us)
            elif step.kind in ("kill", "end"):
                for member in step.members:
                    running.pop(member, None)
                frozen.difference_update(step.members)
                leaving.difference_update(step.members)
            elif step.kind == "stop":
                leaving.update(step.members)
            elif step.kind == "freeze":
                frozen.update(step.members)
            elif step.kind == "thaw":
                frozen.difference_update(step.members)
            elif step.kind in ("cut", "heal"):
                cut = step.links
        lists = {
            member: held
            for member, since_us in running.items()
            if (held := self._held(member, since_us, moment_us)) is not None
        }
        latest_us = max([latest_us, *(held.at_us for held in lists.values())])
        quiet_us = moment_us - latest_us
        merging = {member for member, held in lists.items() if self._has_left(member, held, moment_us)}
        return TruthAtMoment(
            moment_us,
            lists,
            frozenset(running),
            frozenset(leaving),
            frozenset(frozen),
            cut,
            quiet_us,
            frozenset(merging),
        )

    def missing(self, name: str, first_us: int, last_us: int) -> list[int]:
        """Return how many entries of a map were missing by each count between two moments; oldest first."""
        counts = (it.entries.get(name) for it in self.counts if first_us <= it.from_us and it.until_us <= last_us)
        return [self.maps[name] - count for count in counts if count is not None]

    def suspicions(self, moment_us: int) -> set[tuple[Address, Address]]:
        """Return who suspects whom by its own log, as long as the suspect is on its list."""
        found = set()
        for observer, held in self.at(moment_us).lists.items():
            for suspect in held.addresses:
                name = re.escape(f"[{suspect.split(':')[0]}]:{suspect.split(':')[1]}")
                since_us = self._incarnation_us(observer, moment_us)
                raised = self.logs(rf"Member {name} - \S+ is suspected to be dead", since_us, moment_us, observer)
                ended = self.logs(rf"Removed suspicion of Member {name}", since_us, moment_us, observer)
                joined = [
                    it.at_us for it in self.logged[observer] if suspect not in it.addresses and it.at_us <= moment_us
                ]
                latest_us = max([0, *joined, *(words.at_us for _, words in ended)])
                if raised and raised[-1][1].at_us > latest_us:
                    found.add((observer, suspect))
        return found

    def _incarnation_us(self, member: Address, moment_us: int) -> int:
        """Return when a member's process was started last."""
        starts = (it.at_us for it in self.done if it.kind == "start" and member in it.members and it.at_us <= moment_us)
        return max(starts, default=0)

    def membership_changed_us(self, member: Address, moment_us: int) -> int:
        """Return when the members on a member's list changed last."""
        held = [it for it in self.logged[member] if it.at_us <= moment_us]
        changes = [new.at_us for old, new in pairwise(held) if old.uuids != new.uuids]
        return max(changes, default=held[0].at_us)

    def between(self, first_us: int, last_us: int) -> list[TruthAtMoment]:
        """Return all that was true at some moment of a window."""
        changes = [step.at_us for step in self.done]
        changes += [held.at_us for lists in self.logged.values() for held in lists]
        return [self.at(it) for it in (first_us, *sorted(it for it in changes if first_us < it <= last_us), last_us)]

    def was_started(self, member: Address, after_us: int, until_us: int) -> bool:
        """Return whether its process was started in that time."""
        return any(
            step.kind == "start" and member in step.members and after_us < step.at_us <= until_us for step in self.done
        )

    def was(self, kinds: Collection[StepKind], members: Collection[Address] = ()) -> bool:
        """Return whether any of this was done to one of these members, or to any member."""
        return any(
            step.kind in kinds
            and (not members or not {*step.members, *(end for link in step.links for end in link)}.isdisjoint(members))
            for step in self.done
        )

    def logs(self, pattern: str, first_us: int, last_us: int, *members: Address) -> list[tuple[Address, LoggedWords]]:
        """Return what members logged in that time that matches, of all members if none is given; oldest first."""
        found = [
            (member, words)
            for member in members or self.words
            for words in self._matching(pattern, member)
            if first_us <= words.at_us <= last_us
        ]
        return sorted(found, key=lambda it: it[1].at_us)

    def _matching(self, pattern: str, member: Address) -> list[LoggedWords]:
        if (pattern, member) not in self.found:
            searched = re.compile(pattern, re.MULTILINE)
            self.found[pattern, member] = [it for it in self.words.get(member, ()) if searched.search(it.text)]
        return self.found[pattern, member]

    def _has_left(self, member: Address, held: LoggedList, moment_us: int) -> bool:
        """Return whether it has begun to merge since its first list under this uuid: a last list may follow on that."""
        first_us = next(it.at_us for it in self.logged[member] if it.member_uuid == held.member_uuid)
        return bool(self.logs(r"is MERGING$", first_us, moment_us, member))

    def _held(self, member: Address, since_us: int, moment_us: int) -> LoggedList | None:
        held = [it for it in self.logged.get(member, ()) if since_us <= it.at_us <= moment_us]
        return held[-1] if held else None
