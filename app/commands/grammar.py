"""The grammar of the ``:`` prompt: a line of words becomes a command, a request to the console, or one error."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from quarterdeck.app.actions.action import CommandWord, WordKind
from quarterdeck.app.actions.registry import command_words
from quarterdeck.app.commands.command_text import AFTER, NO_KINDS, ONE_WAY
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CallMap,
    ChangeState,
    Command,
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
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.data.calls.operations import Get, Operation, Put, Remove
from quarterdeck.backend.core.events import EVENT_KINDS
from quarterdeck.backend.core.join_list import SEPARATORS, BadJoinList, parse_join_list
from quarterdeck.backend.core.messages import MESSAGE_KINDS

MEMBER_COMMANDS: dict[
    str, type[StartMember | StopMember | KillMember | PauseMember | ResumeMember | SearchClusters | Operate]
] = {
    "start": StartMember,
    "stop": StopMember,
    "kill": KillMember,
    "pause": PauseMember,
    "resume": ResumeMember,
    "search": SearchClusters,
    "operate": Operate,
}

WORDS_OF_CALLS = {"put": 3, "get": 2, "remove": 2}
"""How many words say what is to be done to a map: its name, a key, perhaps a value."""

DELAY_FORM = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s)")
UNIT_US = {"us": 1, "ms": 1_000, "s": 1_000_000}


class BadLine(ValueError):
    """A line that is no command. The message says what is wrong and how to write it."""


@dataclass(frozen=True)
class ConsoleRequest:
    """Something the console does itself: the action of this id. `text` is what follows the word."""

    action_id: str
    word: str
    text: str = ""


def parse_line(line: str, labels: Sequence[str], *, writable: bool, selected: str = "") -> Command | ConsoleRequest:
    """Read one line of the prompt. Raises `BadLine`; members must be among `labels`.

    `selected` stands in where a line may leave its member out.
    """
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
        case "cut" | "lose" | "delay" | "duplicate" | "drop-messages":
            return _on_link(word, rest, labels, usage)
        case "heal" if rest:
            return HealLink(*_ends(rest.split(), labels, usage))
        case "join-list":
            return _join_list(rest, labels, usage)
        case "state":
            return _state(rest, labels, usage)
        case "kill-at":
            return _kill_at(rest, labels, usage)
        case "arrange":
            return ArrangePartitions(_the_member(rest or selected, labels, usage))
        case "put" | "get" | "remove":
            return _call(word, rest, labels, usage, selected)
        case "heal":
            return Heal()
    action, called = known[word]
    return ConsoleRequest(action.id, word, _rest_of_request(called, rest, labels))


def complete_line(
    beginning: str, labels: Sequence[str], *, writable: bool, words: Mapping[WordKind, Sequence[str]] | None = None
) -> str | None:
    """The line that `beginning` most likely becomes: its last word made whole. None when there is no telling.

    `words` are those that may follow a word of their kind, besides members: columns, themes, clusters, demos.
    """
    known = command_words(writable)
    word, space, _ = beginning.partition(" ")
    if not space:
        return next((one for one in known if one.startswith(word) and one != word), None) if word else None
    if word not in known:
        return None
    called = known[word][1]
    takes = called.takes
    if takes in ("choice", "column", "theme", "cluster", "demo"):
        rest = beginning[len(word) + 1 :]
        follow = called.choices if takes == "choice" else (words or {}).get(takes, ())
        return next((f"{word} {one}" for one in follow if one.startswith(rest) and one != rest), None) if rest else None
    dividers = " ,|" if takes in ("groups", "addresses", "link and words") else " "
    start = max(beginning.rfind(divider) for divider in dividers) + 1
    last, before = beginning[start:], beginning[len(word) + 1 : start]
    named = re.split(r"[ ,|]+", before.strip(" ,|")) if before.strip(" ,|") else []
    candidates = _candidates(word, takes, named, labels)
    whole = next((one for one in candidates if one.startswith(last) and one != last and one not in named), None)
    return beginning[:start] + whole if whole and (last or named or takes != "groups") else None


def _candidates(word: str, takes: WordKind, named: Sequence[str], labels: Sequence[str]) -> Sequence[str]:
    """What may come after the words `named`."""
    if not named and takes not in ("text", "file", "nothing", "words and member"):
        return labels
    match takes:
        case "groups" | "addresses":
            return labels
        case "state" if len(named) == 1:
            return CLUSTER_STATES
        case "event" if len(named) == 1:
            return tuple(EVENT_KINDS)
        case "event" if len(named) == 2:
            return (AFTER,)
        case "words and member" if len(named) == WORDS_OF_CALLS[word]:
            return labels
        case "two members" | "link and words" if len(named) == 1:
            return labels
        case "two members" if len(named) == 2 and word != "heal":
            return (ONE_WAY,)
        case "link and words" if word == "drop-messages":
            return (NO_KINDS, *MESSAGE_KINDS) if len(named) == 2 else tuple(MESSAGE_KINDS)
        case "link and words" if len(named) == 3:
            return (ONE_WAY,)
        case _:
            return ()


def _rest_of_request(called: CommandWord, rest: str, labels: Sequence[str]) -> str:
    """What follows a word of the console's own, as far as the grammar can judge it."""
    if called.takes == "nothing" and rest:
        raise BadLine(f"{called.word} stands alone; {rest!r} is too much")
    if called.takes == "member":
        return _the_member(rest, labels, called.usage)
    return rest


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
        raise BadLine(f"there is no member {text!r}; {_hint(text, labels, 'members')}")
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


