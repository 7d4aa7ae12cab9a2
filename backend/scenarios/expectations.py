"""Expectations checked against the picture: the conditions of a scenario, and in words the unmet ones.

Pure functions. A live and a simulated run are checked by the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.fold.picture import MemberBelief, Picture
from quarterdeck.backend.picture.text.formatting import follows_text
from quarterdeck.backend.scenarios.event_patterns import events_missing, forbidden_event
from quarterdeck.backend.scenarios.format.scenario import Expect


def members_missing(expect: Expect, picture: Picture, records: Sequence[Record], refusal: str | None = None) -> str:
    """Return the unmet parts of `expect`, in words; empty when all hold.

    `records` are those that count; only `event` and `never` look at them.
    """
    return "; ".join((*_missing(expect, picture, records), *_healing_missing(expect, picture, refusal)))


def running(picture: Picture) -> dict[str, MemberBelief]:
    """Return the members whose process runs, by label: the paused, the stopped and the killed are left out."""
    return {label: belief for label, belief in picture.members.items() if belief.status in ("joining", "member")}


def list_labels(picture: Picture, belief: MemberBelief) -> tuple[str, ...]:
    """Return a member's list as labels, oldest first."""
    return tuple(picture.label_of(member.address) for member in belief.members)


def suspect_labels(picture: Picture, belief: MemberBelief) -> tuple[str, ...]:
    """Whom a member suspects, as labels in alphabetical order."""
    return tuple(sorted(picture.label_of(address) for address in belief.suspicions))


def _missing(expect: Expect, picture: Picture, records: Sequence[Record]) -> Iterator[str]:
    for label, view in expect.views.items():
        belief = picture.members.get(label)
        if belief is None or set(list_labels(picture, belief)) != set(view):
            yield f"{_standing(picture, label)}; expected {_names(view)}"
    for label, view in expect.order.items():
        belief = picture.members.get(label)
        if belief is None or list_labels(picture, belief) != tuple(view):
            yield f"{_standing(picture, label)}; expected {_names(view)} in this order"
    for label, master in expect.masters.items():
        belief = picture.members.get(label)
        if (followed := _follows(picture, belief)) != master:
            yield f"{follows_text(label, followed)}; expected: {follows_text(label, master)}"
    for label, version in expect.versions.items():
        belief = picture.members.get(label)
        if belief is None or belief.version != version:
            yield f"{_standing(picture, label)}; expected version {version}"
    if expect.version_at_least is not None:
        for label, belief in running(picture).items():
            if belief.version < expect.version_at_least:
                yield f"{_standing(picture, label)}; expected version {expect.version_at_least} at least"
    if expect.one_cluster is not None:
        yield from _one_cluster_missing(picture, expect.one_cluster)
    for label, suspects in expect.suspects.items():
        belief = picture.members.get(label)
        actual = suspect_labels(picture, belief) if belief else ()
        if belief is None or set(actual) != set(suspects):
            yield f"{label} suspects {_names(actual)}; expected {_names(suspects)}"
    for label, belief in running(picture).items():
        left = [label for label in list_labels(picture, belief) if label in expect.removed]
        if left and label not in expect.removed:
            yield f"{label} still has {_names(left)} on its list; expected removed"
    yield from events_missing(expect.event, picture, records, expect.since_text)
    if happened := forbidden_event(expect.never, picture, records):
        yield happened


def _healing_missing(expect: Expect, picture: Picture, refusal: str | None) -> Iterator[str]:
    for label, state in expect.state.items():
        actual = picture.members[label].cluster_state if label in picture.members else ""
        if actual != state:
            yield f"{label} believes that the cluster is {actual or 'in no state yet'}; expected {state}"
    if expect.held_back is not None:
        addresses = {address: None for belief in picture.members.values() for address in belief.held_back}
        held = [picture.label_of(address) for address in addresses]
        if set(held) != set(expect.held_back):
            yield f"held back: {_names(sorted(held))}; expected {_names(expect.held_back)}"
    for label, wanted in expect.not_merging.items():
        belief = picture.members.get(label)
        reason = "; ".join(obstacle.reason for obstacle in belief.obstacles.values()) if belief else ""
        if not reason:
            yield f"{label} gave no reason for not merging; expected {wanted!r}"
        elif wanted not in reason:
            yield f"{label} does not merge for another reason: {reason}; expected {wanted!r}"
    if expect.refused is not None:
        if refusal is None:
            yield "the last command was not refused"
        elif expect.refused not in refusal:
            yield f"the last command was refused for another reason: {refusal}; expected {expect.refused!r}"


def _one_cluster_missing(picture: Picture, wanted: bool) -> Iterator[str]:
    why_not = _why_not_one_cluster(picture)
    if wanted and why_not:
        yield f"{why_not}; expected one cluster"
    if not wanted and not why_not:
        yield "all running members are one cluster; expected several"


def _why_not_one_cluster(picture: Picture) -> str:
    """Why the running members do not all believe in one list of exactly themselves; empty when they do."""
    alive = running(picture)
    if not alive:
        return "no member is running"
    first_label, first = next(iter(alive.items()))
    for label, belief in alive.items():
        if set(list_labels(picture, belief)) != set(alive):
            return f"{_standing(picture, label)}, running are {_names(alive)}"
        if (belief.lineage, belief.version) != (first.lineage, first.version):
            return f"{_standing(picture, first_label)}, but {_standing(picture, label)}, of another version or lineage"
        if belief.master != first.master or belief.status != "member":
            masters = _follows(picture, belief), _follows(picture, first)
            return f"{follows_text(label, masters[0])}, {follows_text(first_label, masters[1])}"
    return ""


def _standing(picture: Picture, label: str) -> str:
    belief = picture.members.get(label)
    if belief is None:
        return f"{label} was never started"
    if not belief.members:
        return f"{label} has no list"
    return f"{label}'s list is v{belief.version} {_names(list_labels(picture, belief))}"


def _follows(picture: Picture, belief: MemberBelief | None) -> str:
    return picture.label_of(belief.master) if belief is not None and belief.master else ""


def _names(labels: Iterable[str]) -> str:
    return ", ".join(labels) or "nobody"
