"""The links of one member, and whose heartbeats arrive, or are late, as facts to paint."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from quarterdeck.backend.core.witnessed.events import LinkMeasured
from quarterdeck.backend.picture.boards.member_board import heartbeat, heartbeat_observers
from quarterdeck.backend.picture.events.faults import condition_text
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import age_text, counted, duration_text
from quarterdeck.backend.picture.text.not_told import not_told_fact

LINKS_SPELT_OUT = 12
"""How many links are told of before the rest is only counted."""


def heartbeat_facts(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    """How the others hear it, and whom it waits for."""
    heard = heartbeat(picture, belief, heartbeat_observers(picture), now_us)
    if heard.left_us is not None:
        yield Fact("heartbeat", f"{heard.glyph} {heard.sentence}", heard.tone)
    elif not heard.known:
        yield not_told_fact("heartbeat", "heartbeats", belief.witnessed_by)
    heading = "waits for"
    for address, silence in belief.silences.items():
        left = age_text(silence.heard_us + silence.timeout_us - now_us)
        text = f"◔ {picture.label_of(address)}, silent for {age_text(now_us - silence.heard_us)}; suspects it in {left}"
        yield Fact(heading, text, "warning")
        heading = ""


def link_facts(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    """Its links that are not plain, both ways. What is wrong with a link is known when somebody made it so."""
    ends = belief.label
    touched = [link for (source, target), link in picture.links.items() if ends in (source, target)]
    others = sum(other.running and other is not belief for other in picture.members.values())
    if belief.metrics is not None and belief.metrics.strained_links is not None:
        yield from _measured_links(picture, belief.metrics.strained_links, now_us - belief.metrics_us)
        return
    if not touched and not belief.tells("links"):
        yield not_told_fact("links", "links", belief.witnessed_by)
        return
    if not touched:
        yield Fact("links", f"✓ up, to {counted(others, 'running member')}: none is cut, slowed down or lossy")
        return
    heading = "links"
    for link in islice(touched, LINKS_SPELT_OUT):
        way = f"→ {link.target}" if link.source == ends else f"← {link.source}"
        glyph = "✂" if link.blocked else "~"
        yield Fact(heading, f"{glyph} {way} {condition_text(link)}", "bad" if link.blocked else "warning")
        heading = ""
    if len(touched) > LINKS_SPELT_OUT:
        yield Fact("", f"and {len(touched) - LINKS_SPELT_OUT} more")


def _measured_links(picture: Picture, strained: tuple[LinkMeasured, ...], age_us: int) -> Iterator[Fact]:
    """Yield how a real member writes to the others, by its metrics."""
    since = f"by its metrics, much the same for {age_text(age_us)}; what arrives is not told"
    if not strained:
        yield Fact("links", f"✓ it writes to every member to which it has connections ({since})")
    heading = "links"
    for link in strained[:LINKS_SPELT_OUT]:
        idle = f"nothing written for {duration_text(link.idle)}" if link.idle is not None else ""
        queued = f"{counted(link.queued, 'packet')} waiting" if link.queued else ""
        text = ", ".join(filter(None, (idle, queued))) if link.connections else "its connections are gone"
        yield Fact(heading, f"~ → {picture.label_of(link.address)} {text}", "warning")
        heading = ""
    if strained:
        more = f"and {len(strained) - LINKS_SPELT_OUT} more, " if len(strained) > LINKS_SPELT_OUT else ""
        yield Fact("", more + since, "faint")
