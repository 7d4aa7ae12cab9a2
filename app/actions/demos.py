"""Actions of the demos: to start one, and to be led through it."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, CommandWord, one_word

LETTERS = "abcdef"
"""By which the choices of a question go."""

ACTIONS: tuple[Action, ...] = (
    Action(
        "demo-go", "go on", "Start the demo under the cursor, live; in a demo, do the step, or go on from where it waits.",
        "enter", "enter", "Demos",
        one_word("demo", "demo", "NAME [SEED]", "learn with a demo, live; with a seed in simulated time"), views=("demos",),
    ),
    Action(
        "demo-simulate", "simulated", "Start the demo under the cursor in simulated time.",
        "u", "u", "Demos", views=("demos",),
    ),
    *(
        Action(
            f"demo-answer-{letter}", f"answer {letter}", f"Answer the question of a demo with choice {letter}.",
            letter, letter, "Demos", views=("demos",), shown=False,
        )
        for letter in LETTERS
    ),
    Action(
        "demo-answer", "answer", "Type the answer to the question of a demo; - leaves it out.",
        "equals_sign", "=", "Demos", one_word("answer", "text", "TEXT", "answer the question of a demo; - leaves it out"),
        views=("demos",), shown=False,
    ),
    Action(
        "demo-free", "free play", "Play freely with the demo's cluster, and back to the step.",
        "P", "P", "Demos", views=("demos",),
    ),
    Action(
        "demo-restart", "restart", "Begin the demo anew, on a new cluster.",
        "r", "r", "Demos", (CommandWord("restart-demo", "nothing", "restart-demo", "begin the demo anew"),), views=("demos",),
    ),
)  # fmt: skip
