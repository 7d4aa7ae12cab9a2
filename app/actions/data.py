"""Actions on partitions and maps."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, CommandWord, one_word

ACTIONS: tuple[Action, ...] = (
    Action(
        "arrange", "arrange", "Ask the cluster of the selected member, or the one under the cursor, to arrange its partitions.",
        "a", "a", "Data", one_word("arrange", "optional member", "[MEMBER]", "arrange the partitions of its cluster now"),
        aims=True, needs_write=True, shown=False,
    ),
    Action(
        "data", "data", "Type what to put into a map, through the selected member or the one under the cursor.",
        "d", "d", "Data",
        (
            CommandWord("put", "words and member", "put MAP KEY VALUE [MEMBER]", "store a value, through a member"),
            CommandWord("get", "words and member", "get MAP KEY [MEMBER]", "ask for a value, through a member"),
            CommandWord("remove", "words and member", "remove MAP KEY [MEMBER]", "take a key out, through a member"),
        ),
        aims=True, needs_write=True, shown=False,
    ),
)  # fmt: skip
