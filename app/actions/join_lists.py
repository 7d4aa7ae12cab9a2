"""Actions of the join lists: edit one or all, and take away what keeps two clusters apart."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, one_word

ACTIONS: tuple[Action, ...] = (
    Action(
        "unblock", "unblock", "Take away what keeps the two clusters under the cursor apart, as far as that can be done.",
        "u", "u", "Join lists",
        one_word("unblock", "nothing", "", "take away what keeps the two clusters under the cursor apart"),
        views=("join-lists",), destructive=True, needs_write=True,
    ),
    Action(
        "edit-list", "edit list", "Edit the join list of the cluster of the member under the cursor, one entry a line.",
        "e", "e", "Join lists",
        one_word("edit-list", "optional member", "[MEMBER]", "edit the join list of a member's cluster, one entry a line"),
        views=("join-lists",), needs_write=True,
    ),
    Action(
        "edit-all-lists", "edit all", "Edit the join lists of all clusters at once, one entry a line.",
        "A", "A", "Join lists",
        one_word("edit-all-lists", "nothing", "", "edit the join lists of all clusters at once"),
        views=("join-lists",), needs_write=True,
    ),
)  # fmt: skip