def _ends(names: Sequence[str], labels: Sequence[str], usage: str) -> tuple[tuple[str], tuple[str]]:
    """The two members of a link."""
    if len(names) != 2:
        raise BadLine(f"a link has two ends; write {usage}")
    source, target = (_the_member(name, labels, usage) for name in names)
    if source == target:
        raise BadLine(f"{source!r} has no link to itself")
    return (source,), (target,)


def _on_link(word: str, text: str, labels: Sequence[str], usage: str) -> Command:
    names = text.split()
    one_way = names[-1:] == [ONE_WAY] and word != "drop-messages"
    if one_way:
        names.pop()
    sources, targets = _ends(names[:2], labels, usage)
    amounts = names[2:]
    if len(amounts) != (word != "cut"):
        raise BadLine(f"{word} takes two members{'' if word == 'cut' else ' and one word more'}; write {usage}")
    match word:
        case "cut":
            return CutLink(sources, targets, one_way=one_way)
        case "delay":
            return DelayLink(sources, targets, _delay_us(amounts[0], usage), one_way=one_way)
        case "lose":
            return LoseOnLink(sources, targets, _probability(amounts[0], usage), one_way=one_way)
        case "duplicate":
            return DuplicateOnLink(sources, targets, _probability(amounts[0], usage), one_way=one_way)
        case _:
            return DropMessages(sources, targets, _kinds(amounts[0]))


def _probability(text: str, usage: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise BadLine(f"{text!r} is no number; write {usage}") from None
    if not 0 <= number <= 1:
        raise BadLine(f"{text!r} is no probability; it lies from 0 to 1")
    return number


def _delay_us(text: str, usage: str) -> int:
    fit = DELAY_FORM.fullmatch(text)
    if fit is None:
        raise BadLine(f"{text!r} is no length of time; write a number and us, ms or s: {usage}")
    return round(float(fit[1]) * UNIT_US[fit[2]])


def _kinds(text: str) -> tuple[str, ...]:
    if text == NO_KINDS:
        return ()
    kinds = tuple(kind for kind in text.split(",") if kind)
    for kind in kinds:
        if kind not in MESSAGE_KINDS:
            raise BadLine(f"there is no message {kind!r}; {_hint(kind, tuple(MESSAGE_KINDS), 'messages')}")
    if not kinds:
        raise BadLine(f"which messages? write their kinds, or {NO_KINDS}")
    return kinds


def _state(text: str, labels: Sequence[str], usage: str) -> ChangeState:
    member, _, wanted = text.partition(" ")
    member, wanted = _the_member(member, labels, usage), wanted.strip()
    for state in CLUSTER_STATES:
        if state == wanted.upper():
            return ChangeState(member, state)
    if not wanted:
        raise BadLine(f"which state? write {usage}, of {', '.join(CLUSTER_STATES)}")
    raise BadLine(f"there is no state {wanted!r}; {_hint(wanted.upper(), CLUSTER_STATES, 'states')}")


def _kill_at(text: str, labels: Sequence[str], usage: str) -> KillAt:
    member, _, rest = text.partition(" ")
    member = _the_member(member, labels, usage)
    event, _, moment = rest.strip().partition(" ")
    moment = moment.strip()
    if not event:
        raise BadLine(f"at which event? write {usage}")
    if moment not in ("", AFTER):
        raise BadLine(f"{moment!r} is no moment; write {usage}")
    if event not in EVENT_KINDS:
        raise BadLine(f"there is no event {event!r}; {_hint(event, tuple(EVENT_KINDS), 'events')}")
    return KillAt(member, event, after=bool(moment))


def _call(word: str, text: str, labels: Sequence[str], usage: str, selected: str) -> CallMap:
    """Words with blanks in them stand in quotes, as in a shell."""
    try:
        words = shlex.split(text)
    except ValueError:
        raise BadLine(f"a quote is not closed; write {usage}") from None
    needed = WORDS_OF_CALLS[word]
    if not needed <= len(words) <= needed + 1:
        raise BadLine(f"{word} takes {needed} words, in quotes where they have blanks; write {usage}")
    member = _the_member(words[needed] if len(words) > needed else selected, labels, usage)
    operation: Operation
    match word:
        case "put":
            operation = Put(words[0], words[1], words[2].encode())
        case "get":
            operation = Get(words[0], words[1])
        case _:
            operation = Remove(words[0], words[1])
    return CallMap(member, operation)


def _join_list(text: str, labels: Sequence[str], usage: str) -> SetJoinList:
    """Members stand by their labels; everything else has to be an address."""
    member, _, rest = text.partition(" ")
    entries = tuple(word for word in SEPARATORS.split(rest) if word)
    member = _the_member(member, labels, usage)
    if not entries:
        raise BadLine(f"which addresses? an empty join list finds nobody; write {usage}")
    for entry in entries:
        if ":" not in entry and entry not in labels and difflib.get_close_matches(entry, labels, n=1):
            raise BadLine(f"there is no member {entry!r}; {_hint(entry, labels, 'members')} A host needs its port.")
        try:
            parse_join_list([entry] if entry not in labels else [])
        except BadJoinList as problem:
            raise BadLine(f"{entry!r} is neither a member nor an address: {problem}") from problem
    return SetJoinList(member, entries)


def _hint(word: str, known: Sequence[str], what: str) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]}?" if close else f"{what} are {', '.join(known[:7])}"
