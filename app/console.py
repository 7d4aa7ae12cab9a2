"""The console: one clock, one picture, one way to act. Takes any cluster; knows nothing of what kind it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import ClassVar, NamedTuple

from textual.app import App
from textual.command import Provider
from textual.events import Key
from textual.message import Message

from app.actions import ACTIONS, ActionId, action_called, available_actions, command_words
from app.command_text import describe, question
from app.palette import ActionsProvider
from app.prompt_grammar import BadLine, ConsoleRequest, complete_line, parse_line
from app.screens.beliefs import BeliefsScreen
from app.screens.confirm import ConfirmScreen
from app.screens.detail import DetailScreen
from app.screens.help import HelpScreen
from app.screens.migrations import MigrationsScreen
from backend.clusters.cluster import Cluster
from backend.core.commands import (
    ArrangePartitions,
    CallMap,
    Command,
    CommandRefused,
    CutLink,
    Heal,
    KillMember,
    Operate,
    Partition,
    PauseMember,
    ResumeMember,
    SearchClusters,
    StartMember,
    StopMember,
)
from backend.core.data.events import CallFinished
from backend.core.data.operations import Get, Put, Remove
from backend.core.events import Record
from backend.picture.blast_radius import blast_radius
from backend.picture.naming import with_names
from backend.picture.partition_narration import call_text
from backend.picture.picture import Picture
from widgets.prompt import Prompt

CLOCK_SECONDS = 0.1
"""The one clock of the console: ten times a second (design section 8)."""

RECORDS_A_TICK = 4_000
"""Records folded at once; the rest of a burst waits for the next tick, so that keys are never kept waiting."""


class CallKey(NamedTuple):
    """What tells an operation on a map that was asked for here from those of others, as far as events can tell."""

    member: str
    operation: str
    map: str
    key: str


class Console(App[None]):
    """Watches one cluster and acts on it. Whoever made the cluster closes it, after `run` returned."""

    CSS_PATH = "console.tcss"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {ActionsProvider}
    TITLE = "Quarterdeck"

    class CommandEnded(Message):
        """A command was done, or `failure` says why not; a `call` was only begun. Posted from whatever thread ran it."""

        def __init__(self, done: str, failure: BaseException | None, call: CallKey | None) -> None:
            super().__init__()
            self.done, self.failure, self.call = done, failure, call

    def __init__(self, cluster: Cluster, starting: Future[None] | None = None) -> None:
        """`starting` is done when the cluster has started its members; a failure of it is told to the operator."""
        super().__init__()
        self.cluster = cluster
        self._starting = starting
        self.picture = Picture()
        self._backlog: deque[Record] = deque()
        self._calls: set[CallKey] = set()
        """Operations asked for here whose answer has not come."""
        self.beliefs = BeliefsScreen(cluster, self.picture, self._complete)
        self._deeds: dict[ActionId, Callable[[], None]] = {
            "start": lambda: self._for_targets("start", StartMember),
            "stop": lambda: self._for_targets("stop", StopMember),
            "kill": lambda: self._for_targets("kill", KillMember),
            "stop-all": self._stop_all,
            "pause": self._pause_or_resume,
            "detail": self._look_at_member,
            "cut": self._cut_from_the_rest,
            "link": self._cut_one_link,
            "worsen": self._type_worse_link,
            "heal": lambda: self._request("heal", [Heal()]),
            "join-list": self._type_join_list,
            "state": lambda: self._type(f"state {self._member_in_question()} "),
            "search": lambda: self._for_targets("search", SearchClusters),
            "operate": lambda: self._for_targets("operate", Operate),
            "migrations": self._look_at_migrations,
            "arrange": lambda: self._request("arrange", [ArrangePartitions(one) for one in self._targets()[:1]]),
            "data": lambda: self._type("put "),
            "follow": lambda: self.beliefs.tail.set_following(not self.beliefs.tail.following),
            "filter": self._type_filter,
            "prompt": lambda: self._type(""),
            "help": self._help,
            "screenshot": self._save_picture_of_screen,
            "quit": self.exit,
        }
        # In the order of the footer, of which a narrow terminal shows only the beginning: how to leave and get help comes first.
        for action in sorted(
            available_actions(cluster.writable), key=lambda action: action.group in ("Data", "Cluster")
        ):
            self.bind(
                action.keys, f"act('{action.id}')", description=action.title, show=action.shown,
                key_display=action.key_display,
            )  # fmt: skip

    def on_mount(self) -> None:
        self.push_screen(self.beliefs)
        self.set_interval(CLOCK_SECONDS, self._tick)
        if self._starting is not None:
            self._starting.add_done_callback(self._members_started)

    def action_act(self, action_id: ActionId) -> None:
        """Do one action of the registry."""
        action = action_called(action_id)
        if action.needs_write and not self.cluster.writable:
            self._say(f"{action.title} is refused: this cluster is read-only", error=True)
            return
        self._deeds[action_id]()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Where no member is in sight, no key acts on one."""
        if action == "act" and isinstance(self._above_beliefs(), MigrationsScreen):
            return any(one.id in parameters and one.group == "Console" for one in ACTIONS)
        return super().check_action(action, parameters)

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
            if message.call is None:  # how a call ends is told by an event
                self._say(f"done: {message.done}")
            return
        if message.call is not None:
            self._calls.discard(message.call)
        if isinstance(message.failure, CommandRefused):
            why = with_names(str(message.failure), self.picture.label_of)
            self._say(f"{message.done} is refused: {why}", error=True)
        else:
            why = f"{type(message.failure).__name__}: {message.failure}"
            self._say(f"{message.done} failed: {why}", error=True)

    def _tick(self) -> None:
        news = False
        self._backlog.extend(self.cluster.drain())
        if self._backlog or self.beliefs.behind:
            fresh = [self._backlog.popleft() for _ in range(min(RECORDS_A_TICK, len(self._backlog)))]
            for record in fresh:
                self.picture.apply(record)
                if self._calls and isinstance(record.event, CallFinished):
                    self._call_finished(record.member, record.event)
            self.beliefs.show(fresh)
            news = True
        if (above := self._above_beliefs()) is not None:
            above.tick(news=news)

    # Obeying the prompt

    def _complete(self, beginning: str) -> str | None:
        return complete_line(beginning, self.cluster.labels, writable=self.cluster.writable)

    def _obey(self, line: str) -> None:
        try:
            selected = next(iter(self._targets()), "")
            wish = parse_line(line, self.cluster.labels, writable=self.cluster.writable, selected=selected)
        except BadLine as problem:
            self._say(str(problem), error=True)
            return
        match wish:
            case ConsoleRequest("filter", text):
                self.beliefs.tail.set_filter(text)
            case ConsoleRequest("screenshot", file):
                self._save_picture_of_screen(file)
            case ConsoleRequest("detail", member):
                self.beliefs.table.point_at(member)
                self._look_at_member()
            case ConsoleRequest(what):
                self.action_act(what)
            case _:
                action, _ = command_words(self.cluster.writable)[line.split()[0]]
                self._request(action.id, [wish])

    def _type(self, line: str) -> None:
        """Let the operator finish a line."""
        self._back_to_beliefs()
        self.beliefs.prompt.ask(":", line)

    def _type_filter(self) -> None:
        self._back_to_beliefs()
        self.beliefs.prompt.ask("/", self.beliefs.tail.filter_text)

    def _type_join_list(self) -> None:
        label = self._member_in_question()
        belief = self.picture.members.get(label)
        entries = [self.picture.label_of(address) for address in belief.join_list] if belief else []
        self._type(f"join-list {label} {','.join(entries)}")

    def _type_worse_link(self) -> None:
        ends = self.beliefs.table.selection
        self._type(f"lose {' '.join(ends)} " if len(ends) == 2 else "lose ")

    # Screens

    def _say(self, text: str, *, error: bool = False) -> None:
        """One line, on whatever screen is in sight."""
        self.beliefs.say(text, error=error)
        if (above := self._above_beliefs()) is not None:
            above.message.show(self.beliefs.message.parts)

    def _above_beliefs(self) -> DetailScreen | MigrationsScreen | None:
        """The screen that covers the first one and is as live. While the console closes, nothing is in sight."""
        top = self.screen_stack[-1] if self.screen_stack else None
        return top if isinstance(top, DetailScreen | MigrationsScreen) else None

    def _help(self) -> None:
        self.push_screen(HelpScreen(self.cluster.writable))

    def _look_at_member(self) -> None:
        def step(members: int) -> str | None:
            self.beliefs.table.action_move(members)
            return self.beliefs.table.cursor_key

        self._back_to_beliefs()
        self.push_screen(DetailScreen(self.picture, self.cluster.now_us, self.beliefs.reach.facts, step))

    def _look_at_migrations(self) -> None:
        self._back_to_beliefs()
        self.push_screen(MigrationsScreen(self.picture, self.cluster.now_us))

    def _back_to_beliefs(self) -> None:
        if self._above_beliefs() is not None:
            self.pop_screen()

    # Acting on the cluster

    def _targets(self) -> tuple[str, ...]:
        """Whom an action is for: the member that is looked at, else the selected ones, else the one under the cursor."""
        above = self._above_beliefs()
        return (above.label,) if isinstance(above, DetailScreen) else self.beliefs.targets()

    def _member_in_question(self) -> str:
        return self.beliefs.table.cursor_key or ""

    def _request(self, action_id: ActionId, commands: Sequence[Command]) -> None:
        """Do `commands`; when the registry has the action as destructive, only after asking."""
        if not commands:
            return
        if not action_called(action_id).destructive:
            self._execute(commands)
            return

        def answered(confirmed: bool | None) -> None:
            if confirmed:
                self._execute(commands)
            else:
                self._say("cancelled")

        asked, deed = question(commands)
        self.push_screen(ConfirmScreen(asked, blast_radius(self.picture, commands), deed), answered)

    def _execute(self, commands: Iterable[Command]) -> None:
        for command in commands:
            what = describe(command)
            self._say(f"{what} …")
            call = call_key(command)
            if call is not None:
                self._calls.add(call)
            self.cluster.execute(command).add_done_callback(partial(self._command_ended, what, call))

    def _command_ended(self, what: str, call: CallKey | None, future: Future[None]) -> None:
        try:
            failure = future.exception()
        except CancelledError as cancelled:
            failure = cancelled
        if self.is_running:
            self.post_message(self.CommandEnded(what, failure, call))

    def _call_finished(self, member: str, event: CallFinished) -> None:
        key = CallKey(member, event.operation, event.map, event.key)
        if key in self._calls:
            self._calls.remove(key)
            self._say(f"{member}: {with_names(call_text(event), self.picture.label_of)}", error=bool(event.problem))

    def _members_started(self, starting: Future[None]) -> None:
        if not starting.cancelled() and starting.exception() is not None:
            self._command_ended("starting the members", None, starting)

    def _for_targets(self, action_id: ActionId, make: Callable[[str], Command]) -> None:
        self._request(action_id, [make(label) for label in self._targets()])

    def _pause_or_resume(self) -> None:
        beliefs = self.picture.members
        paused = {label for label, belief in beliefs.items() if belief.status == "paused"}
        self._request(
            "pause", [ResumeMember(label) if label in paused else PauseMember(label) for label in self._targets()]
        )

    def _cut_from_the_rest(self) -> None:
        cut = self._targets()
        rest = tuple(label for label in self.cluster.labels if label not in cut)
        if not cut or not rest:
            self._say("nobody is left to cut the selected members from; select fewer", error=True)
            return
        self._request("cut", [Partition((cut, rest))])

    def _cut_one_link(self) -> None:
        ends = dict.fromkeys(self.beliefs.table.selection)
        if len(ends) == 1 and self.beliefs.table.cursor_key is not None:
            ends[self.beliefs.table.cursor_key] = None
        if len(ends) != 2:
            self._say(f"a link has two ends, {len(ends)} selected; select two members with space", error=True)
            return
        source, target = ends
        self._request("link", [CutLink((source,), (target,))])

    def _stop_all(self) -> None:
        beliefs = self.picture.members
        labels = tuple(one for one in beliefs if beliefs[one].status in ("joining", "member", "paused"))
        if not labels:
            self._say("no member runs", error=True)
            return
        self._request("stop-all", [StopMember(label) for label in labels])

    def _save_picture_of_screen(self, file: str = "") -> None:
        try:
            path = self.save_screenshot(file or None)
        except OSError as problem:
            self._say(f"no screenshot: {problem}", error=True)
            return
        self._say(f"saved {path}")


def call_key(command: Command) -> CallKey | None:
    """What to know the answer of `command` by; None for one that has no answer."""
    match command:
        case CallMap(member, Put(map, key) | Get(map, key) | Remove(map, key)):
            return CallKey(member, str(command.operation.__struct_config__.tag), map, key)
        case _:
            return None


def run_console(cluster: Cluster, starting: Future[None] | None = None) -> None:
    """Show `cluster`, whose members are `starting`, until the operator quits. Whoever opened it closes it."""
    Console(cluster, starting).run()
