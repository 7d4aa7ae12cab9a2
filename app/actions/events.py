"""Actions of the events: why one happened, what story it belongs to, and the space–time diagram."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, CommandWord, one_word

ACTIONS: tuple[Action, ...] = (
    Action(
        "event-fields", "unfold", "Unfold the episode under the cursor; of an event, show everything that it says.",
        "enter,i", "enter", "Events", views=("events",),
    ),
    Action(
        "event-level", "level", "Tell events by episodes, by decisions with a line a second for the rest, or each by itself.",
        "l", "l", "Events",
        (CommandWord("level", "choice", "level [LEVEL]", "tell events by episodes, by decisions, or each by itself",
                     ("episode", "decision", "everything")),),
        views=("events",),
    ),
    Action(
        "event-because", "because", "Show why the event under the cursor happened: its causes, link by link.",
        "b", "b", "Events", one_word("because", "nothing", "", "show why the event under the cursor happened"),
        views=("events", "overview"),
    ),
    Action(
        "event-story", "story", "Tell the claim, merge, migration or member that the event belongs to; again: the next of them.",
        "u", "u", "Events",
        one_word("story", "optional member", "[MEMBER]", "tell the story of a member, or of the event under the cursor"),
        views=("events",),
    ),
    Action(
        "space-time", "space–time", "Draw the events as a space–time diagram, members side by side; and back to the lines.",
        "z", "z", "Events", one_word("space-time", "nothing", "", "draw the events as a space–time diagram, and back"),
        views=("events",),
    ),
    Action(
        "event-jump", "show in time", "Show the whole picture as it was at the event under the cursor.",
        "T", "T", "Events", views=("events",),
    ),
    Action("event-follow", "follow", "Follow the events, or pause them.", "f", "f", "Events", views=("events",)),
    Action(
        "event-next", "next match", "Go to the next event that matches the filter.", "n", "n N", "Events", views=("events",),
    ),
    Action(
        "event-previous", "match before", "Go to the event before that matches the filter.",
        "N", "N", "Events", views=("events",), shown=False,
    ),
    Action(
        "event-marking", "hide or mark", "Let the filter mark what matches, instead of hiding what does not; and back.",
        "H", "H", "Events", one_word("mark", "text", "[TEXT]", "mark the events that match, rather than hide the others"),
        views=("events",), shown=False,
    ),
    Action(
        "event-utc", "run clock or UTC", "Tell times in UTC instead of on the run's clock; and back.",
        "t", "t", "Events", views=("events",), shown=False,
    ),
    Action(
        "event-zoom", "zoom", "Let a row of the space–time diagram take up more time, or less.",
        "plus", "+ −", "Events",
        (CommandWord("zoom-rows", "choice", "zoom-rows [TIME]", "how much time a row of the diagram takes up at most",
                     ("event", "1ms", "10ms", "100ms", "1s", "10s")),),
        views=("events",), shown=False,
    ),
    Action(
        "event-zoom-in", "zoom in", "Let a row of the space–time diagram take up less time.",
        "minus", "−", "Events", views=("events",), shown=False,
    ),
)  # fmt: skip
