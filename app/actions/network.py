"""Actions on links: cut, worsen, heal."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, CommandWord, one_word

ACTIONS: tuple[Action, ...] = (
    Action(
        "cut", "cut", "Cut the selected members, or the one under the cursor, from the rest.",
        "c", "c", "Network",
        one_word("partition", "groups", "A,B|C,D", "cut every link between members of different groups"),
        aims=True, needs_write=True,
    ),
    Action(
        "link", "link", "Cut the one link between two selected members, both ways.",
        "l", "l", "Network", one_word("cut", "two members", "A B [one-way]", "cut one link"), aims=True, needs_write=True,
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
        aims=True, needs_write=True, shown=False,
    ),
    Action(
        "heal", "heal", "Make every link plain again.",
        "h", "h", "Network", one_word("heal", "two members", "[A B]", "make every link plain again, or one"),
        needs_write=True,
    ),
)  # fmt: skip
