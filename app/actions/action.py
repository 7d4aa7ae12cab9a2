"""What an action is, one thing that an operator can do by key, word or palette; and which actions a cluster allows."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from quarterdeck.backend.clusters.cluster import Cluster, lacks_of
from quarterdeck.backend.commands.catalogue import commands_of_word

ViewName = str
"""The name of a view: one of those in `app.actions.views`."""

WordKind = Literal[
    "command", "member", "members", "optional member", "column", "theme", "cluster", "demo", "choice", "text", "file",
    "nothing",
]  # fmt: skip
"""What follows a word of the prompt. For a `command` the catalogue of commands says it. All but `nothing` and
`member` may be left out.
"""


class CommandWord(Struct, frozen=True):
    """A word of the ``:`` prompt, what follows it, and what it does."""

    word: str
    takes: WordKind
    usage: str
    meaning: str
    """That of the action when it is empty."""
    choices: tuple[str, ...] = ()
    """The words that may follow a `choice`, for completion."""


class Action(Struct, frozen=True):
    """One thing that an operator can do, in whatever way."""

    id: str
    title: str
    """A word or two for the footer."""
    meaning: str
    """One sentence for help and palette."""
    keys: str = ""
    """Keys as Textual names them, separated by commas; empty when there is none."""
    key_display: str = ""
    """The keys as the footer shows them; the first of `keys` when it is empty."""
    group: str = ""
    """The heading in help; that of the view for an action of one view."""
    words: tuple[CommandWord, ...] = ()
    """Its words at the prompt; the id if none are given."""
    views: tuple[ViewName, ...] = ()
    """The views that know it; empty for all views. Its words may be typed anywhere and lead to the first of these views."""
    aims: bool = False
    """Whether it is done to the members that a view points at. Such actions are known only where members are in sight."""
    destructive: bool = False
    """Whether the operator is asked before it is done, with its blast radius spelt out."""
    needs: frozenset[str] = frozenset()
    """The tags of the commands that it becomes, and other abilities that a cluster may lack (`LimitedCluster.lacks`). One of
    them is enough; with none, it asks nothing of a cluster."""
    needs_write: bool = False
    """Whether it is not bound, not offered and refused on a read-only cluster."""
    shown: bool = True
    """Whether the footer hints at it."""
    handler: str = ""
    """The action whose handler does it, and what is given to that in place of words, such as ``time-mark -``."""
    cli: str = ""
    """The command line that shows or does the same, without ``quarterdeck`` and without how to reach the cluster. It is empty
    when only the console does this, or when the line depends on what is selected."""

    def __post_init__(self) -> None:
        if not self.key_display:
            force_setattr(self, "key_display", self.keys.partition(",")[0])
        meaning = self.meaning[:1].lower() + self.meaning[1:].rstrip(".")
        words = self.words or one_word(self.id)
        force_setattr(self, "words", tuple(replace(word, meaning=word.meaning or meaning) for word in words))


def one_word(
    word: str, takes: WordKind = "nothing", what: str = "", *choices: str, meaning: str = ""
) -> tuple[CommandWord, ...]:
    """Return the only word of an action; `what` is how the rest of the line is written."""
    return (CommandWord(word, takes, f"{word} {what}".rstrip(), meaning, choices),)


class Allowed(Struct, frozen=True):
    """What a cluster allows. Other actions are not bound, not offered, and refused when they are typed."""

    writable: bool = True
    lacks: frozenset[str] = frozenset()
    """What the cluster cannot do, see `LimitedCluster.lacks`."""

    def has(self, action: Action) -> bool:
        """Return whether the action is allowed. One with several commands is allowed if the cluster can do one of them."""
        if action.needs_write and not self.writable:
            return False
        return not self.lacks or not action.needs or not action.needs <= self.lacks

    def refusal(self, action: Action) -> str:
        """Return why the action is not allowed, in a sentence; empty if it is."""
        if action.needs_write and not self.writable:
            return f"{action.title} is refused: this cluster is read-only"
        return "" if self.has(action) else f"{action.title} cannot be done by this cluster"

    def knows(self, word: CommandWord) -> bool:
        meant = {description.tag for description in commands_of_word(word.word)} if word.takes == "command" else set()
        return not meant or not meant <= self.lacks


EVERYTHING = Allowed()
READ_ONLY = Allowed(writable=False)


def allowed_on(cluster: Cluster) -> Allowed:
    return Allowed(cluster.writable, lacks_of(cluster))
