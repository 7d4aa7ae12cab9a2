"""What the console offers to its views and to the handlers of actions, so that none of them has to know the console itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from quarterdeck.app.actions.action import ViewName
from quarterdeck.backend.clusters.cluster import Cluster
from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.replay.tape import Tape
from quarterdeck.backend.picture.text.formatting import Refusal
from quarterdeck.widgets.line_table import TableCell

if TYPE_CHECKING:
    from quarterdeck.app.console_state import ConsoleState
    from quarterdeck.app.session import ConsoleSession
    from quarterdeck.backend.training.results import ScoreBook


class ClusterUnavailable(Refusal):
    """A cluster that cannot be opened; the message says why."""


Choice = TypeVar("Choice", bound=str)


def choice_of(text: str, choices: Sequence[Choice], now: Choice, what: str) -> Choice:
    """Return the choice that was typed; the one after `now` if none was. Raises `Refusal`."""
    if not text:
        return choices[(choices.index(now) + 1) % len(choices)]
    for choice in choices:
        if choice == text:
            return choice
    raise Refusal(f"there is no {what} {text!r}; there are {', '.join(choices)}")


def switched(text: str, now: bool) -> bool:
    """Return whether something is on after `on` or `off` was typed; the opposite of `now` if neither was. Raises `Refusal`."""
    return choice_of(text, ("off", "on"), "on" if now else "off", "setting") == "on"


class OpenedCluster(Struct, frozen=True):
    """A cluster, and the end of its start if it starts members."""

    cluster: Cluster
    starting: Future[None] | None = None


class ClusterOpener(Protocol):
    """Opens clusters. What it opens belongs to the console, which closes it."""

    @property
    def names(self) -> Sequence[str]: ...

    def open(self, name: str) -> OpenedCluster:
        """Open the cluster of this name without waiting for it. Raises `ClusterUnavailable`."""


class NoOtherClusters:
    """Opens nothing: there are no other clusters."""

    names: Sequence[str] = ()

    def open(self, name: str) -> OpenedCluster:
        raise ClusterUnavailable(f"there is no cluster {name!r}; the configuration names none")


class Suggestion(NamedTuple):
    """What a line may become: the whole `line`, how it is listed, and its meaning."""

    line: str
    shown: str
    meaning: str = ""


class Suggestions(NamedTuple):
    """What a line may become, the likeliest first, and what it would do now."""

    candidates: Sequence[Suggestion]
    effect: str


Handler = Callable[[str], None]
"""Does an action. The text is what followed its word at the prompt; empty when a key was pressed."""


class Pointed(NamedTuple):
    """An event chosen in another view, or the one that made a `member` what it is. With `because`, its causes are shown."""

    record: Record | None
    because: bool = False
    member: str = ""


class ConsoleInterface(Protocol):
    """What a view may ask of the console."""

    @property
    def tabs(self) -> Sequence[TableCell]:
        """The open clusters, the one in sight marked; empty while there is only one."""

    @property
    def has_way_back(self) -> bool:
        """Whether there is a view below the one in sight, or a cluster that this one is a copy of."""

    @property
    def scores(self) -> ScoreBook: ...

    @property
    def state(self) -> ConsoleState:
        """What is remembered between runs."""

    @property
    def last_commands(self) -> Sequence[Command]:
        """What the operator requested last of the cluster in sight."""

    def suggestions(self, beginning: str) -> Suggestions:
        """Return what a line of the prompt may become, and what it would do."""

    def show_message(self, text: str, *, error: bool = False) -> None:
        """Show one line above the footer, until the next."""

    def withdraw_message(self, text: str) -> None:
        """Clear a message wherever it still stands: its view may be out of sight by now, or belong to another cluster."""

    def request(self, action_id: str, commands: Sequence[Command]) -> None:
        """Do `commands` to the current cluster, after asking if the action is destructive, and report how they end."""

    def begin_load(self, text: str) -> None:
        """Put the load that `text` describes on the cluster in sight.

        Raises:
            ValueError: `text` is no load; the message is a sentence for people.
        """

    def type_line(self, line: str) -> None:
        """Open the prompt with the beginning of a line, for the operator to finish."""

    def goto(self, view: ViewName, *, member: str = "", at_us: int | None = None, event: Pointed | None = None) -> None:
        """Open a view, at a member, at a moment of the run or at an event if one is given."""

    def back(self) -> None:
        """Close the view in sight; from the first view of a copy, go back to the real cluster."""

    def open_tab(
        self, opened: OpenedCluster, title: str, *, past: Tape | None = None, origin: ConsoleSession | None = None
    ) -> None:
        """Show another cluster in a tab of its own: a fork, a demo, or a copy with its `past`.

        It leads back to the tab of its `origin`, or to the one in sight. The console closes it in the end.
        """

    def call_later(self, callback: Callable[..., Any], *args: Any) -> bool:
        """Call `callback` in the console's thread. May be called from any thread."""

    def set_timer(self, delay: float, callback: Callable[[], None]) -> object: ...

    def close_tab(self) -> None:
        """Close the current cluster and its tab, and go to the previous one."""

    def complete(self, beginning: str) -> str | None: ...

    def action_act(self, action_id: str, text: str = "") -> None:
        """Do one action of the registry, in the current view."""

    def answered(self, sign: str, text: str) -> None:
        """Handle a line of the prompt after enter."""
