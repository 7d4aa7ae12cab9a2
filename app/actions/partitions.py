"""Actions of the replica map: whose table, how large, and on to what is wrong in it."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, one_word

ACTIONS: tuple[Action, ...] = (
    Action(
        "map-observer", "whose table", "Show the table of the next member; the first one is the master's.",
        "t", "t", "Partitions",
        one_word("table-of", "optional member", "[MEMBER]", "show this member's table; none: the next one's"),
        views=("partitions",), cli="cluster table",
    ),
    Action(
        "map-zoom", "zoom", "Paint the map smaller: letters and marks, one letter or mark, two replicas in one line.",
        "z", "z", "Partitions",
        one_word("zoom", "choice", "[ZOOM]", "paint the map like this; none: the next way", "wide", "letters", "halves"),
        views=("partitions",),
    ),
    Action(
        "map-trouble", "next trouble", "Go to the next partition with something wrong.",
        "u", "u", "Partitions", views=("partitions",),
    ),
    Action(
        "map-trouble-before", "trouble before", "Go to the partition before with something wrong.",
        "U", "U", "Partitions", views=("partitions",), shown=False,
    ),
    Action(
        "map-partition", "partition", "Go to a partition.",
        "", "", "Partitions", one_word("show-partition", "text", "NUMBER", "put the cursor on a partition"),
        views=("partitions",), shown=False,
    ),
)  # fmt: skip
