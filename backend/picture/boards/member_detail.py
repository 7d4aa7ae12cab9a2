"""Everything known of one member, as facts to paint: a heading and what is to be said under it.

Ages are in whole seconds, so a painter that asks again each second has something new to paint at most then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.views.member_list import MemberList, member_list_text
from quarterdeck.backend.picture.boards.belief_matrix import BELIEF_CELLS, state_word
from quarterdeck.backend.picture.boards.data_board import data_facts
from quarterdeck.backend.picture.boards.member_events import recent_facts
from quarterdeck.backend.picture.boards.partition_detail import partition_facts
from quarterdeck.backend.picture.boards.process_facts import process_facts
from quarterdeck.backend.picture.events.split_brain import VERDICTS
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import Fact, Tone
from quarterdeck.backend.picture.text.formatting import age_text, one_line, with_names
from quarterdeck.backend.picture.text.not_told import not_told_fact

Key = TypeVar("Key")
Value = TypeVar("Value")

INDENT = "  "
"""In place of the tabs of the list's text, which terminals set as they like."""


def member_detail(
    picture: Picture,
    label: str,
    now_us: int,
    *,
    legacy: bool = False,
    recent: Sequence[Record] | None = None,
    listing: bool = True,
) -> tuple[Fact, ...]:
    """Return what `label` believes at `now_us` on the run's clock.

    `legacy` chooses the older text of the member list; without `listing` that list, a line for each member, is left out. `recent`
    are records up to then, in order of time, of which those of the member are shown.
    """
    belief = picture.members.get(label)
    if belief is None:
        return (Fact("status", "not up: nothing was ever heard of it", "faint"),)
    # Imported for the first member of whom something is told: nothing is in the first picture of a new cluster.
    from quarterdeck.backend.picture.boards.member_links import heartbeat_facts, link_facts
    from quarterdeck.backend.picture.merging.join_list_board import join_list_facts

    facts = [
        *_standing(picture, belief, now_us),
        *heartbeat_facts(picture, belief, now_us),
        *_obstacles(picture, belief, now_us),
        *_suspicions(picture, belief, now_us),
        *_disconnections(picture, belief, now_us),
        *_verdicts(picture, belief, now_us),
        *partition_facts(picture, belief, now_us),
        *data_facts(picture, belief, now_us),
        *process_facts(belief, now_us),
        *join_list_facts(picture, belief, now_us),
        *link_facts(picture, belief, now_us),
        *(recent_facts(picture, recent, label) if recent is not None else ()),
        *(_list_text(belief, legacy) if listing else ()),
    ]
    return tuple(Fact(fact.heading, one_line(fact.text), fact.tone, fact.verbatim) for fact in facts)


def _standing(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    state = state_word(belief) or "member"
    follows = (
        "is master" if belief.is_master else f"follows {_names(picture, [belief.master])}" if belief.master else ""
    )
    since = (
        f"list v{belief.version} since {age_text(now_us - belief.list_since_us)}" if belief.version else "no list yet"
    )
    tone: Tone = "plain" if belief.running else "faint" if belief.status in ("stopped", "killed") else "warning"
    yield Fact("status", ", ".join(filter(None, (state, follows, since))), tone)
    if not belief.reached and belief.connection is not None:
        yield Fact("", with_names(belief.connection.reason, picture.label_of), "warning")
    if belief.status in ("paused", "stopped", "killed"):
        yield Fact("", "what follows is what it believed last", "faint")
    life = f"{belief.address or 'address not known'}, life {belief.uuid}"
    yield Fact("", f"{life}, come out of a merge" if belief.merged_from else life)
    if not belief.version:
        return
    if belief.tells("cluster-state"):
        state_tone: Tone = "plain" if belief.cluster_state == "ACTIVE" else "warning"
        yield Fact("cluster", belief.cluster_state, state_tone)
    else:
        yield not_told_fact("cluster", "cluster-state", belief.witnessed_by)
    if not belief.tells("data"):
        yield not_told_fact("operations", "data", belief.witnessed_by)
    elif belief.operating:
        yield Fact("operations", "served")
    else:
        seen = f"it sees {len(belief.members)} members and needs {belief.needed}"
        yield Fact("operations", f"✕ refused: {seen}", "bad")


def _obstacles(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    """Yield what the member waits for, which members wait for it, and why its cluster does not heal."""
    if belief.merging:
        yield Fact("merging", f"into the cluster of {_names(picture, [belief.merging])}", "warning")
    tone: Tone = "warning" if len(picture.masters()) > 1 else "plain"
    for heading, (_, obstacle) in _under("not merging", belief.obstacles):
        yield Fact(heading, with_names(obstacle.reason, picture.label_of), tone)
    if belief.delay is not None:
        delayed_by, links_to = _names(picture, [belief.delay.master]), _names(picture, belief.delay.missing)
        left_us = belief.delay.until_us - now_us
        again = f"; tries again in {age_text(left_us)}" if left_us > 0 else ""
        text = f"{delayed_by} lets it in when its links to {links_to} are proven{again}"
        yield Fact("waits", text, "warning")
    for heading, (address, missing) in _under("holds back", belief.held_back):
        whom = f"its links to {_names(picture, missing)}" if missing else "all its links"
        text = f"{BELIEF_CELLS['held'].glyph} {_names(picture, [address])}, until {whom} are proven both ways"
        yield Fact(heading, text, "warning")


def _suspicions(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    for heading, (address, (reason, since_us)) in _under("suspects", belief.suspicions):
        who, why = _names(picture, [address]), with_names(reason, picture.label_of)
        yield Fact(
            heading, f"{BELIEF_CELLS['suspected'].glyph} {who} since {age_text(now_us - since_us)}: {why}", "warning"
        )
    if not belief.suspicions:
        known = belief.tells("suspicions")
        yield Fact("suspects", "nobody") if known else not_told_fact("suspects", "suspicions", belief.witnessed_by)


def _disconnections(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    for heading, (reporter, suspects) in _under("reports", belief.reports):
        text = f"{_names(picture, [reporter])} cannot reach {_names(picture, suspects)}; not settled yet"
        yield Fact(heading, text, "warning")
    if belief.resolution is not None:
        settled = belief.resolution
        proven = "" if settled.exact else ", the best found in time"
        text = (
            f"{age_text(now_us - settled.at_us)} ago{proven}: kept {_names(picture, settled.keep)}; "
            f"removed {_names(picture, settled.remove)}: {with_names(settled.why, picture.label_of)}"
        )
        yield Fact("settled", text)


def _verdicts(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    for heading, (remote, (decision, rule, why, since_us)) in _under("met", belief.verdicts):
        when = f"{age_text(now_us - since_us)} ago"
        why = with_names(why, picture.label_of)
        yield Fact(heading, f"{_names(picture, [remote])}, {when}: {VERDICTS[decision]} ({rule}: {why})")


def _list_text(belief: MemberBelief, legacy: bool) -> Iterator[Fact]:
    if belief.members:
        text = member_list_text(MemberList(belief.version, belief.members, belief.lineage), belief.uuid, legacy=legacy)
        for line in text.split("\n"):
            yield Fact("", line.replace("\t", INDENT), verbatim=True)


def _under(heading: str, entries: Mapping[Key, Value]) -> Iterator[tuple[str, tuple[Key, Value]]]:
    """Pair the first entry with `heading` and the others with none."""
    return zip((heading, *[""] * len(entries)), entries.items(), strict=False)


def _names(picture: Picture, addresses: Iterable[Address]) -> str:
    return ", ".join(picture.label_of(address) for address in addresses) or "nobody"
