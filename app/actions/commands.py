"""Actions that become commands on a cluster, and those that look at members.

Words, usage, keys and questions follow from the catalogue of commands; titles, sentences and targets are added here.
"""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, CommandWord, one_word
from quarterdeck.backend.core.commands.catalogue import CATALOGUE, commands_of_word, usage_of


def _on_cluster(
    title: str, meaning: str, group: str, *words: str, action_id: str = "", aims: bool = True, shown: bool = True
) -> Action:
    found = [description for word in words for description in commands_of_word(word) if description.meaning]
    key = found[0].key
    return Action(
        action_id or title, title, meaning, key, key, group,
        tuple(CommandWord(description.word, "command", usage_of(description.word), description.meaning) for description in found),
        aims=aims, needs=frozenset(description.tag for word in words for description in commands_of_word(word)),
        destructive=any(description.always_asked for description in found), needs_write=True, shown=shown,
    )  # fmt: skip


MEMBER_ACTIONS = (
    _on_cluster(
        "start", "Start the selected members, or the one under the cursor, under their old addresses.", "Members", "start"
    ),
    _on_cluster("stop", "Stop the selected members, or the one under the cursor; they say goodbye.", "Members", "stop"),
    _on_cluster(
        "kill", "End the selected members, or the one under the cursor, without a goodbye.", "Members", "kill", "kill-at"
    ),
    Action(
        "stop-all", "stop all", "Stop every member.",
        "X", "X", "Members", one_word("stop-all", meaning="stop every member"),
        needs=frozenset({"stop"}), destructive=True, needs_write=True, shown=False,
    ),
    _on_cluster(
        "pause", "Freeze the selected members, or the one under the cursor; let frozen ones run on.", "Members",
        "pause", "resume",
    ),
    Action(
        "may-stop", "may it stop?", "Show whether the member under the cursor may be stopped now, and why not.",
        "Z", "Z", "Members",
        one_word("may-stop", "optional member", "[MEMBER]"),
        aims=True, shown=False,
    ),
    Action(
        "detail", "look", "Show all that is known of the member under the cursor; so does enter.",
        "i,enter", "i", "Members", one_word("look", "member", "MEMBER", meaning="show all that is known of a member"), aims=True,
    ),
)  # fmt: skip

LINK_ACTIONS = (
    _on_cluster("cut", "Cut the selected members, or the one under the cursor, from the rest.", "Network", "partition"),
    _on_cluster(
        "link", "Cut the one link between two selected members, both ways.", "Network", "cut", shown=False,
    ),
    _on_cluster(
        "worsen", "Type how the one link between two selected members gets worse.", "Network",
        "lose", "delay", "duplicate", "drop-messages", shown=False,
    ),
    _on_cluster("heal", "Heal every link.", "Network", "heal", aims=False),
    Action(
        "fault-undo", "undo",
        "Undo the latest fault, load or edit of a join list; in the network view, the fault under the cursor of the list.",
        "U", "U", "Faults",
        one_word(
            "undo", "text", "[NUMBER]",
            meaning="undo a fault, the latest has number 1; without a number what was done last, loads and join lists, too",
        ),
        needs=frozenset({"heal", "heal-link", "resume", "start"}), needs_write=True,
    ),
)  # fmt: skip

CLUSTER_ACTIONS = (
    _on_cluster(
        "join list", "Edit the join list of the cluster of the member under the cursor.", "Cluster", "join-list",
        action_id="join-list",
    ),
    _on_cluster(
        "state", "Type the state that the cluster of the member under the cursor is to take.", "Cluster", "state"
    ),
    _on_cluster(
        "search", "Let the selected masters, or the one under the cursor, look for other clusters now.", "Cluster", "search"
    ),
    _on_cluster(
        "operate", "Ask the selected members, or the one under the cursor, for an operation, as a client would.", "Cluster",
        "operate",
    ),
)  # fmt: skip

DATA_ACTIONS = (
    _on_cluster(
        "arrange", "Ask the cluster of the selected member, or the one under the cursor, to arrange its partitions.", "Data",
        "arrange", shown=False,
    ),
    _on_cluster(
        "data", "Type what to put into a map, through the selected member or the one under the cursor.", "Data",
        "put", "get", "remove", shown=False,
    ),
    Action(
        "load", "load", "Type how many operations a second are to be asked of a map, so that there is something to move.",
        "", "", "Data",
        one_word(
            "load", "text", "RATE [keys=N] [bytes=N] [skew=N] [reads=0.5] [map=NAME] [for=30s] | off",
            meaning="ask for operations on a map all the time; off ends it",
        ),
        needs=frozenset({"put"}), needs_write=True, shown=False, cli="map load",
    ),
    Action(
        "owner", "owner of a key", "Type a map and a key, to see which member owns the key.",
        "", "", "Data",
        one_word(
            "owner", "text", "MAP KEY [TYPE]", meaning="show which member owns a key; Hazelcast: TYPE string, int or long",
        ),
        shown=False, cli="cluster owner MAP KEY",
    ),
)  # fmt: skip

_WITH_ACTION = {
    word.word for group in (MEMBER_ACTIONS, LINK_ACTIONS, CLUSTER_ACTIONS, DATA_ACTIONS) for action in group
    for word in action.words
}  # fmt: skip

TYPED_ACTIONS = tuple(
    _on_cluster(
        each.word, f"{each.meaning[0].upper()}{each.meaning[1:]}.", "Cluster", each.word, aims=False, shown=False
    )
    for each in CATALOGUE
    if each.meaning and each.word not in _WITH_ACTION
)
"""The commands that are only typed: nothing is added to what the catalogue says of them."""
