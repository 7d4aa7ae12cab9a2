"""Editing a join list before it is sent to a member: reading what is typed, and what it would change.

See Split-brain Recovery Improvements, User Interaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from quarterdeck.backend.core.address import (
    SEPARATORS,
    Address,
    BadAddress,
    BadJoinList,
    host_of,
    parse_address,
    parse_join_list,
    resolve_join_list,
)
from quarterdeck.backend.core.commands import SetJoinList
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import JoinListChanged, MemberStarted
from quarterdeck.backend.picture.fold.picture import MemberBelief, Picture
from quarterdeck.backend.picture.text.fact import Tone
from quarterdeck.backend.picture.text.formatting import counted, names_text, one_line

Sign = Literal["+", "−", "="]

SIGN_TONES: dict[Sign, Tone] = {"+": "good", "−": "bad", "=": "faint"}

COMMENT = "#"
"""What follows it on a line of the editor is for people."""


@dataclass(frozen=True, slots=True)
class Remark:
    """What is to be said of one line that was typed. Only one of tone ``bad`` keeps the list from being applied."""

    line: int
    """From 1."""
    text: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Draft:
    """A list as typed: the addresses that it stands for, and what is to be said of its lines."""

    addresses: tuple[Address, ...]
    remarks: tuple[Remark, ...]

    @property
    def problem(self) -> Remark | None:
        """The first remark that keeps it from being applied."""
        return next((remark for remark in self.remarks if remark.tone == "bad"), None)


@dataclass(frozen=True, slots=True)
class JoinListChange:
    """One address of a list before or after an edit."""

    sign: Sign
    address: Address
    name: str

    @property
    def text(self) -> str:
        return f"{self.sign} {spelt(self.address, self.name)}"


@dataclass(frozen=True, slots=True)
class EditPlan:
    """What an edit would do to one sub-cluster."""

    master: str
    """Label of the one that the edit is handed to; it brings it to all of its members."""
    members: tuple[str, ...]
    changes: tuple[JoinListChange, ...]
    """Seen from the master's own list."""
    reordered: bool
    """Whether addresses that stay change places."""
    differing: tuple[str, ...]
    """Members whose list is another one than their master's; it is replaced as well."""

    @property
    def command(self) -> SetJoinList:
        return SetJoinList(self.master, tuple(change.address for change in self.changes if change.sign != "−"))

    @property
    def nothing_new(self) -> bool:
        """Whether every member has this very list already. Another order is another list."""
        return not self.differing and not self.reordered and all(change.sign == "=" for change in self.changes)

    def counts(self) -> str:
        """Whose list it is, and how much of it would change."""
        signs = [change.sign for change in self.changes]
        parts = [f"{sign}{signs.count(sign)}" for sign in ("+", "−") if sign in signs]
        return f"{self._whose}: {' '.join(parts) or self._no_other}{self._others}"

    def diff(self) -> str:
        """Whose list it is, and what would change, entry by entry."""
        new = ", ".join(change.text for change in self.changes if change.sign != "=")
        kept = sum(change.sign == "=" for change in self.changes)
        return f"{self._whose}: {new or self._no_other}; = {kept} stay{self._others}"

    @property
    def _whose(self) -> str:
        return f"{one_line(self.master)}'s cluster of {counted(len(self.members), 'member')}"

    @property
    def _no_other(self) -> str:
        return "another order" if self.reordered else "nothing new"

    @property
    def _others(self) -> str:
        others = counted(len(self.differing), "member")
        return f"; {others} with another list than the master" if self.differing else ""


@dataclass(frozen=True, slots=True)
class Spread:
    """How far an edit has come in one sub-cluster."""

    master: str
    has: int
    members: int

    @property
    def text(self) -> str:
        done = "✓" if self.has == self.members else "…"
        return f"{done} {one_line(self.master)}: {self.has} of {counted(self.members, 'member')} have it"


def read_draft(lines: Sequence[str], picture: Picture) -> Draft:
    """Read a list of one entry a line. Members may stand by their labels; several entries may share a line.

    An entry that is no address is bad; one that stands twice, stands for several ports or names a host without a member is
    only remarked on.
    """
    found: dict[Address, int] = {}
    remarks: list[Remark] = []
    hosts = {host_of(belief.address) for belief in picture.members.values() if belief.address}
    for number, line in enumerate(lines, start=1):
        for entry in filter(None, SEPARATORS.split(line.partition(COMMENT)[0])):
            addresses = _addresses_of(entry, picture, number, remarks)
            again = [address for address in addresses if address in found]
            if again:
                names = names_text(again, picture.label_of)
                remarks.append(Remark(number, f"{names} stands on line {found[again[0]]} already", "warning"))
            elif addresses and entry not in picture.members:
                remarks += _remarks_on(entry, addresses, picture, hosts, number)
            for address in addresses:
                found.setdefault(address, number)
    if not found and not remarks:
        remarks.append(Remark(1, "an empty join list leads to no member; name at least one address", "bad"))
    return Draft(tuple(found), tuple(remarks))


def draft_lines(picture: Picture, addresses: Sequence[Address]) -> tuple[str, ...]:
    """Return a list as lines of the editor: one address a line, followed by the name of the member there."""
    named = [(address, picture.label_of(address)) for address in addresses]
    return tuple(address if name == address else f"{address}  {COMMENT} {one_line(name)}" for address, name in named)


def sub_cluster(picture: Picture, label: str) -> MemberBelief | None:
    """Return the master of the cluster that `label` belongs to, which an edit is handed to; without one the member itself.

    None for a member that cannot be asked.
    """
    belief = picture.members.get(label)
    if belief is None or belief.status in ("stopped", "killed", "paused"):
        return None
    return picture.master_of(label) or belief


