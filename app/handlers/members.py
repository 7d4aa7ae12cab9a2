"""Actions on members, links and clusters: the targets of the current view become commands, or the beginning of a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from quarterdeck.app.actions.commands import TYPED_ACTIONS
from quarterdeck.app.console_interface import ConsoleInterface, Handler, Refusal
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.core.commands.catalogue import ANY_MEMBER, CATALOGUE, CommandDescription
from quarterdeck.backend.core.commands.commands import CutLink, Heal, Partition, PauseMember, ResumeMember, StopMember
from quarterdeck.backend.picture.text.formatting import one_line


def commands_on_members() -> Iterable[CommandDescription]:
    """Return the commands that take nothing but a member, the first one of each key."""
    by_key = {
        description.key: description
        for description in reversed(CATALOGUE)
        if description.target == "member" and not description.details and description.key
    }
    return by_key.values()


class MemberHandlers:
    """Actions on the members that the current view points at."""

    def __init__(self, console: ConsoleInterface, view: Callable[[], ViewScreen]) -> None:
        self._console, self._view = console, view
        self.handlers: Mapping[str, Handler] = {
            **{description.word: self._for_targets(description) for description in commands_on_members()},
            "stop-all": lambda _: self._stop_all(),
            "pause": lambda _: self._pause_or_resume(),
            "detail": self._open_detail,
            "may-stop": self._judge_stop,
            "cut": lambda _: self._cut_from_the_rest(),
            "link": lambda _: self._cut_one_link(),
            "worsen": lambda _: self._type_worse_link(),
            "heal": lambda _: console.request("heal", [Heal()]),
            "join-list": lambda _: self._type_join_list(),
            **{word: self._begin_line(word) for word in ("state", *(action.id for action in TYPED_ACTIONS))},
            "data": lambda _: console.type_line("put "),
        }

    def _targets(self) -> tuple[str, ...]:
        targets = self._view().targets()
        if not targets:
            raise Refusal("no member is selected or under the cursor here")
        return targets

    def _first_target(self) -> str:
        return next(iter(self._view().targets()), "")

    def _for_targets(self, description: CommandDescription) -> Handler:
        """Return a handler that does the command to all targets, or to the first one if any member will do."""

        def do(_: str) -> None:
            targets = self._targets()[:1] if ANY_MEMBER in description.arguments else self._targets()
            if description.needs == "master":
                targets = self._masters_among(targets)
            self._console.request(description.word, [description.make({"member": label}) for label in targets])

        return do

    def _masters_among(self, targets: Sequence[str]) -> tuple[str, ...]:
        """Return the targets that are masters. If there is none, show who the master is."""
        picture = self._view().session.picture
        masters = tuple(label for label in targets if label in picture.masters())
        if targets and not masters:
            leader = picture.master_of(targets[0])
            leads = f"; {one_line(leader.label)} leads its cluster" if leader is not None else ""
            self._console.show_message(f"{one_line(targets[0])} is no master{leads}", error=True)
        return masters

    def _open_detail(self, member: str) -> None:
        """Open the detail of the named member, or of the one under the cursor, whatever is selected."""
        self._console.goto("member", member=member or self._view().member_under_cursor or self._targets()[0])

    def _judge_stop(self, member: str) -> None:
        from quarterdeck.backend.picture.operations.stop_verdict import may_stop

        session = self._view().session
        label = member or self._view().member_under_cursor or self._targets()[0]
        verdict = may_stop(session.picture, session.health, label, session.now_us())
        self._console.show_message(verdict.sentence(label))

    def _pause_or_resume(self) -> None:
        beliefs = self._view().session.picture.members
        paused = {label for label, belief in beliefs.items() if belief.status == "paused"}
        targets = self._targets()
        self._console.request(
            "pause", [ResumeMember(label) if label in paused else PauseMember(label) for label in targets]
        )

    def _cut_from_the_rest(self) -> None:
        cut = self._targets()
        rest = tuple(label for label in self._view().session.cluster.labels if label not in cut)
        if not rest:
            raise Refusal("no member is left to cut the selected ones from; select fewer")
        self._console.request("cut", [Partition((cut, rest))])

    def _cut_one_link(self) -> None:
        view = self._view()
        table = view.table
        ends = dict.fromkeys(view.targets())
        if len(ends) == 1 and table is not None and table.selection and table.cursor_key is not None:
            ends[table.cursor_key] = None
        if len(ends) != 2:
            selected = len(table.selection) if table is not None else 0
            raise Refusal(f"a link has two ends, {selected} selected; select two members with space")
        source, target = ends
        self._console.request("link", [CutLink((source,), (target,))])

    def _begin_line(self, word: str) -> Handler:
        return lambda _: self._console.type_line(f"{word} {self._first_target()}".rstrip() + " ")

    def _type_worse_link(self) -> None:
        ends = self._view().targets()
        self._console.type_line(f"lose {' '.join(ends)} " if len(ends) == 2 else "lose ")

    def _type_join_list(self) -> None:
        label = self._first_target()
        picture = self._view().session.picture
        belief = picture.members.get(label)
        entries = [picture.label_of(address) for address in belief.join_list] if belief else []
        self._console.type_line(f"join-list {label} {','.join(entries)}")

    def _stop_all(self) -> None:
        beliefs = self._view().session.picture.members
        labels = tuple(label for label in beliefs if beliefs[label].status in ("joining", "member", "paused"))
        if not labels:
            raise Refusal("no member runs")
        self._console.request("stop-all", [StopMember(label) for label in labels])


def undo(console: ConsoleInterface, session: ConsoleSession, text: str) -> None:
    """Undo the fault with the number in `text`; without one what is latest of faults, loads and edits of join lists."""
    from quarterdeck.backend.picture.merging.join_list_edit import edit_in_force
    from quarterdeck.backend.picture.network.faults import FaultLedger, NothingToUndo, undo_commands

    faults = FaultLedger.of(session.picture, session.recent, session.cluster.labels).faults()
    edit, load = edit_in_force(session.recent, session.picture.label_of), session.traffic
    fault_us = (faults[0].since_us or 0) if faults else -1
    edit_us = edit.at_us if edit is not None else -1
    load_us = load.began_us if load is not None and not load.over else -1
    if not text and load_us > max(fault_us, edit_us):
        change_load(console, session, "off")
        console.show_message("the load ends")
    elif not text and edit is not None and edit_us > fault_us:
        console.request("fault-undo", [edit.undo])
    else:
        try:
            console.request("fault-undo", undo_commands(faults, text))
        except NothingToUndo as problem:
            console.show_message(str(problem), error=True)


def change_load(console: ConsoleInterface, session: ConsoleSession, text: str) -> None:
    """Start the load that `text` describes in place of the present one; `off` stops it, an empty text asks for more words."""
    from quarterdeck.backend.clusters.traffic import Traffic, load_of

    if not text:
        console.type_line("load ")
        return
    going_on = session.traffic
    if text.strip() == "off":
        if going_on is None or going_on.over:
            console.show_message("no load was begun here, or it is over")
        else:
            going_on.finish(session.cluster.now_us())
        return
    running = [label for label, belief in session.picture.members.items() if belief.running]
    try:
        load = load_of(text, running)
    except ValueError as problem:
        console.show_message(str(problem), error=True)
        return
    session.traffic = Traffic(session.cluster, load, session.cluster.now_us())
    console.show_message(f"{load.text()}; :load off ends it")


def show_owner(console: ConsoleInterface, session: ConsoleSession, text: str) -> None:
    """Show which member owns a key of a map according to the masters; `text` is the map, the key and its type."""
    from quarterdeck.backend.clusters.key_owner import key_owner

    if not text:
        console.type_line("owner ")
        return
    try:
        console.show_message(key_owner(session.picture, text))
    except ValueError as problem:
        console.show_message(str(problem), error=True)
