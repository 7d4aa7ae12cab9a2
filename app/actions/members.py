"""Actions on members: start, stop, kill, freeze, look."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, CommandWord, one_word

ACTIONS: tuple[Action, ...] = (
    Action(
        "start", "start", "Start the selected members, or the one under the cursor, under their old addresses.",
        "s", "s", "Members", one_word("start", "member", "MEMBER", "start a member"), aims=True, needs_write=True,
    ),
    Action(
        "stop", "stop", "Stop the selected members, or the one under the cursor; they say goodbye.",
        "x", "x", "Members", one_word("stop", "member", "MEMBER", "stop a member with a goodbye"), aims=True, needs_write=True,
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
        destructive=True, aims=True, needs_write=True,
    ),
    Action(
        "stop-all", "stop all", "Stop every member.",
        "X", "X", "Members", one_word("stop-all", "nothing", "", "stop every member"),
        destructive=True, needs_write=True, shown=False,
    ),
    Action(
        "pause", "pause", "Freeze the selected members, or the one under the cursor; let frozen ones run on.",
        "p", "p", "Members",
        (
            CommandWord("pause", "member", "pause MEMBER", "freeze a member"),
            CommandWord("resume", "member", "resume MEMBER", "let a frozen member run on"),
        ),
        aims=True, needs_write=True,
    ),
    Action(
        "detail", "look", "Show all that is known of the member under the cursor; so does enter.",
        "i,enter", "i", "Members", one_word("look", "member", "MEMBER", "show all that is known of a member"), aims=True,
    ),
    Action(
        "next-member", "other member", "Look at the next member.", "right", "← →", "Members", views=("member",),
    ),
    Action("previous-member", "", "Look at the member before.", "left", "←", "Members", views=("member",), shown=False),
    Action(
        "list-text", "list text", "Show the list as older versions wrote it to their logs, and back.",
        "t", "t", "Members", views=("member",),
    ),
)  # fmt: skip