def plan_edit(picture: Picture, master: MemberBelief, wanted: Sequence[Address]) -> EditPlan:
    """Return what the list `wanted` would change in the cluster of `master`."""
    names = {address: picture.label_of(address) for address in (*master.join_list, *wanted)}
    changes = compare_lists(master.join_list, wanted, names)
    followers = [label for label in members_of(picture, master) if label != master.label]
    lists = {label: picture.members[label].join_list for label in followers}
    differing = tuple(label for label, known in lists.items() if known != master.join_list and known != tuple(wanted))
    kept = [change.address for change in changes if change.sign == "="]
    reordered = kept != [entry for entry in master.join_list if entry in kept]
    return EditPlan(master.label, (master.label, *followers), changes, reordered, differing)


def edit_sentences(picture: Picture, command: SetJoinList) -> list[str]:
    """Return what a command would change, for its confirmation; nothing for one that the cluster will refuse anyway."""
    master = sub_cluster(picture, command.member)
    known = {label: belief.address for label, belief in picture.members.items() if belief.address}
    with suppress(BadJoinList):
        if master is not None:
            wanted = resolve_join_list(command.addresses, known)
            return [f"Join list of {plan_edit(picture, master, wanted).diff()}."]
    return []


def compare_lists(
    before: Sequence[Address], after: Sequence[Address], names: Mapping[Address, str]
) -> tuple[JoinListChange, ...]:
    """Every address of the list `after` in its order, then those of `before` that it lacks."""
    old, new = set(before), set(after)
    kept = [JoinListChange("=" if address in old else "+", address, one_line(names[address])) for address in after]
    return (*kept, *(JoinListChange("−", entry, one_line(names[entry])) for entry in before if entry not in new))


def members_of(picture: Picture, master: MemberBelief) -> Iterator[str]:
    """Labels of the members on the list of `master` that are seen to follow it, itself included."""
    for member in master.members:
        label = picture.label_of(member.address)
        belief = picture.members.get(label)
        if belief is not None and belief.uuid == member.uuid and belief.master == master.address:
            yield label
    if not master.members:
        yield master.label


def spread_of(picture: Picture, master: str, wanted: Sequence[Address]) -> Spread | None:
    """How many members of the cluster of `master` have the list `wanted`; None when it leads no more."""
    belief = picture.members.get(master)
    if belief is None or not belief.running:
        return None
    members = list(members_of(picture, belief))
    return Spread(master, sum(picture.members[member].join_list == tuple(wanted) for member in members), len(members))


def spelt(address: Address, name: str) -> str:
    """Return an address with the name of the member there, if that is another word."""
    return address if name == address else f"{name} ({address})"


def _addresses_of(entry: str, picture: Picture, line: int, remarks: list[Remark]) -> tuple[Address, ...]:
    known = picture.address_of(entry)
    if known is not None:
        return (known,)
    labels = list(picture.members)
    close = get_close_matches(entry, labels, n=1) if ":" not in entry and "." not in entry else []
    if close:
        remarks.append(
            Remark(
                line, one_line(f"there is no member {entry!r}; did you mean {close[0]}? A host needs its port"), "bad"
            )
        )
        return ()
    try:
        return parse_join_list([entry])
    except BadJoinList as problem:
        why = str(problem.__cause__ or problem)
    remarks.append(Remark(line, one_line(why), "bad"))
    return ()


def _remarks_on(
    entry: str, addresses: Sequence[Address], picture: Picture, hosts: Collection[str], line: int
) -> Iterator[Remark]:
    try:
        parse_address(entry)
    except BadAddress:
        yield Remark(line, f"without a port it stands for {', '.join(addresses)}", "warning")
    if host_of(addresses[0]) not in hosts:
        yield Remark(line, f"{one_line(host_of(addresses[0]))}: no member was ever seen on this host", "warning")
    elif all(picture.label_of(address) == address and address not in picture.members for address in addresses):
        yield Remark(line, f"{one_line(entry)}: no member was ever seen there", "warning")


@dataclass(frozen=True, slots=True)
class MadeEdit:
    """The latest edit of a join list that stands, and what takes it back."""

    at_us: int
    undo: SetJoinList


def edit_in_force(records: Iterable[Record], label_of: Callable[[Address], str]) -> MadeEdit | None:
    """Return the latest edit in `records` that stands, if the list before it is known. One that restored a list took one back."""
    lists: dict[str, list[tuple[int, tuple[Address, ...]]]] = {}
    """By member, the list that it began with or was given by others, and those that edits at it made of that."""
    for record in records:
        if isinstance(event := record.event, MemberStarted) and event.join_list:
            lists[record.member] = [(record.at, event.join_list)]
        elif isinstance(event, JoinListChanged):
            known = lists.setdefault(record.member, [])
            if not event.edition or label_of(event.author) != record.member:
                lists[record.member] = [(record.at, event.addresses)]
            elif len(known) > 1 and known[-2][1] == event.addresses:
                known.pop()
            else:
                known.append((record.at, event.addresses))
    edits = [(known[-1][0], member, known[-2][1]) for member, known in lists.items() if len(known) > 1]
    if not edits:
        return None
    at_us, member, before = max(edits)
    return MadeEdit(at_us, SetJoinList(member, tuple(map(str, before))))


def has_other_join_list(picture: Picture, belief: MemberBelief) -> bool:
    """Return whether a member has another join list than the master that it follows."""
    master = picture.master_of(belief.label)
    return master is not None and master.join_list != belief.join_list
