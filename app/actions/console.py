"""Actions of the console itself, known in every view: time, the prompt, help, tables, copying, clusters in tabs, leaving."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, CommandWord, one_word
from quarterdeck.backend.clusters.cluster import SNAPSHOTS

TIME_ACTIONS: tuple[Action, ...] = (
    Action(
        "time-back", "event back", "Show the moment of the previous event.", "less_than_sign", "<", "Time", shown=False,
    ),
    Action(
        "time-on", "event on", "Show the moment of the next event.", "greater_than_sign", ">", "Time", shown=False,
    ),
    Action(
        "time-second-back", "second back", "Go back by a second.",
        "left_square_bracket", "[", "Time", shown=False,
    ),
    Action(
        "time-second-on", "second on", "Go forward by a second.", "right_square_bracket", "]", "Time", shown=False,
    ),
    Action(
        "time-pause", "stand still", "Stop at the moment that is shown, or go on from it.",
        "full_stop", ".", "Time", shown=False,
    ),
    Action(
        "time-live", "newest", "Return to the present, and follow it.",
        "L", "L", "Time", one_word("live"), shown=False,
    ),
    Action(
        "time-at", "go to", "Type the moment to show.",
        "", "", "Time",
        one_word(
            "at", "text", "MOMENT", meaning="show a moment: 12.5, 1:30, +2, -500ms, MEMBER#NUMBER, a bookmark, start, end",
        ),
        shown=False,
    ),
    Action(
        "time-bookmark", "bookmark", "Bookmark the moment that is shown.",
        "B", "B", "Time", one_word("bookmark", "text", "[NAME]"), shown=False,
    ),
    Action(
        "time-speed", "speed", "Type how many seconds of the run pass in one second.",
        "", "", "Time", one_word("speed", "text", "NUMBER", meaning="set how many seconds of the run pass in one second"),
        shown=False,
    ),
    Action(
        "time-fork", "fork", "Open a simulated copy of the cluster as it is now, to try things in.",
        "F", "F", "Time",
        one_word(
            "fork", "text", "[COMMAND …]",
            meaning="open a simulated copy, and do a command there such as `kill n1`, or `nothing`",
        ),
        needs=frozenset({SNAPSHOTS}), shown=False, cli="cluster fork --out DIR",
    ),
)  # fmt: skip

CONSOLE_ACTIONS: tuple[Action, ...] = (
    Action(
        "filter", "filter", "Show only the rows, or events, that contain a text.",
        "slash", "/", "View", one_word("filter", "text", "[TEXT]", meaning="show only what contains the text; none: show all"),
    ),
    Action(
        "sort", "sort", "Sort the table by its next column.",
        "O", "O", "View", one_word("sort", "column", "[COLUMN [desc]]", meaning="sort by a column; none: by the next one"),
        shown=False,
    ),
    Action("reverse", "reverse", "Reverse the order of the rows.", "R", "R", "View", shown=False),
    Action(
        "columns", "columns", "Type the column that is to be hidden, or shown again.", "", "", "View",
        (
            CommandWord("hide", "column", "hide COLUMN", "leave a column out"),
            CommandWord("show", "column", "show [COLUMN]", "show a hidden column again; none: all of them"),
            CommandWord("save", "nothing", "save", "open this view with this filter from now on"),
            CommandWord("reset", "nothing", "reset", "reset sort, columns and filter of this view"),
        ),
        shown=False,
    ),
    Action("copy", "copy", "Copy the row under the cursor, or the selected ones, as text.", "y", "y", "View", shown=False),
    Action(
        "copy-json", "copy JSON", "Copy the row under the cursor, or the selected ones, as JSON.", "Y", "Y", "View", shown=False,
    ),
    Action(
        "export", "export", "Type the file that this view is written to: .csv or .json.",
        "E", "E", "View",
        one_word("export", "file", "FILE", meaning="write this view to a .csv or .json file; ! after it overwrites"),
        shown=False,
    ),
    Action(
        "screenshot", "screenshot", "Save the screen as an SVG file.",
        "ctrl+s", "^s", "View", one_word("screenshot", "file", "[FILE]"), shown=False,
    ),
    Action("prompt", "command", "Type a command.", "colon", ":", "Console"),
    Action(
        "help", "keys", "Show what to do about what is wrong now, and every key and command.",
        "question_mark", "?", "Console",
    ),
    Action(
        "cli", "as CLI", "Show the command line that does what was done last, or shows what is in sight.",
        "dollar_sign", "$", "Console", one_word("cli"),
        shown=False,
    ),
    Action(
        "cluster", "cluster", "Go to the next cluster that is open.",
        "tilde", "~", "Console",
        (
            CommandWord("cluster", "cluster", "cluster [NAME]", "open a cluster of the configuration, or go to an open one"),
            CommandWord("close", "nothing", "close", "close this cluster's tab"),
        ),
        shown=False,
    ),
    Action(
        "theme", "theme", "Type the theme to use.",
        "", "", "Console", one_word("theme", "theme", "NAME", meaning="use another theme"), shown=False,
    ),
    Action(
        "suspend", "suspend", "Stop the console and return to the shell, until fg.",
        "ctrl+z", "^z", "Console", shown=False,
    ),
    Action(
        "back", "back", "Go one level back: remove the filter, then close what is open in the view, then the view.",
        "q,escape", "q", "Console",
    ),
    Action(
        "quit", "quit", "Leave the console; asks first where members would end with it.",
        "Q", "Q", "Console",
        (
            CommandWord("quit", "nothing", "quit", "leave the console"),
            CommandWord("q", "nothing", "q", "leave the console"),
        ),
    ),
)  # fmt: skip
