"""Actions of the console itself: the prompt, help, tables, copying, clusters in tabs, leaving."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, CommandWord, one_word

ACTIONS: tuple[Action, ...] = (
    Action("follow", "follow", "Follow the events, or pause them.", "f", "f", "View", views=("overview",), shown=False),
    Action(
        "open-pane", "open", "Open the view that has all of the pane with the focus.",
        "enter", "enter", "View", one_word("open", "nothing", "", "open the view that has all of the pane"), views=("overview",),
    ),
    Action(
        "enlarge-pane", "enlarge", "Give the pane with the focus all the room, or take it back.",
        "plus", "+", "View", one_word("enlarge", "nothing", "", "give the pane all the room, or take it back"),
        views=("overview",),
    ),
    Action(
        "filter", "filter", "Show only the rows, or events, that hold a text.",
        "slash", "/", "View", one_word("filter", "text", "[TEXT]", "show only what holds the text; none shows all"),
    ),
    Action(
        "sort", "sort", "Sort the table by its next column.",
        "O", "O", "View", one_word("sort", "column", "[COLUMN [desc]]", "sort by a column; none: as it comes"), shown=False,
    ),
    Action("reverse", "reverse", "Turn the order of the rows around.", "R", "R", "View", shown=False),
    Action(
        "columns", "columns", "Type the column that is to be hidden, or shown again.", "", "", "View",
        (
            CommandWord("hide", "column", "hide COLUMN", "leave a column out"),
            CommandWord("show", "column", "show [COLUMN]", "show a hidden column again; none: all of them"),
            CommandWord("save", "nothing", "save", "open this view with this filter from now on"),
            CommandWord("reset", "nothing", "reset", "sort, columns and filter of this view as they were made"),
        ),
        shown=False,
    ),
    Action("copy", "copy", "Copy the row under the cursor, or the selected ones, as text.", "y", "y", "View", shown=False),
    Action(
        "copy-json", "copy JSON", "Copy the row under the cursor, or the selected ones, as JSON.", "Y", "Y", "View", shown=False,
    ),
    Action(
        "export", "export", "Type the file that this view is written to: .csv or .json.",
        "E", "E", "View", one_word("export", "file", "FILE", "write this view to a .csv or .json file; ! after it overwrites"),
        shown=False,
    ),
    Action(
        "screenshot", "screenshot", "Save the screen as an SVG file.",
        "ctrl+s", "^s", "View", one_word("screenshot", "file", "[FILE]", "save the screen, as .svg or .txt"), shown=False,
    ),
    Action("prompt", "command", "Type a command.", "colon", ":", "Console"),
    Action(
        "help", "keys", "Show every key and command.",
        "question_mark", "?", "Console", one_word("help", "nothing", "", "show every key and command"),
    ),
    Action(
        "cli", "as CLI", "Show the command line that does what was done last, or shows what is in sight.",
        "dollar_sign", "$", "Console", one_word("cli", "nothing", "", "show the command line for what was done last"),
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
        "theme", "theme", "Type the theme to paint in.",
        "", "", "Console", one_word("theme", "theme", "NAME", "paint in another theme"), shown=False,
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
