"""The one registry of what can be done: keys, footer, help, ``:`` prompt, completion and palette read it."""

from __future__ import annotations

from functools import cache

from msgspec.structs import replace

from quarterdeck.app.actions.action import Action, Allowed, CommandWord, ViewName, one_word
from quarterdeck.app.actions.views import VIEW_OF, VIEWS
from quarterdeck.backend.clusters.cluster import SNAPSHOTS
from quarterdeck.backend.commands.catalogue import CATALOGUE, commands_of_word, usage_of


def _on_cluster(
    title: str, meaning: str, *words: str, action_id: str = "", aims: bool = True, shown: bool = True
) -> Action:
    found = [description for word in words for description in commands_of_word(word) if description.meaning]
    return Action(
        action_id or title, title, meaning, found[0].key,
        words=tuple(CommandWord(row.word, "command", usage_of(row.word), row.meaning) for row in found),
        aims=aims, needs=frozenset(description.tag for word in words for description in commands_of_word(word)),
        destructive=any(description.always_asked for description in found), needs_write=True, shown=shown,
    )  # fmt: skip


def _headed(group: str, *actions: Action) -> tuple[Action, ...]:
    """Return the actions below this heading of help."""
    return tuple(replace(action, group=group) for action in actions)


MEMBER_ACTIONS = _headed(
    "Members",
    _on_cluster(
        "start", "Start the selected members, or the one under the cursor, under their old addresses.", "start",
    ),
    _on_cluster("stop", "Stop the selected members, or the one under the cursor; they say goodbye.", "stop"),
    _on_cluster("kill", "End the selected members, or the one under the cursor, without a goodbye.", "kill", "kill-at"),
    Action(
        "stop-all", "stop all", "Stop every member.", "X", needs=frozenset({"stop"}), destructive=True,
        needs_write=True, shown=False,
    ),
    _on_cluster(
        "pause", "Freeze the selected members, or the one under the cursor; let frozen ones run on.", "pause", "resume",
    ),
    Action(
        "may-stop", "may it stop?", "Show whether the member under the cursor may be stopped now, and why not.", "Z",
        words=one_word("may-stop", "optional member", "[MEMBER]"), aims=True, shown=False,
    ),
    Action(
        "detail", "look", "Show all that is known of the member under the cursor; so does enter.", "i,enter",
        words=one_word("look", "member", "MEMBER", meaning="show all that is known of a member"), aims=True,
    ),
)  # fmt: skip

LINK_ACTIONS = _headed(
    "Network",
    _on_cluster("cut", "Cut the selected members, or the one under the cursor, from the rest.", "partition"),
    _on_cluster("link", "Cut the one link between two selected members, both ways.", "cut", shown=False),
    _on_cluster(
        "worsen", "Type how the one link between two selected members gets worse.", "lose", "delay", "duplicate",
        "drop-messages", shown=False,
    ),
    _on_cluster("heal", "Heal every link.", "heal", aims=False),
)  # fmt: skip

FAULT_ACTIONS = _headed(
    "Faults",
    Action(
        "fault-undo", "undo",
        "Undo the latest fault, load or edit of a join list; in the network view, the fault under the cursor of the list.",
        "U",
        words=one_word(
            "undo", "text", "[NUMBER]",
            meaning="undo a fault, the latest has number 1; without a number the latest fault or edit of a join list",
        ),
        needs=frozenset({"heal", "heal-link", "resume", "start"}), needs_write=True,
    ),
)  # fmt: skip

CLUSTER_ACTIONS = _headed(
    "Cluster",
    _on_cluster(
        "join list", "Edit the join list of the cluster of the member under the cursor.", "join-list",
        action_id="join-list",
    ),
    _on_cluster("state", "Type the state that the cluster of the member under the cursor is to take.", "state"),
    _on_cluster(
        "search", "Let the selected masters, or the one under the cursor, look for other clusters now.", "search",
    ),
    _on_cluster(
        "operate", "Ask the selected members, or the one under the cursor, for an operation, as a client would.",
        "operate",
    ),
)  # fmt: skip

