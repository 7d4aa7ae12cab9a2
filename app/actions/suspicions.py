"""Actions of the view of suspicions."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, one_word

ACTIONS: tuple[Action, ...] = (
    Action(
        "suspicions-whole", "all or some", "Show all members, or only those who suspect and those who are suspected.",
        "z", "z", "Suspicions",
        one_word("everybody", "choice", "[on|off]", "show all members, or only those with suspicions", "on", "off"),
        views=("suspicions",),
    ),
)  # fmt: skip
