"""Actions on members, links and clusters: the targets of the view in sight become commands, or the beginning of a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.backend.commands.catalogue import ANY_MEMBER, CATALOGUE, CommandDescription
from quarterdeck.backend.core.commands import CutLink, Heal, Partition, PauseMember, ResumeMember, StopMember
from quarterdeck.backend.picture.text.formatting import Refusal, one_line


@cache
def commands_on_members() -> Mapping[str, CommandDescription]:
    """Return the commands that take nothing but a member, the first one of each key, by their words."""
    by_key = {
        description.key: description
        for description in reversed(CATALOGUE)
        if description.target == "member" and not description.details and description.key
    }
    return {description.word: description for description in by_key.values()}


def do_command(view: ViewScreen, word: str) -> None:
    """Do the command of this word to all targets, or to the first one if any member will do; begin its line if it takes more."""
    description = commands_on_members().get(word)
    if description is None:
        view.console.type_line(f"{word} {_first_target(view)}".rstrip() + " ")
        return
    targets = _targets(view)[:1] if ANY_MEMBER in description.arguments else _targets(view)
    if description.needs == "master":
        targets = _masters_among(view, targets)
    view.console.request(word, [description.make({"member": label}) for label in targets])


def do_stop_all(view: ViewScreen, _: str) -> None:
    beliefs = view.session.picture.members
    labels = tuple(label for label in beliefs if beliefs[label].status in ("joining", "member", "paused"))
    if not labels:
        raise Refusal("no member runs")
    view.console.request("stop-all", [StopMember(label) for label in labels])


def do_pause(view: ViewScreen, _: str) -> None:
    beliefs = view.session.picture.members
    paused = {label for label, belief in beliefs.items() if belief.status == "paused"}
    targets = _targets(view)
    view.console.request("pause", [ResumeMember(label) if label in paused else PauseMember(label) for label in targets])


def do_detail(view: ViewScreen, member: str) -> None:
    """Open the detail of the named member, or of the one under the cursor, whatever is selected."""
    view.console.goto("member", member=member or view.member_under_cursor or _targets(view)[0])


def do_may_stop(view: ViewScreen, member: str) -> None:
    from quarterdeck.backend.judgement.stop_verdict import may_stop

    session = view.session
    label = member or view.member_under_cursor or _targets(view)[0]
    view.console.show_message(may_stop(session.picture, session.health, label, session.now_us()).sentence(label))


def do_cut(view: ViewScreen, _: str) -> None:
    cut = _targets(view)
    rest = tuple(label for label in view.session.cluster.labels if label not in cut)
    if not rest:
        raise Refusal("no member is left to cut the selected ones from; select fewer")
    view.console.request("cut", [Partition((cut, rest))])


def do_link(view: ViewScreen, _: str) -> None:
    table = view.table
    ends = dict.fromkeys(view.targets())
    if len(ends) == 1 and table is not None and table.selection and table.cursor_key is not None:
        ends[table.cursor_key] = None
    if len(ends) != 2:
        selected = len(table.selection) if table is not None else 0
        raise Refusal(f"a link has two ends, {selected} selected; select two members with space")
    source, target = ends
    view.console.request("link", [CutLink((source,), (target,))])


def do_worsen(view: ViewScreen, _: str) -> None:
    ends = view.targets()
    view.console.type_line(f"lose {' '.join(ends)} " if len(ends) == 2 else "lose ")


def do_heal(view: ViewScreen, _: str) -> None:
    view.console.request("heal", [Heal()])


def do_fault_undo(view: ViewScreen, text: str) -> None:
    """Undo the fault with the number in `text`; without one the latest of the faults and edits of join lists."""
    from quarterdeck.backend.judgement.merging.join_list_edit import edit_in_force
    from quarterdeck.backend.picture.network.faults import FaultLedger, undo_commands

    session = view.session
    faults = FaultLedger.of(session.picture, session.recent, session.cluster.labels).faults()
    edit = edit_in_force(session.recent, session.picture.label_of)
    fault_us = (faults[0].since_us or 0) if faults else -1
    edit_us = edit.at_us if edit is not None else -1
    if not text and edit is not None and edit_us > fault_us:
        view.console.request("fault-undo", [edit.undo])
    else:
        view.console.request("fault-undo", undo_commands(faults, text))


def do_join_list(view: ViewScreen, _: str) -> None:
    label, picture = _first_target(view), view.session.picture
    belief = picture.members.get(label)
    entries = [picture.label_of(address) for address in belief.join_list] if belief else []
    view.console.type_line(f"join-list {label} {','.join(entries)}")


def do_data(view: ViewScreen, _: str) -> None:
    view.console.type_line("put ")


def do_load(view: ViewScreen, text: str) -> None:
    """Start the load that `text` describes in place of the present one; `off` stops it, an empty text asks for more words."""
    session, going_on = view.session, view.session.traffic
    if not text:
        view.console.type_line("load ")
    elif text.strip() != "off":
        try:
            view.console.begin_load(text)
        except ValueError as problem:
            raise Refusal(str(problem)) from problem
        assert session.traffic is not None
        view.console.show_message(f"{session.traffic.load.text()}; :load off ends it")
    elif going_on is None or going_on.over:
        view.console.show_message("no load was begun here, or it is over")
    else:
        going_on.finish(session.cluster.now_us())


def do_owner(view: ViewScreen, text: str) -> None:
    """Show which member owns a key of a map according to the masters; `text` is the map, the key and its type."""
    from quarterdeck.backend.clusters.key_owner import key_owner

    if not text:
        view.console.type_line("owner ")
        return
    try:
        view.console.show_message(key_owner(view.session.judge.agreement, text))
    except ValueError as problem:
        raise Refusal(str(problem)) from problem


def _targets(view: ViewScreen) -> tuple[str, ...]:
    targets = view.targets()
    if not targets:
        raise Refusal("no member is selected or under the cursor here")
    return targets


def _first_target(view: ViewScreen) -> str:
    return next(iter(view.targets()), "")


def _masters_among(view: ViewScreen, targets: Sequence[str]) -> tuple[str, ...]:
    picture = view.session.picture
    masters = tuple(label for label in targets if label in view.session.judge.agreement.leading)
    if targets and not masters:
        leader = picture.master_of(targets[0])
        leads = f"; {one_line(leader.label)} leads its cluster" if leader is not None else ""
        raise Refusal(f"{one_line(targets[0])} is no master{leads}")
    return masters
