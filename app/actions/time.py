"""Actions of time: going back in the run and on again, in every view; marks, zoom and forks on the screen of time."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, one_word
from quarterdeck.backend.clusters.limits import SNAPSHOTS

ACTIONS: tuple[Action, ...] = (
    Action(
        "time-back", "event back", "Show the moment of the event before.", "less_than_sign", "<", "Time", shown=False,
    ),
    Action(
        "time-on", "event on", "Show the moment of the next event.", "greater_than_sign", ">", "Time", shown=False,
    ),
    Action(
        "time-second-back", "second back", "Go a second back in the run.",
        "left_square_bracket", "[", "Time", shown=False,
    ),
    Action(
        "time-second-on", "second on", "Go a second on in the run.", "right_square_bracket", "]", "Time", shown=False,
    ),
    Action(
        "time-pause", "stand still", "Stand still at the moment that is shown, or go on from it.",
        "full_stop", ".", "Time", shown=False,
    ),
    Action(
        "time-live", "newest", "Show the newest, and follow it.",
        "L", "L", "Time", one_word("live", "nothing", "", "show the newest, and follow it"), shown=False,
    ),
    Action(
        "time-at", "go to", "Type the moment to show.",
        "", "", "Time",
        one_word("at", "text", "MOMENT", "show a moment: 12.5, 1:30, +2, -500ms, MEMBER#NUMBER, a bookmark, start, end"),
        shown=False,
    ),
    Action(
        "time-bookmark", "bookmark", "Bookmark the moment that is shown.",
        "B", "B", "Time", one_word("bookmark", "text", "[NAME]", "bookmark the moment that is shown"), shown=False,
    ),
    Action(
        "time-speed", "speed", "Type how many seconds of the run pass in one second.",
        "", "", "Time", one_word("speed", "text", "NUMBER", "let so many seconds of the run pass in one second"),
        shown=False,
    ),
    Action(
        "time-slower", "slower", "Let time go half as fast.", "left_curly_bracket", "{ }", "Time", views=("time",),
    ),
    Action(
        "time-faster", "faster", "Let time go twice as fast.",
        "right_curly_bracket", "}", "Time", views=("time",), shown=False,
    ),
    Action(
        "time-violation", "violation", "Go to the next violation of an invariant.",
        "n", "n N", "Time", views=("time",),
    ),
    Action(
        "time-violation-before", "violation before", "Go to the violation before.",
        "N", "N", "Time", views=("time",), shown=False,
    ),
    Action(
        "time-mark", "mark", "Go to the next mark: a split, a claim, a fault, a violation or a bookmark.",
        "m", "m M", "Time", views=("time",),
    ),
    Action("time-mark-before", "mark before", "Go to the mark before.", "M", "M", "Time", views=("time",), shown=False),
    Action(
        "time-here", "to the event", "Go to the moment of the event under the cursor.",
        "enter,i", "enter", "Time", views=("time",),
    ),
    Action("time-zoom-in", "zoom", "Show half as much time in the strip.", "plus", "+ −", "Time", views=("time",)),
    Action(
        "time-zoom-out", "zoom out", "Show twice as much time in the strip.",
        "minus", "−", "Time", views=("time",), shown=False,
    ),
    Action(
        "time-whole", "whole run", "Show the whole run in the strip.", "z", "z", "Time", views=("time",), shown=False,
    ),
    Action(
        "time-fork", "fork", "Open a simulated copy of the cluster as it is now, to try things in.",
        "F", "F", "Time",
        one_word("fork", "text", "[COMMAND …]", "open a simulated copy, and do a command there such as `kill n1`, or `nothing`"),
        needs=frozenset({SNAPSHOTS}), shown=False, cli="cluster fork --out DIR",
    ),
)  # fmt: skip
