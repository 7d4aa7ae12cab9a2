"""Actions of the audit."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, one_word

ACTIONS: tuple[Action, ...] = (
    Action(
        "audit-run", "run the audit", "Let Spark check the journal of this run, in a process of its own; while it runs: stop it.",
        "r", "r", "Audit",
        one_word("audit-run", "text", "[PATH]", "let Spark check the journal of this run, or another; or stop that"),
        views=("audit",), cli="audit DIR",
    ),
    Action(
        "audit-jump", "show in time", "Show the whole picture as it was at the finding under the cursor.",
        "enter,T", "enter", "Audit", views=("audit",),
    ),
)  # fmt: skip
