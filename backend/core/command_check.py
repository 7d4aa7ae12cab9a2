"""Whether a command can be done as things stand. Refusals are made here, before anything has changed.

Every kind of cluster asks this first, so all refuse the same commands in the same words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CallMap,
    ChangeState,
    Command,
    CommandRefused,
    CutLink,
    DelayLink,
    DropMessages,
    DuplicateOnLink,
    Heal,
    HealLink,
    KillAt,
    KillMember,
    LoseOnLink,
    Operate,
    Partition,
    PauseMember,
    ResumeMember,
    SearchClusters,
    SetJoinList,
    SetProperties,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.events import EVENT_KINDS
from quarterdeck.backend.core.messages import MESSAGE_KINDS

Condition = Literal["down", "running", "paused"]
"""What the process of a member is doing."""


def check(command: Command, labels: Sequence[str], condition_of: Callable[[str], Condition]) -> None:
    """Raise `CommandRefused`, with the reason for people, unless `command` can be done to the members `labels`."""
    match command:
        case StartMember(member):
            _known([member], labels)
            if condition_of(member) != "down":
                raise CommandRefused(f"{member} is already running")
        case StopMember(member) | PauseMember(member):
            _running(member, labels, condition_of)
            if condition_of(member) == "paused":
                hint = "resume or kill it" if isinstance(command, StopMember) else "resume it first"
                raise CommandRefused(f"{member} is paused already; {hint}")
        case KillMember(member):
            _running(member, labels, condition_of)
        case ResumeMember(member):
            _running(member, labels, condition_of)
            if condition_of(member) != "paused":
                raise CommandRefused(f"{member} is not paused")
        case Partition(groups, _):
            _check_groups(groups, labels)
        case CutLink(sources, targets) | HealLink(sources, targets):
            _check_links(sources, targets, labels)
        case DelayLink(sources, targets, delay_us):
            _check_links(sources, targets, labels)
            if delay_us < 0:
                raise CommandRefused(f"a delay of {delay_us} microseconds is negative")
        case LoseOnLink(sources, targets, probability) | DuplicateOnLink(sources, targets, probability):
            _check_links(sources, targets, labels)
            _check_probability(probability)
        case DropMessages(sources, targets, kinds):
            _check_links(sources, targets, labels)
            unknown = [kind for kind in kinds if kind not in MESSAGE_KINDS]
            if unknown:
                raise CommandRefused(f"there is no kind of message {unknown[0]!r}; known: {', '.join(MESSAGE_KINDS)}")
        case KillAt(member, event):
            _known([member], labels)
            if event not in EVENT_KINDS:
                raise CommandRefused(f"there is no kind of event {event!r}; known: {', '.join(EVENT_KINDS)}")
        case (
            SetJoinList(member)
            | ChangeState(member)
            | SetProperties(member)
            | SearchClusters(member)
            | Operate(member)
            | ArrangePartitions(member)
            | CallMap(member)
        ):
            _running(member, labels, condition_of)
            if condition_of(member) == "paused":
                raise CommandRefused(f"{member} is paused; resume it first")
        case Heal():
            pass


def _check_probability(probability: float) -> None:
    if not 0 <= probability <= 1:
        raise CommandRefused(f"{probability:g} is no probability; it lies from 0 to 1")


def _known(members: Iterable[str], labels: Sequence[str]) -> None:
    for member in members:
        if member not in labels:
            raise CommandRefused(f'unknown label "{member}"; known: {", ".join(labels)}')


def _running(member: str, labels: Sequence[str], condition_of: Callable[[str], Condition]) -> None:
    _known([member], labels)
    if condition_of(member) == "down":
        raise CommandRefused(f"{member} is not running")


def _check_groups(groups: Sequence[Sequence[str]], labels: Sequence[str]) -> None:
    named = [member for group in groups for member in group]
    _known(named, labels)
    if len(groups) < 2 or not all(groups):
        raise CommandRefused("a partition needs two groups or more, and a member in each")
    twice = [member for member, times in Counter(named).items() if times > 1]
    if twice:
        raise CommandRefused(f"{twice[0]} stands in the partition twice")


def _check_links(sources: Sequence[str], targets: Sequence[str], labels: Sequence[str]) -> None:
    _known((*sources, *targets), labels)
    if not any(source != target for source in sources for target in targets):
        raise CommandRefused("there is no link between these; name a source and another member as target")