DATA_ACTIONS = _headed(
    "Data",
    _on_cluster(
        "arrange", "Ask the cluster of the selected member, or the one under the cursor, to arrange its partitions.",
        "arrange", shown=False,
    ),
    _on_cluster(
        "data", "Type what to put into a map, through the selected member or the one under the cursor.", "put", "get",
        "remove", shown=False,
    ),
    Action(
        "load", "load",
        "Type how many operations a second are to be asked of a map, so that there is something to move.",
        words=one_word(
            "load", "text", "RATE [keys=N] [bytes=N] [skew=N] [reads=0.5] [map=NAME] [for=30s] | off",
            meaning="ask for operations on a map all the time; off ends it",
        ),
        needs=frozenset({"put"}), needs_write=True, shown=False, cli="map load",
    ),
    Action(
        "owner", "owner of a key", "Type a map and a key, to see which member owns the key.",
        words=one_word(
            "owner", "text", "MAP KEY [TYPE]",
            meaning="show which member owns a key; Hazelcast: TYPE string, int or long",
        ),
        shown=False, cli="cluster owner MAP KEY",
    ),
)  # fmt: skip

_WITH_ACTION = {
    word.word for group in (MEMBER_ACTIONS, LINK_ACTIONS, FAULT_ACTIONS, CLUSTER_ACTIONS, DATA_ACTIONS) for action in group
    for word in action.words
}  # fmt: skip

TYPED_ACTIONS = _headed(
    "Cluster",
    *(
        _on_cluster(each.word, f"{each.meaning[0].upper()}{each.meaning[1:]}.", each.word, aims=False, shown=False)
        for each in CATALOGUE
        if each.meaning and each.word not in _WITH_ACTION
    ),
)
"""The commands that are only typed: nothing is added to what the catalogue says of them."""


TIME_ACTIONS = _headed(
    "Time",
    Action(
        "time-back", "event back", "Show the moment of the previous event.", "less_than_sign", "<", shown=False,
        handler="time-on -",
    ),
    Action("time-on", "event on", "Show the moment of the next event.", "greater_than_sign", ">", shown=False),
    Action(
        "time-second-back", "second back", "Go back by a second.", "left_square_bracket", "[", shown=False,
        handler="time-second-on -",
    ),
    Action("time-second-on", "second on", "Go forward by a second.", "right_square_bracket", "]", shown=False),
    Action(
        "time-pause", "stand still", "Stop at the moment that is shown, or go on from it.", "full_stop", ".",
        shown=False,
    ),
    Action("time-live", "newest", "Return to the present, and follow it.", "L", words=one_word("live"), shown=False),
    Action(
        "time-at", "go to", "Type the moment to show.",
        words=one_word(
            "at", "text", "MOMENT",
            meaning="show a moment: 12.5, 1:30, +2, -500ms, MEMBER#NUMBER, a bookmark, start, end",
        ),
        shown=False,
    ),
    Action(
        "time-bookmark", "bookmark", "Bookmark the moment that is shown.", "B",
        words=one_word("bookmark", "text", "[NAME]"), shown=False,
    ),
    Action(
        "time-speed", "speed", "Type how many seconds of the run pass in one second.",
        words=one_word("speed", "text", "NUMBER", meaning="set how many seconds of the run pass in one second"),
        shown=False,
    ),
    Action(
        "time-fork", "fork", "Open a simulated copy of the cluster as it is now, to try things in.", "F",
        words=one_word(
            "fork", "text", "[COMMAND …]",
            meaning="open a simulated copy, and do a command there such as `kill n1`, or `nothing`",
        ),
        needs=frozenset({SNAPSHOTS}), shown=False, cli="cluster fork --out DIR",
    ),
)  # fmt: skip

