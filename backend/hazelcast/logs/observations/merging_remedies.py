"""Why clusters that are apart do not merge, and what to do about it, as it fits how their members find each other."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from quarterdeck.backend.core.witnessed.discovery import ANY, discovery_remedies

Situation = Literal[
    "abandoned", "cannot", "waiting", "redirected", "unmet", "untold", "late", "merged", "merged-untold", "ended",
    "ended-untold",
]  # fmt: skip
"""Why the sides stay apart, or how that ended."""

JOIN_LIST_PATH = "hazelcast/rest/config/tcp-ip/member-list"
_MERGED = "What was written on the smaller side is merged by the map's merge policy, or lost."

_CAUSES: dict[Situation, tuple[str, str]] = {
    "abandoned": (
        "A merge was begun and given up: the losing side could not freeze its state, because migrations were pending or the "
        "state was locked.",
        "Wait until the migrations of the smaller side have ended; look for 'pending migration tasks' in its master's log.",
    ),
    "cannot": (
        "The sides met and found that they cannot merge: one still has a member of the other on its list, their versions "
        "differ, or a state does not allow it. The last words say which.",
        "Where lists overlap, wait for the failure detector or end the process that is on both lists; where a state forbids "
        "it, set it to ACTIVE.",
    ),
    "waiting": (
        "The sides met and agree which one is to merge, and that one does not begin: only its own search begins a merge, and "
        "that is not due yet (hazelcast.merge.first.run.delay.seconds, 300 by default, then "
        "hazelcast.merge.next.run.delay.seconds, 120) or does not look at the other side's addresses.",
        "Wait for the next search of the smaller side's master, or shorten these delays; see that its join list names the "
        "other side.",
    ),
    "redirected": (
        "One side's master searches and reaches members of the other side, but not their master: the link between the two "
        "masters is broken, and only masters merge.",
        "Mend the link between the two masters, or stop the one that is alone: it joins again when it is started.",
    ),
    "unmet": (
        "No side says that it met the other: the network between them is cut, or their join lists do not name each other.",
        "Mend the network; then, if they still do not meet, add the other side's addresses to the join list of a master "
        f"(POST {JOIN_LIST_PATH}). {ANY}",
    ),
    "untold": (
        "The network between them is cut, their join lists do not name each other, or a merge is not due: what masters find out "
        "about each other stands in their logs alone.",
        "Read the logs of both masters (--logs), or look whether each reaches the other and whether its join list names it. "
        f"{ANY}",
    ),
    "merged-untold": (
        "The network between the sides was cut for a time, one of them stood still, or they met and did not merge at once: "
        "which, only their logs say.",
        f"They have merged. {_MERGED}",
    ),
    "late": (
        "The sides reached each other long before they merged. They agreed which one is to merge, and that one did not begin: "
        "only its own search begins a merge, and that was not due (hazelcast.merge.first.run.delay.seconds, 300 by default, "
        "then hazelcast.merge.next.run.delay.seconds, 120), or did not look at the other side's addresses.",
        f"Let the join list of every member name members of both sides: at runtime by POST {JOIN_LIST_PATH} (5.2 on) to the "
        f"smaller side's master, for good in the configuration. Or shorten these delays. {_MERGED}",
    ),
    "merged": (
        "The network between the sides was cut for a time, or one of them stood still.",
        f"They have merged. {_MERGED}",
    ),
    "ended": (
        "The network between the sides was cut for a time, or one of them stood still.",
        "It ended without a merge: the members of one side stopped or were started again.",
    ),
    "ended-untold": (
        "The network between the sides was cut for a time, or one of them stood still.",
        "They are one cluster again. Whether one side has merged or was started again is not known yet.",
    ),
}


_UNSEEN = "or what they find each other by ({joiner}) does not show them each other"
_BY_DISCOVERY: dict[Situation, tuple[str, str]] = {
    "waiting": (
        "The sides met and agree which one is to merge, and that one does not begin: only its own search begins a merge, and "
        f"that is not due yet, {_UNSEEN}.",
        "Wait for the next search of the smaller side's master. {wider}",
    ),
    "unmet": (
        f"No side says that it met the other: the network between them is cut, {_UNSEEN}.",
        "Mend the network. {wider}",
    ),
    "untold": (
        f"The network between them is cut, {_UNSEEN}, or a merge is not due: what masters find out about each other stands in "
        "their logs alone.",
        "Read the logs of both masters (--logs), or look whether each reaches the other. {wider}",
    ),
    "late": (
        "The sides reached each other long before they merged. They agreed which one is to merge, and that one did not begin: "
        f"only its own search begins a merge, and that was not due, {_UNSEEN.replace('does', 'did')}.",
        f"{{wider}} {_MERGED}",
    ),
}
"""The same where neither side has a join list."""


def explained(situation: Situation, joiners: Collection[str]) -> tuple[str, str]:
    """Return the cause and the remedy. `joiners` are the ways in which members of both sides find others, as far as known."""
    wider = discovery_remedies(joiners)
    if not wider or situation not in _BY_DISCOVERY:
        return _CAUSES[situation]
    cause, remedy = _BY_DISCOVERY[situation]
    return cause.format(joiner=", ".join(joiners)), remedy.format(wider=wider)
