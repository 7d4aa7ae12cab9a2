"""Actions of the view of the network: put a fault together, look at what would come of it, make it, undo it."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, one_word
from quarterdeck.backend.picture.what_if.fault_presets import PRESET_NAMES

ACTIONS: tuple[Action, ...] = (
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
        views=("network",), needs_write=True,
    ),
    Action(
        "fault-clear", "no plan", "Drop the planned fault.",
        "C", "C", "Faults", one_word("no-plan", "nothing", "", "drop the planned fault"),
        views=("network",), shown=False,
    ),
    Action(
        "fault-undo", "undo", "Undo the fault under the cursor of the list of faults.",
        "U", "U", "Faults", one_word("undo", "text", "[NUMBER]", "undo a fault; the latest has number 1"),
        views=("network",), needs_write=True,
    ),
    Action(
        "network-layout", "drawing", "Show the drawing and the matrix, the matrix alone, or the drawing alone.",
        "z", "z", "Faults",
        one_word("layout", "choice", "[both|matrix|drawing]", "what to show of the network", "both", "matrix", "drawing"),
        views=("network",), shown=False,
    ),
)  # fmt: skip