VIEW_ACTIONS = _headed(
    "View",
    Action(
        "filter", "filter", "Show only the rows, or events, that contain a text.", "slash", "/",
        words=one_word("filter", "text", "[TEXT]", meaning="show only what contains the text; none: show all"),
    ),
    Action(
        "sort", "sort", "Sort the table by its next column.", "O",
        words=one_word("sort", "column", "[COLUMN [desc]]", meaning="sort by a column; none: by the next one"),
        shown=False,
    ),
    Action("reverse", "reverse", "Reverse the order of the rows.", "R", shown=False),
    Action(
        "columns", "columns", "Type the column that is to be hidden, or shown again.",
        words=(
            CommandWord("hide", "column", "hide COLUMN", "leave a column out"),
            CommandWord("show", "column", "show [COLUMN]", "show a hidden column again; none: all of them"),
            CommandWord("save", "nothing", "save", "open this view with this filter from now on"),
            CommandWord("reset", "nothing", "reset", "reset sort, columns and filter of this view"),
        ),
        shown=False,
    ),
    Action(
        "clock", "run clock or UTC", "Show all times in UTC, or in seconds since the run began.", "t",
        words=one_word("clock", "choice", "[auto|run|utc]", "auto", "run", "utc"), shown=False,
    ),
    Action("copy", "copy", "Copy the row under the cursor, or the selected ones, as text.", "y", shown=False),
    Action(
        "copy-json", "copy JSON", "Copy the row under the cursor, or the selected ones, as JSON.", "Y", shown=False,
        handler="copy json",
    ),
    Action(
        "export", "export", "Type the file that this view is written to: .csv or .json.", "E",
        words=one_word("export", "file", "FILE", meaning="write this view to a .csv or .json file; ! after it overwrites"),
        shown=False,
    ),
    Action(
        "screenshot", "screenshot", "Save the screen as an SVG file.", "ctrl+s", "^s",
        words=one_word("screenshot", "file", "[FILE]"), shown=False,
    ),
)  # fmt: skip

CONSOLE_ACTIONS = _headed(
    "Console",
    Action("prompt", "command", "Type a command.", "colon", ":"),
    Action("help", "keys", "Show what to do about what is wrong now, and every key and command.", "question_mark", "?"),
    Action(
        "cli", "as CLI", "Show the command line that does what was done last, or shows what is in sight.",
        "dollar_sign", "$", shown=False,
    ),
    Action(
        "cluster", "cluster", "Go to the next cluster that is open.", "tilde", "~",
        words=(
            CommandWord("cluster", "cluster", "cluster [NAME]", "open a cluster of the configuration, or go to an open one"),
            CommandWord("close", "nothing", "close", "close this cluster's tab"),
        ),
        shown=False,
    ),
    Action(
        "theme", "theme", "Type the theme to use.",
        words=one_word("theme", "theme", "NAME", meaning="use another theme"), shown=False,
    ),
    Action("suspend", "suspend", "Stop the console and return to the shell, until fg.", "ctrl+z", "^z", shown=False),
    Action(
        "back", "back", "Go one level back: remove the filter, then close what is open in the view, then the view.",
        "q,escape",
    ),
    Action(
        "quit", "quit", "Leave the console; asks first where members would end with it.", "Q",
        words=(
            CommandWord("quit", "nothing", "quit", "leave the console"),
            CommandWord("q", "nothing", "q", "leave the console"),
        ),
    ),
)  # fmt: skip


ACTIONS: tuple[Action, ...] = (
    *MEMBER_ACTIONS,
    *LINK_ACTIONS,
    *FAULT_ACTIONS,
    *CLUSTER_ACTIONS,
    *DATA_ACTIONS,
    *TYPED_ACTIONS,
    *TIME_ACTIONS,
    # Those of the first view come last: its footer begins with what it shares with others.
    *(action for view in (*VIEWS[1:], VIEWS[0]) for action in view.actions),
    *(view.opening for view in VIEWS if view.opening is not None),
    *VIEW_ACTIONS,
    *CONSOLE_ACTIONS,
)
"""In the order of help."""


@cache
def action_called(action_id: str) -> Action:
    for action in ACTIONS:
        if action.id == action_id:
            return action
    raise KeyError(action_id)


def available_actions(allowed: Allowed, view: ViewName | None = None) -> tuple[Action, ...]:
    """Return the actions that a cluster allows; with `view`, only those that this view knows."""
    return tuple(action for action in ACTIONS if allowed.has(action) and (view is None or _known_in(action, view)))


def _known_in(action: Action, view: ViewName) -> bool:
    return view in action.views if action.views else not action.aims or VIEW_OF[view].points_at_members


def command_words(allowed: Allowed) -> dict[str, tuple[Action, CommandWord]]:
    """Return the words of the prompt that a cluster allows, each with the action that it belongs to."""
    return {
        word.word: (action, word)
        for action in available_actions(allowed)
        for word in action.words
        if allowed.knows(word)
    }
