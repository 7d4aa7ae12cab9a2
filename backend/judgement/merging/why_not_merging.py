"""Why two clusters do not become one, for each pair of masters in sight, with the commands that would help.

See Split-brain Recovery Improvements; Hazelcast: merge decision and split brain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, islice

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.core.membership.split_brain.merge_decision import RULES
from quarterdeck.backend.judgement.merging.join_list_edit import EditPlan
from quarterdeck.backend.judgement.merging.merge_blockers import Blocker, PairDiagnosis, PairState, profile
from quarterdeck.backend.picture.fold.picture import MemberBelief, Picture
from quarterdeck.backend.picture.text.formatting import one_line, with_names

PAIRS_SHOWN = 100
"""Of very many clusters only so many pairs are judged, those of the largest clusters first."""

GLYPHS: dict[PairState, str] = {"merging": "⇒", "due": "…", "waits": "◌", "blocked": "∦"}

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
    strangers = cache(lambda label: frozenset(picture.members[label].search_addresses))
    pairs = islice(combinations(masters, 2), at_most)
    return tuple(_explain_pair(picture, first, other, now_us, strangers) for first, other in pairs)


def pairs_left_out(picture: Picture, at_most: int = PAIRS_SHOWN) -> int:
    """How many pairs `why_not_merging` does not judge."""
    number = len(picture.masters())
    return max(number * (number - 1) // 2 - at_most, 0)


def _explain_pair(
    picture: Picture,
    one: MemberBelief,
    other: MemberBelief,
    now_us: int,
    strangers: Callable[[str], frozenset[Address]],
) -> Pair:
    # Who would merge into whom if nothing was in the way, and why.
    mine, theirs = profile(one), profile(other)
    outcome, why = next(verdict for rule in BY_SIZE if (verdict := rule.judge(mine, theirs)) is not None)
    smaller, greater = (one, other) if outcome == "local-merges" else (other, one)
    by_size = with_names(why, picture.label_of)
    blockers = list(PairDiagnosis(picture, smaller, greater, by_size, now_us, strangers).blockers())
    first = blockers[0]
    besides = [blocker.rule for blocker in blockers[1:] if blocker.state == "blocked"]
    more = f" (besides: {', '.join(besides)})" if besides else ""
    sentence = one_line(f"{first.sentence}{more}")
    return Pair(smaller.label, greater.label, first.state, first.rule, sentence, _unblock(blockers))


def _unblock(blockers: Sequence[Blocker]) -> Unblock | None:
    """Everything that helps, but only if whatever is in the way can be helped."""
    if any(blocker.state == "blocked" and not blocker.commands for blocker in blockers):
        return None
    helping = [blocker for blocker in blockers if blocker.commands or blocker.remedy]
    if not helping:
        return None
    commands = tuple(dict.fromkeys(command for blocker in helping for command in blocker.commands))
    remedies = dict.fromkeys(blocker.remedy for blocker in helping)
    edits = tuple(edit for blocker in helping for edit in blocker.edits)
    return Unblock(one_line("; ".join(remedies)), commands, edits)


def unusable_text(belief: MemberBelief) -> str:
    """Every address of no use, and what this member has found there; empty when there is none."""
    return "; ".join(f"{address}: {found.reason}" for address, found in belief.unusable.items())
