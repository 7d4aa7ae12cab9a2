"""The one registry of what can be done: keys, footer, help, ``:`` prompt, completion and palette read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ActionId = Literal[
    "start", "stop", "kill", "stop-all", "pause", "detail", "cut", "link", "worsen", "heal",
    "join-list", "state", "search", "operate", "migrations", "arrange", "data",
    "follow", "filter", "prompt", "help", "screenshot", "quit",
]  # fmt: skip

Group = Literal["Members", "Network", "Cluster", "Data", "Events", "Console"]

WordKind = Literal[
    "member",
    "members",
    "two members",
    "link and words",
    "groups",
    "addresses",
    "state",
    "event",
    "optional member",
    "words and member",
    "text",
    "file",
    "nothing",
]
"""What follows a command word at the prompt."""


@dataclass(frozen=True)
class CommandWord:
    """A word of the ``:`` prompt, what follows it, and what it does."""

    word: str
    takes: WordKind
    usage: str
    meaning: str


@dataclass(frozen=True)
class Action:
    """One thing an operator can do, by whatever way."""

    id: ActionId
    title: str
    """A word or two for the footer."""
    meaning: str
    """One sentence for help and palette."""
    keys: str
    """Keys as Textual names them, separated by commas."""
    key_display: str
    group: Group
    words: tuple[CommandWord, ...] = ()
    destructive: bool = False
    """Asked again before it is done, with its blast radius spelt out."""
    needs_write: bool = False
    """Not bound, not offered and refused on a read-only cluster."""
    shown: bool = True
    """Whether the footer hints at it."""


def _one(word: str, takes: WordKind, what: str, meaning: str) -> tuple[CommandWord, ...]:
    return (CommandWord(word, takes, f"{word} {what}".rstrip(), meaning),)


ACTIONS: tuple[Action, ...] = (
    Action(
        "start", "start", "Start the selected members, or the one under the cursor, under their old addresses.",
        "s", "s", "Members", _one("start", "member", "MEMBER", "start a member"), needs_write=True,
    ),
    Action(
        "stop", "stop", "Stop the selected members, or the one under the cursor; they say goodbye.",
        "x", "x", "Members", _one("stop", "member", "MEMBER", "stop a member with a goodbye"), needs_write=True,
    ),
    Action(
        "kill", "kill", "End the selected members, or the one under the cursor, without a goodbye.",
        "K", "K", "Members",
        (
            CommandWord("kill", "member", "kill MEMBER", "end a member without a goodbye"),
            CommandWord(
                "kill-at", "event", "kill-at MEMBER EVENT [after]",
                "kill a member at its next event of this kind, or right after",
            ),
        ),
        destructive=True, needs_write=True,
    ),
    Action(
        "stop-all", "stop all", "Stop every member.",
        "X", "X", "Members", _one("stop-all", "nothing", "", "stop every member"),
        destructive=True, needs_write=True, shown=False,
    ),
    Action(
        "pause", "pause", "Freeze the selected members, or the one under the cursor; let frozen ones run on.",
        "p", "p", "Members",
        (
            CommandWord("pause", "member", "pause MEMBER", "freeze a member"),
            CommandWord("resume", "member", "resume MEMBER", "let a frozen member run on"),
        ),
        needs_write=True,
    ),
    Action(
        "detail", "look", "Show all that is known of the member under the cursor; so does enter.",
        "i,enter", "i", "Members", _one("look", "member", "MEMBER", "show all that is known of a member"),
    ),
    Action(
        "cut", "cut", "Cut the selected members, or the one under the cursor, from the rest.",
        "c", "c", "Network",
        _one("partition", "groups", "A,B|C,D", "cut every link between members of different groups"),
        needs_write=True,
    ),
    Action(
        "link", "link", "Cut the one link between two selected members, both ways.",
        "l", "l", "Network", _one("cut", "two members", "A B [one-way]", "cut one link"), needs_write=True,
        shown=False,
    ),
    Action(
        "worsen", "worsen", "Type how the one link between two selected members gets worse.",
        "w", "w", "Network",
        (
            CommandWord("lose", "link and words", "lose A B 0.3 [one-way]", "lose messages with this probability"),
            CommandWord("delay", "link and words", "delay A B 250ms [one-way]", "let messages take this much longer"),
            CommandWord(
                "duplicate", "link and words", "duplicate A B 0.3 [one-way]", "deliver messages twice, so often"
            ),
            CommandWord(
                "drop-messages", "link and words", "drop-messages A B KIND,KIND",
                "drop all of these kinds from A to B; none: no more",
            ),
        ),
        needs_write=True, shown=False,
    ),
    Action(
        "heal", "heal", "Make every link plain again.",
        "h", "h", "Network", _one("heal", "two members", "[A B]", "make every link plain again, or one"),
        needs_write=True,
    ),
    Action(
        "join-list", "join list", "Edit the join list of the cluster of the member under the cursor.",
        "e", "e", "Cluster",
        _one("join-list", "addresses", "MEMBER A,B", "edit the join list; members or addresses"),
        needs_write=True,
    ),
    Action(
        "state", "state", "Type the state that the cluster of the member under the cursor is to take.",
        "S", "S", "Cluster", _one("state", "state", "MEMBER STATE", "change the state of a member's cluster"),
        destructive=True, needs_write=True,
    ),
    Action(
        "search", "search", "Let the selected masters, or the one under the cursor, look for other clusters now.",
        "m", "m", "Cluster", _one("search", "member", "MEMBER", "let a master look for other clusters now"),
        destructive=True, needs_write=True,
    ),
    Action(
        "operate", "operate", "Ask the selected members, or the one under the cursor, for an operation, as a client would.",
        "o", "o", "Cluster", _one("operate", "member", "MEMBER", "ask a member for an operation"),
        needs_write=True,
    ),
    Action(
        "migrations", "migrations", "Show what migrates: planned, running, done and failed.",
        "v", "v", "Data", _one("migrations", "nothing", "", "show what migrates"),
    ),
    Action(
        "arrange", "arrange", "Ask the cluster of the selected member, or the one under the cursor, to arrange its partitions.",
        "a", "a", "Data", _one("arrange", "optional member", "[MEMBER]", "arrange the partitions of its cluster now"),
        needs_write=True, shown=False,
    ),
    Action(
        "data", "data", "Type what to put into a map, through the selected member or the one under the cursor.",
        "d", "d", "Data",
        (
            CommandWord("put", "words and member", "put MAP KEY VALUE [MEMBER]", "store a value, through a member"),
            CommandWord("get", "words and member", "get MAP KEY [MEMBER]", "ask for a value, through a member"),
            CommandWord("remove", "words and member", "remove MAP KEY [MEMBER]", "take a key out, through a member"),
        ),
        needs_write=True, shown=False,
    ),
    Action("follow", "follow", "Follow the event tail, or pause it.", "f", "f", "Events", shown=False),
    Action(
        "filter", "filter", "Show only the events that hold a text.",
        "slash", "/", "Events", _one("filter", "text", "[TEXT]", "show only events that hold the text; none shows all"),
    ),
    Action("prompt", "type", "Type a command.", "colon", ":", "Console"),
    Action(
        "help", "help", "Show every key and command.",
        "question_mark", "?", "Console", _one("help", "nothing", "", "show every key and command"),
    ),
    Action(
        "screenshot", "screenshot", "Save the screen as an SVG file.",
        "ctrl+s", "^s", "Console", _one("screenshot", "file", "[FILE]", "save the screen as an SVG file"), shown=False,
    ),
    Action("quit", "quit", "Leave the console.", "q", "q", "Console", _one("quit", "nothing", "", "leave the console")),
)  # fmt: skip


def action_called(action_id: ActionId) -> Action:
    """The action of this id."""
    return next(action for action in ACTIONS if action.id == action_id)


def available_actions(writable: bool) -> tuple[Action, ...]:
    """The actions that a cluster allows."""
    return tuple(action for action in ACTIONS if writable or not action.needs_write)


def command_words(writable: bool) -> dict[str, tuple[Action, CommandWord]]:
    """The words of the prompt that a cluster allows, with the action that each belongs to."""
    return {one.word: (action, one) for action in available_actions(writable) for one in action.words}
