"""Why two clusters do not become one, and the edit with which they would.

See Split-brain Recovery Improvements; Hazelcast: merge decision and split brain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands.commands import Command
from quarterdeck.backend.core.membership.split_brain.merge_decision import RULES
from quarterdeck.backend.picture.fold.picture import MemberBelief, Picture
from quarterdeck.backend.picture.merging.join_list_edit import EditPlan
from quarterdeck.backend.picture.merging.merge_blockers import Blocker, PairDiagnosis, PairState, profile
from quarterdeck.backend.picture.text.fact import Tone
from quarterdeck.backend.picture.text.formatting import one_line, with_names

PAIRS_SHOWN = 100
"""Of very many clusters only so many pairs are judged, those of the largest clusters first."""

GLYPHS: dict[PairState, str] = {"merging": "⇒", "due": "…", "waits": "◌", "blocked": "∦"}

TONES: dict[PairState, Tone] = {"merging": "good", "due": "good", "waits": "plain", "blocked": "warning"}

BY_SIZE = tuple(rule for rule in RULES if rule.name in ("data-members", "total-members", "address"))


@dataclass(frozen=True, slots=True)
class Unblock:
    """What would take everything out of the way that an operator can: commands, in words, and the lists that they change."""

    text: str
    commands: tuple[Command, ...]
    edits: tuple[EditPlan, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """Two clusters, by the labels of their masters. `smaller` is the one that would merge into `greater`."""

    smaller: str
    greater: str
    state: PairState
    rule: str
    """A word for what is in the way: a rule of the merge decision, or one of this module."""
    sentence: str
    unblock: Unblock | None

    @property
    def key(self) -> str:
        return f"{self.smaller}\x00{self.greater}"

    @property
    def state_text(self) -> str:
        return f"{GLYPHS[self.state]} {self.state}"


def why_not_merging(picture: Picture, now_us: int, *, at_most: int = PAIRS_SHOWN) -> tuple[Pair, ...]:
    """Every pair of masters in sight at `now_us` on the run's clock; none while there is one cluster."""
    masters = [picture.members[label] for label in picture.masters()]
    if len(masters) < 2:
        return ()
    masters.sort(key=lambda master: -len(master.members))
    known: dict[str, frozenset[Address]] = {}

    def search_addresses(master: MemberBelief) -> frozenset[Address]:
        if master.label not in known:
            known[master.label] = frozenset(master.search_addresses)
        return known[master.label]

    pairs = islice(combinations(masters, 2), at_most)
    return tuple(_explain_pair(picture, first, other, now_us, search_addresses) for first, other in pairs)


def pairs_left_out(picture: Picture, at_most: int = PAIRS_SHOWN) -> int:
    """How many pairs `why_not_merging` does not judge."""
    number = len(picture.masters())
    return max(number * (number - 1) // 2 - at_most, 0)


def _explain_pair(
    picture: Picture,
    one: MemberBelief,
    other: MemberBelief,
    now_us: int,
    search_addresses: Callable[[MemberBelief], frozenset[Address]],
) -> Pair:
    # Who would merge into whom if nothing was in the way, and why.
    mine, theirs = profile(one), profile(other)
    outcome, why = next(verdict for rule in BY_SIZE if (verdict := rule.judge(mine, theirs)) is not None)
    smaller, greater, by_size = (one, other, why) if outcome == "local-merges" else (other, one, why)
    diagnosis = PairDiagnosis(
        picture, smaller, greater, with_names(by_size, picture.label_of), now_us, search_addresses
    )
    blockers = list(diagnosis.blockers())
    first = blockers[0]
    besides = [blocker.rule for blocker in blockers[1:] if blocker.state == "blocked"]
    more = f" (besides: {', '.join(besides)})" if besides else ""
    return Pair(
        smaller.label, greater.label, first.state, first.rule, one_line(f"{first.sentence}{more}"), _unblock(blockers)
    )


def _unblock(blockers: Sequence[Blocker]) -> Unblock | None:
    """Everything that helps, but only if whatever is in the way can be helped."""
    if any(blocker.state == "blocked" and not blocker.commands for blocker in blockers):
        return None
    helping = [blocker for blocker in blockers if blocker.commands or blocker.remedy]
    if not helping:
        return None
    commands = tuple(dict.fromkeys(command for blocker in helping for command in blocker.commands))
    remedies = dict.fromkeys(blocker.remedy for blocker in helping)
    return Unblock(
        one_line("; ".join(remedies)), commands, tuple(edit for blocker in helping for edit in blocker.edits)
    )
