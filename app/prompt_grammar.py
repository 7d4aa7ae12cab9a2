"""The grammar of the ``:`` prompt: a line of words becomes a command, a request to the console, or one error."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from app.actions import command_words
from backend.core.commands import (
    Command,
    CutLink,
    Heal,
    KillMember,
    Partition,
    PauseMember,
    ResumeMember,
    StartMember,
    StopMember,
)

ONE_WAY = "one-way"

MEMBER_COMMANDS: dict[str, type[StartMember | StopMember | KillMember | PauseMember | ResumeMember]] = {
    "start": StartMember,
    "stop": StopMember,
    "kill": KillMember,
    "pause": PauseMember,
    "resume": ResumeMember,
}


class BadLine(ValueError):
    """A line that is no command. The message says what is wrong and how to write it."""


@dataclass(frozen=True)
class ConsoleRequest:
    """Something the console does itself, without the cluster. `text` is what follows the word."""

    what: Literal["filter", "quit", "help", "screenshot", "stop-all"]
    text: str = ""


def parse_line(line: str, labels: Sequence[str], *, writable: bool) -> Command | ConsoleRequest:
    """Read one line of the prompt. Raises `BadLine`; members must be among `labels`."""
    word, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    known = command_words(writable)
    if word not in known:
        raise BadLine(_unknown_word(word, known))
    usage = known[word][1].usage
    if word in MEMBER_COMMANDS:
        return MEMBER_COMMANDS[word](_the_member(rest, labels, usage))
    match word:
        case "partition":
            return Partition(_groups(rest, labels, usage))
        case "cut":
            return _cut(rest, labels, usage)
        case "filter" | "screenshot":
            return ConsoleRequest(word, rest)
    if rest:
        raise BadLine(f"{word} stands alone; {rest!r} is too much")
    match word:
        case "heal":
            return Heal()
        case "quit" | "help" | "stop-all":
            return ConsoleRequest(word)
    raise BadLine(f"{word} has no meaning here")


def complete_line(beginning: str, labels: Sequence[str], *, writable: bool) -> str | None:
    """The line that `beginning` most likely becomes: its last word made whole. None when there is no telling."""
    known = command_words(writable)
    word, space, _ = beginning.partition(" ")
    if not space:
        whole = next((one for one in known if one.startswith(word) and one != word), None) if word else None
        return whole
    if word not in known:
        return None
    takes = known[word][1].takes
    start = max(beginning.rfind(divider) for divider in (" ,|" if takes == "groups" else " ")) + 1
    last, before = beginning[start:], beginning[len(word) + 1 : start]
    named = set(before.replace(",", " ").replace("|", " ").split())
    candidates: list[str] = []
    if takes in ("member", "two members", "groups"):
        enough = {"member": 1, "two members": 2}.get(takes, len(labels))
        candidates = [label for label in labels if label not in named] if len(named) < enough else []
    if takes == "two members" and len(named) == 2:
        candidates = [ONE_WAY]
    whole = next((one for one in candidates if one.startswith(last) and one != last), None)
    return beginning[:start] + whole if whole and (last or named or takes != "groups") else None


def _unknown_word(word: str, known: Collection[str]) -> str:
    if not word:
        return "nothing to do; type a command, or help"
    if word in command_words(writable=True):
        return f"{word} is refused: this cluster is read-only"
    close = difflib.get_close_matches(word, known, n=1)
    return f"there is no command {word!r}; " + (f"did you mean {close[0]}?" if close else "help lists all")


def _the_member(text: str, labels: Sequence[str], usage: str) -> str:
    if not text:
        raise BadLine(f"which member? write {usage}")
    if text not in labels:
        close = difflib.get_close_matches(text, labels, n=1)
        hint = f"did you mean {close[0]}?" if close else f"members are {', '.join(labels[:7])}"
        raise BadLine(f"there is no member {text!r}; {hint}")
    return text


def _groups(text: str, labels: Sequence[str], usage: str) -> tuple[tuple[str, ...], ...]:
    groups = tuple(
        tuple(_the_member(name.strip(), labels, usage) for name in group.split(",")) for group in text.split("|")
    )
    if len(groups) < 2:
        raise BadLine(f"one group is no partition; write {usage}")
    seen: set[str] = set()
    for name in (name for group in groups for name in group):
        if name in seen:
            raise BadLine(f"{name!r} stands twice; a member is on one side only")
        seen.add(name)
    return groups


def _cut(text: str, labels: Sequence[str], usage: str) -> CutLink:
    names = text.split()
    one_way = names[2:] == [ONE_WAY]
    if len(names) != 2 and not one_way:
        raise BadLine(f"cut takes two members; write {usage}")
    source, target = (_the_member(name, labels, usage) for name in names[:2])
    if source == target:
        raise BadLine(f"{source!r} has no link to itself")
    return CutLink((source,), (target,), one_way=one_way)
