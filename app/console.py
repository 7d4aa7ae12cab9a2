"""The console: one clock, one picture, one way to act. Takes any cluster; knows nothing of what kind it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import ClassVar

from textual.app import App
from textual.command import Provider
from textual.events import Key
from textual.message import Message

from app.actions import ACTIONS, ActionId, available_actions
from app.palette import ActionsProvider
from app.prompt_grammar import BadLine, ConsoleRequest, complete_line, parse_line
from app.screens.beliefs import BeliefsScreen
from app.screens.confirm import ConfirmScreen
from app.screens.help import HelpScreen
from backend.clusters.cluster import Cluster
from backend.core.commands import (
    Command,
    CommandRefused,
    CutLink,
    Heal,
    KillMember,
    Partition,
    PauseMember,
    ResumeMember,
    StartMember,
    StopMember,
)
from backend.core.events import Record
from backend.picture.blast_radius import blast_radius
from backend.picture.one_line import one_line
from backend.picture.picture import Picture
from widgets.prompt import Prompt

CLOCK_SECONDS = 0.1
"""The one clock of the console: ten times a second (design section 8)."""

RECORDS_A_TICK = 4_000
"""Records folded at once; the rest of a burst waits for the next tick, so that keys are never kept waiting."""


class Console(App[None]):
    """Watches one cluster and acts on it. Whoever made the cluster closes it, after `run` returned."""

    CSS_PATH = "console.tcss"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {ActionsProvider}
    TITLE = "Quarterdeck"

    class CommandEnded(Message):
        """A command was done, or `failure` says why not. Posted from whatever thread ran it."""

        def __init__(self, done: str, failure: BaseException | None) -> None:
            super().__init__()
            self.done, self.failure = done, failure

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.cluster = cluster
        self.picture = Picture()
        self._backlog: deque[Record] = deque()
        self.beliefs = BeliefsScreen(cluster, self.picture, self._complete)
        self._deeds: dict[ActionId, Callable[[], None]] = {
            "start": lambda: self._for_targets(StartMember),
            "stop": lambda: self._for_targets(StopMember),
            "kill": lambda: self._confirm_kill(self.beliefs.targets()),
            "stop-all": self._confirm_stop_all,
            "pause": self._pause_or_resume,
            "cut": self._cut_from_the_rest,
            "link": self._cut_one_link,
            "heal": lambda: self._execute([Heal()]),
            "follow": lambda: self.beliefs.tail.set_following(not self.beliefs.tail.following),
            "filter": lambda: self.beliefs.prompt.ask("/", self.beliefs.tail.filter_text),
            "prompt": lambda: self.beliefs.prompt.ask(":"),
            "help": self._help,
            "screenshot": self._save_picture_of_screen,
            "quit": self.exit,
        }
        for action in available_actions(cluster.writable):
            self.bind(
                action.keys, f"act('{action.id}')", description=action.title, show=action.shown,
                key_display=action.key_display,
            )  # fmt: skip

    def on_mount(self) -> None:
        self.push_screen(self.beliefs)
        self.set_interval(CLOCK_SECONDS, self._tick)

    def action_act(self, action_id: ActionId) -> None:
        """Do one action of the registry."""
        action = next(action for action in ACTIONS if action.id == action_id)
        if action.needs_write and not self.cluster.writable:
            self.beliefs.say(f"{action.title} is refused: this cluster is read-only", error=True)
            return
        self._deeds[action_id]()

    def on_key(self, event: Key) -> None:
        """Hand stray letters to the prompt: those of one burst with its sign were on their way to another widget.

        The prompt keeps the letters that it gets itself, so what bubbles up to here while it is open came by elsewhere.
        """
        if self.screen is self.beliefs and self.beliefs.prompt.sign and event.is_printable and event.character:
            self.beliefs.prompt.type_in(event.character)
            event.prevent_default()

    def on_prompt_answered(self, message: Prompt.Answered) -> None:
        self.beliefs.table.focus()
        if message.sign == ":" and message.text.strip():
            self._obey(message.text)

    def on_console_command_ended(self, message: CommandEnded) -> None:
        if message.failure is None:
            self.beliefs.say(f"done: {message.done}")
        elif isinstance(message.failure, CommandRefused):
            self.beliefs.say(f"{message.done} is refused: {message.failure}", error=True)
        else:
            why = f"{type(message.failure).__name__}: {message.failure}"
            self.beliefs.say(f"{message.done} failed: {why}", error=True)

    def _tick(self) -> None:
        self._backlog.extend(self.cluster.drain())
        if self._backlog or len(self.cluster.labels) != self.beliefs.rows_shown:
            fresh = [self._backlog.popleft() for _ in range(min(RECORDS_A_TICK, len(self._backlog)))]
            for record in fresh:
                self.picture.apply(record)
            self.beliefs.show(fresh)

    # Obeying the prompt

    def _complete(self, beginning: str) -> str | None:
        return complete_line(beginning, self.cluster.labels, writable=self.cluster.writable)

    def _obey(self, line: str) -> None:
        try:
            wish = parse_line(line, self.cluster.labels, writable=self.cluster.writable)
        except BadLine as problem:
            self.beliefs.say(str(problem), error=True)
            return
        match wish:
            case ConsoleRequest("filter", text):
                self.beliefs.tail.set_filter(text)
            case ConsoleRequest("screenshot", file):
                self._save_picture_of_screen(file)
            case ConsoleRequest(what):
                self.action_act(what)
            case KillMember(member):
                self._confirm_kill((member,))
            case _:
                self._execute([wish])

    def _help(self) -> None:
        self.push_screen(HelpScreen(self.cluster.writable))

    # Acting on the cluster

    def _execute(self, commands: Iterable[Command]) -> None:
        for command in commands:
            what = describe(command)
            self.beliefs.say(f"{what} …")
            self.cluster.execute(command).add_done_callback(partial(self._command_ended, what))

    def _command_ended(self, what: str, future: Future[None]) -> None:
        try:
            failure = future.exception()
        except CancelledError as cancelled:
            failure = cancelled
        if self.is_running:
            self.post_message(self.CommandEnded(what, failure))

    def _for_targets(self, make: Callable[[str], Command]) -> None:
        self._execute([make(label) for label in self.beliefs.targets()])

    def _pause_or_resume(self) -> None:
        beliefs = self.picture.members
        self._execute(
            ResumeMember(label) if label in beliefs and beliefs[label].status == "paused" else PauseMember(label)
            for label in self.beliefs.targets()
        )

    def _cut_from_the_rest(self) -> None:
        cut = self.beliefs.targets()
        rest = tuple(label for label in self.cluster.labels if label not in cut)
        if not cut or not rest:
            self.beliefs.say("nobody is left to cut the selected members from; select fewer", error=True)
            return
        self._execute([Partition((cut, rest))])

    def _cut_one_link(self) -> None:
        ends = dict.fromkeys(self.beliefs.table.selection)
        if len(ends) == 1 and self.beliefs.table.cursor_key is not None:
            ends[self.beliefs.table.cursor_key] = None
        if len(ends) != 2:
            self.beliefs.say(f"a link has two ends, {len(ends)} selected; select two members with space", error=True)
            return
        source, target = ends
        self._execute([CutLink((source,), (target,))])

    def _confirm_kill(self, labels: tuple[str, ...]) -> None:
        if labels:
            self._confirm("Kill", labels, [KillMember(label) for label in labels])

    def _confirm_stop_all(self) -> None:
        beliefs = self.picture.members
        labels = tuple(one for one in beliefs if beliefs[one].status in ("joining", "member", "paused"))
        if not labels:
            self.beliefs.say("no member runs", error=True)
            return
        self._confirm("Stop", labels, [StopMember(label) for label in labels])

    def _confirm(self, deed: str, labels: tuple[str, ...], commands: list[Command]) -> None:
        def answered(confirmed: bool | None) -> None:
            if confirmed:
                self._execute(commands)
            else:
                self.beliefs.say("cancelled")

        question = f"{deed} {', '.join(map(one_line, labels))}?"
        self.push_screen(ConfirmScreen(question, blast_radius(self.picture, labels), deed), answered)

    def _save_picture_of_screen(self, file: str = "") -> None:
        try:
            path = self.save_screenshot(file or None)
        except OSError as problem:
            self.beliefs.say(f"no screenshot: {problem}", error=True)
            return
        self.beliefs.say(f"saved {path}")


def describe(command: Command) -> str:
    """A command in the words of the prompt."""
    match command:
        case Heal():
            return "heal"
        case Partition(groups):
            return f"partition {'|'.join(','.join(group) for group in groups)}"
        case CutLink(sources, targets, one_way):
            return f"cut {','.join(sources)} {','.join(targets)}{' one-way' if one_way else ''}"
        case StartMember(member) | StopMember(member) | KillMember(member) | PauseMember(member) | ResumeMember(member):
            return f"{command.__struct_config__.tag} {member}"
        case _:
            return str(command.__struct_config__.tag)


def run_console(cluster: Cluster) -> None:
    """Show `cluster` until the operator quits. Does not close it: whoever opened it does."""
    Console(cluster).run()
