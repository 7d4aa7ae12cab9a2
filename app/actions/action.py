"""What an action is: one thing that an operator can do, by key, by word at the ``:`` prompt, or from the palette."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

ViewName = Literal[
    "overview", "beliefs", "members", "suspicions", "partitions", "migrations", "network", "join-lists", "events", "time",
    "audit", "demos", "questions", "traffic", "member",
]  # fmt: skip
"""The screens. `member` is the one that looks into a single member; it is opened from the others."""

VIEW_NAMES: tuple[ViewName, ...] = get_args(ViewName)

MEMBER_VIEWS: tuple[ViewName, ...] = (
    "overview",
    "beliefs",
    "members",
    "suspicions",
    "partitions",
    "migrations",
    "network",
    "join-lists",
    "member",
)
"""Those that point at members."""

WordKind = Literal[
    "command",
    "member",
    "members",
    "optional member",
    "column",
    "theme",
    "cluster",
    "demo",
    "choice",
    "text",
    "file",
    "nothing",
]
"""What follows a word of the prompt: of a `command` what the catalogue of commands says. All others but `nothing` and `member`
may be left out."""


@dataclass(frozen=True)
class CommandWord:
    """A word of the ``:`` prompt, what follows it, and what it does."""

    word: str
    takes: WordKind
    usage: str
    meaning: str
    choices: tuple[str, ...] = ()
    """Of `choice`: what may follow, for completion."""


@dataclass(frozen=True)
class Action:
    """One thing an operator can do, by whatever way."""

    id: str
    title: str
    """A word or two for the footer."""
    meaning: str
    """One sentence for help and palette."""
    keys: str
    """Keys as Textual names them, separated by commas; empty when there is none."""
    key_display: str
    group: str
    words: tuple[CommandWord, ...] = ()
    """Its words at the prompt; the id, when it is given none."""
    views: tuple[ViewName, ...] = ()
    """The views that know it; none: every view. Its words may be typed anywhere and lead to the first of these."""
    aims: bool = False
    """Done to the members that a view points at, so it is known only where members are in sight."""
    destructive: bool = False
    """Asked again before it is done, with its blast radius spelt out."""
    needs: frozenset[str] = frozenset()
    """Tags of the commands that it comes to, and other things that a cluster may lack (`LimitedCluster.lacks`). One of them is
    enough; none: it asks nothing of a cluster."""
    needs_write: bool = False
    """Not bound, not offered and refused on a read-only cluster."""
    shown: bool = True
    """Whether the footer hints at it."""
    short: str = ""
    """Of a view: its name where there is little room."""
    cli: str = ""
    """The command line that shows or does the same, without ``quarterdeck`` and without how to reach the cluster; empty when only
    the console does this, or when the line depends on what is selected."""

    def __post_init__(self) -> None:
        if not self.words:
            meaning = self.meaning[0].lower() + self.meaning[1:].rstrip(".")
            object.__setattr__(self, "words", one_word(self.id, "nothing", "", meaning))


def one_word(word: str, takes: WordKind, what: str, meaning: str, *choices: str) -> tuple[CommandWord, ...]:
    """The only word of an action; `what` is how its rest is written."""
    return (CommandWord(word, takes, f"{word} {what}".rstrip(), meaning, choices),)
