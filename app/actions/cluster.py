"""Actions on a cluster: join list, state, search, operations."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, one_word

ACTIONS: tuple[Action, ...] = (
    Action(
        "join-list", "join list", "Edit the join list of the cluster of the member under the cursor.",
        "e", "e", "Cluster",
        one_word("join-list", "addresses", "MEMBER A,B", "edit the join list; members or addresses"),
        aims=True, needs_write=True,
    ),
    Action(
        "state", "state", "Type the state that the cluster of the member under the cursor is to take.",
        "S", "S", "Cluster", one_word("state", "state", "MEMBER STATE", "change the state of a member's cluster"),
        destructive=True, aims=True, needs_write=True,
    ),
    Action(
        "search", "search", "Let the selected masters, or the one under the cursor, look for other clusters now.",
        "m", "m", "Cluster", one_word("search", "member", "MEMBER", "let a master look for other clusters now"),
        destructive=True, aims=True, needs_write=True,
    ),
    Action(
        "operate", "operate", "Ask the selected members, or the one under the cursor, for an operation, as a client would.",
        "o", "o", "Cluster", one_word("operate", "member", "MEMBER", "ask a member for an operation"),
        aims=True, needs_write=True,
    ),
)  # fmt: skip
