"""Actions that one view alone knows: suspicions, network, join lists, partitions and audit."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, one_word
from quarterdeck.backend.picture.boards.data_board import GROUPINGS
from quarterdeck.backend.picture.what_if.fault_presets import PRESET_NAMES

LINK_FAULTS = frozenset({"partition", "cut"})

SUSPICION_ACTIONS: tuple[Action, ...] = (
    Action(
        "suspicions-whole", "all or some", "Show all members, or only those who suspect and those who are suspected.",
        "z", "z", "Suspicions",
        one_word("everybody", "choice", "[on|off]", "show all members, or only those with suspicions", "on", "off"),
        views=("suspicions",),
    ),
)  # fmt: skip

FAULT_ACTIONS: tuple[Action, ...] = (
    Action(
        "fault-preset", "preset", "Plan the next fault of a row: halves, isolate, bridge, ring of majorities, racks, none.",
        "n", "n", "Faults",
        one_word(
            "preset", "choice", "[halves|isolate M|bridge M|ring|racks N]", "plan a fault and show what would come of it",
            *PRESET_NAMES,
        ),
        views=("network",),
    ),
    Action(
        "fault-side", "side", "Put the selected members, or the one under the cursor, on the next of four sides, or on none.",
        "u", "u", "Faults", views=("network",),
    ),
    Action(
        "fault-mode", "blackhole/reset", "Plan cuts that swallow messages, or such that break connections at once.",
        "r", "r", "Faults",
        one_word("cut-mode", "choice", "[blackhole|reset]", "how planned cuts cut", "blackhole", "reset"),
        views=("network",), shown=False,
    ),
    Action(
        "fault-build", "build", "Make the planned fault.",
        "b", "b", "Faults", one_word("build", "nothing", "", "make the planned fault"),
        views=("network",), needs=LINK_FAULTS, needs_write=True,
    ),
    Action(
        "fault-clear", "no plan", "Drop the planned fault.",
        "C", "C", "Faults", one_word("no-plan", "nothing", "", "drop the planned fault"),
        views=("network",), shown=False,
    ),
    Action(
        "fault-undo", "undo", "Undo the latest fault; in the network view, the one under the cursor of the list of faults.",
        "U", "U", "Faults", one_word("undo", "text", "[NUMBER]", "undo a fault; the latest has number 1"),
        needs=frozenset({"heal", "heal-link", "resume", "start"}), needs_write=True,
    ),
    Action(
        "network-layout", "drawing", "Show the drawing and the matrix, the matrix alone, or the drawing alone.",
        "z", "z", "Faults",
        one_word("layout", "choice", "[both|matrix|drawing]", "what to show of the network", "both", "matrix", "drawing"),
        views=("network",), shown=False,
    ),
)  # fmt: skip

JOIN_LIST_ACTIONS: tuple[Action, ...] = (
    Action(
        "unblock", "unblock", "Take away what keeps the two clusters under the cursor apart, as far as that can be done.",
        "u", "u", "Join lists",
        one_word("unblock", "nothing", "", "take away what keeps the two clusters under the cursor apart"),
        views=("join-lists",), needs=frozenset({"heal-link", "resume", "set-join-list"}), destructive=True, needs_write=True,
    ),
    Action(
        "edit-list", "edit list", "Edit the join list of the cluster of the member under the cursor, one entry a line.",
        "e", "e", "Join lists",
        one_word("edit-list", "optional member", "[MEMBER]", "edit the join list of a member's cluster, one entry a line"),
        views=("join-lists",), needs=frozenset({"set-join-list"}), needs_write=True,
    ),
    Action(
        "edit-all-lists", "edit all", "Edit the join lists of all clusters at once, one entry a line.",
        "A", "A", "Join lists",
        one_word("edit-all-lists", "nothing", "", "edit the join lists of all clusters at once"),
        views=("join-lists",), needs=frozenset({"set-join-list"}), needs_write=True,
    ),
)  # fmt: skip

PARTITION_ACTIONS: tuple[Action, ...] = (
    Action(
        "map-observer", "whose table", "Show the table of the next member; the first one is the master's.",
        "t", "t", "Partitions",
        one_word("table-of", "optional member", "[MEMBER]", "show this member's table; none: the next one's"),
        views=("partitions",), cli="cluster table",
    ),
    Action(
        "map-zoom", "zoom", "Paint the map smaller: letters and marks, one letter or mark, two replicas in one line.",
        "z", "z", "Partitions",
        one_word("zoom", "choice", "[ZOOM]", "paint the map like this; none: the next way", "wide", "letters", "halves"),
        views=("partitions",),
    ),
    Action(
        "map-trouble", "next trouble", "Go to the next partition with something wrong.",
        "n", "n N", "Partitions", views=("partitions",),
    ),
    Action(
        "map-trouble-before", "trouble before", "Go to the partition before with something wrong.",
        "N", "N", "Partitions", views=("partitions",), shown=False,
    ),
    Action(
        "map-heat", "heat", "Show how busy each partition is, from 0 to 9, in place of the letters; and back.",
        "H", "H", "Partitions",
        one_word("heat", "choice", "[on|off]", "show how busy each partition is in place of letters", "on", "off"),
        views=("partitions",),
    ),
    Action(
        "map-partition", "partition", "Go to a partition.",
        "", "", "Partitions", one_word("show-partition", "text", "NUMBER", "put the cursor on a partition"),
        views=("partitions",), shown=False,
    ),
)  # fmt: skip

AUDIT_ACTIONS: tuple[Action, ...] = (
    Action(
        "audit-run", "run the audit", "Let Spark check the journal of this run, in a process of its own; while it runs: stop it.",
        "r", "r", "Audit",
        one_word("audit-run", "text", "[PATH]", "let Spark check the journal of this run, or another; or stop that"),
        views=("audit",), cli="audit DIR",
    ),
    Action(
        "audit-jump", "show in time", "Show the whole picture as it was at the finding under the cursor.",
        "enter,T", "enter", "Audit", views=("audit",),
    ),
)  # fmt: skip

QUESTION_ACTIONS: tuple[Action, ...] = (
    Action(
        "questions", "questions", "Answer what operators ask first: one cluster, why not, who was removed, what is stuck.",
        "I", "I", "Views", one_word("questions", "nothing", "", "answer what operators ask first, on one screen"),
        shown=False, cli="cluster why",
    ),
    Action(
        "traffic", "data", "Show keys, bytes and operations a second, by member, by map or by partition.",
        "V", "V", "Views",
        one_word("traffic", "nothing", "", "show keys, bytes and operations a second, and backups that lag"), shown=False,
    ),
    Action(
        "traffic-by", "by what", "Show data by member, by map or by partition.",
        "z", "z", "Data",
        one_word("traffic-by", "choice", "[member|map|partition]", "show data by one of these; none: the next", *GROUPINGS),
        views=("traffic",),
    ),
    Action(
        "owner", "owner of a key", "Type a map and a key, to see which member owns the key.",
        "", "", "Views",
        one_word("owner", "text", "MAP KEY [TYPE]", "tell which member owns a key; Hazelcast: TYPE string, int or long"),
        shown=False, cli="cluster owner MAP KEY",
    ),
)  # fmt: skip
