"""Every command of an operator, described once: prompt, command lines, scenarios, HTTP, help and questions derive from this.

A new command is a type in `backend.core.commands`, an entry here, and a row in the tables of handlers of those that do it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal

import msgspec
from msgspec import Struct

from quarterdeck.backend.core import commands as do
from quarterdeck.backend.core import operations
from quarterdeck.backend.core.operations import Operation

ArgumentKind = Literal[
    "member", "other member", "members", "groups", "block mode", "duration", "probability", "message kinds", "join list",
    "link faults", "address", "cluster state", "properties", "event kind", "flag", "text", "bytes", "count",
]  # fmt: skip
"""The kind of an argument. Each room has one table that reads or shows each kind."""

Target = Literal["member", "links", "groups", "everything"]

MemberCondition = Literal["", "down", "up", "paused", "not paused", "master"]
"""The state that the member's process must have. Empty: any state."""

Ending = Literal["", "stopped", "killed", "frozen"]

Ability = Literal["", "simulation", "diagnostics"]
"""Abilities of some clusters: run in time and on a network of their own; have their members write diagnostics."""


class Argument(Struct, frozen=True):
    """One argument of a command: the attribute `name`."""

    name: str
    kind: ArgumentKind
    usage: str = ""
    """How usage writes it, in brackets when it may be left out. Empty: it cannot be written at the prompt."""
    yaml: str = ""
    """The argument's key in a scenario, or for a flag also its word at the prompt; the attribute's name when empty."""
    said: tuple[str, str] = ("", "")
    """For a flag or an optional argument: the words without it, and with it; braces stand for its value."""

    @property
    def key(self) -> str:
        return self.yaml or self.name

    @property
    def optional(self) -> bool:
        return self.usage.startswith("[")


class HttpForm(Struct, frozen=True):
    """How a member is asked for it, below the root of the console's interface."""

    method: Literal["POST", "PUT", "PATCH", "DELETE"]
    path: str
    body: tuple[str, ...] = ()
    """The arguments that the body holds, by name."""
    summary: str = ""
    """The effect of the path, for its description. Empty: the path has a handler of its own."""
    answer: str = ""
    """The answer of the member."""
    needs_cluster: bool = False
    """Only a member that has joined can do it."""


class CommandDescription(Struct, frozen=True):
    """The description of one kind of command."""

    command: type[do.Command]
    word: str
    """The command's word at the prompt."""
    arguments: tuple[Argument, ...]
    """In the order of the prompt."""
    meaning: str = ""
    """The effect of the word, for help. Empty: the prompt does not offer it, or another command of the same word describes it."""
    key: str = ""
    """The key of the console that does it, or begins to."""
    role: Literal["write", "fault"] = "write"
    """Who may do it. A fault is only done to members that were started for that."""
    cli: str = ""
    """The equal command line, with arguments in braces; `line` is the line of the prompt. Empty: no command line is equal."""
    http: HttpForm | None = None
    """Empty: a remote member does not do this."""
    sentence: str = ""
    """The text of a scenario's step; the word and the member when empty."""
    question: str = ""
    """The question before the command is done; made of the word when empty."""
    verb: str = ""
    """The word on the button that does it."""
    always_asked: bool = False
    """Whether the command is never done without a question."""
    takes_cluster_name: bool = False
    """Of a cluster that runs elsewhere, its name is typed before it is done."""
    needs: MemberCondition = "not paused"
    when_paused: str = "is paused; resume it first"
    ending: Ending = ""
    """The state of the member afterwards."""
    ability: Ability = ""
    """The ability that a cluster must have. Empty: every kind of cluster can do it, as far as `http` lets remote members."""
    operation: type[Operation] | None = None
    """For a call: the operation requested of the member. The other arguments are the operation's attributes."""

    @property
    def tag(self) -> str:
        """The command's name in a scenario and on the wire."""
        return str((self.operation or self.command).__struct_config__.tag)

    @property
    def target(self) -> Target:
        kinds = {argument.kind for argument in self.arguments}
        return "member" if "member" in kinds else "links" if "members" in kinds else "groups" if kinds else "everything"

    @property
    def typed(self) -> tuple[Argument, ...]:
        """The arguments that can be written at the prompt."""
        return tuple(argument for argument in self.arguments if argument.usage)

    @property
    def details(self) -> tuple[Argument, ...]:
        """The arguments that do not name a target of the command."""
        return tuple(argument for argument in self.arguments if argument.kind not in ("member", "members"))

    def values(self, command: do.Command) -> dict[str, Any]:
        operation = getattr(command, "operation", None)
        return {
            argument.name: getattr(operation if hasattr(operation, argument.name) else command, argument.name)
            for argument in self.arguments
        }

    def make(self, values: Mapping[str, Any]) -> do.Command:
        if self.operation is None:
            return self.command(**values)
        of_operation = {name: value for name, value in values.items() if name != "member"}
        return do.CallMap(values["member"], self.operation(**of_operation))


MEMBER = Argument("member", "member", "MEMBER")
ANY_MEMBER = Argument("member", "member", "[MEMBER]", "at")
ENDS = (Argument("sources", "members", "A", "from"), Argument("targets", "members", "B", "to"))
ONE_WAY = Argument("one_way", "flag", "[one-way]", "one-way", ("and", "to"))
MODE = Argument("mode", "block mode")
PROBABILITY = Argument("probability", "probability", "0.3")
OF_KINDS = Argument("kinds", "message kinds", "[KIND,KIND]", said=("", "{} messages of "))
MAP, KEY = Argument("map", "text", "MAP"), Argument("key", "text", "KEY")

LONGEST_TEXT = 300
"""Characters of a command as a line."""
BY_PROMPT = "cluster do {line}"
FAULT = "cluster fault {line}"
LINKS = HttpForm("POST", "/faults")
"""Each member learns of the links that begin at it (`backend.clusters.remote.remote_commands`)."""

CATALOGUE: tuple[CommandDescription, ...] = (
    CommandDescription(
        do.StartMember, "start", (MEMBER,), "start a member", "s", cli="member start --name={member}", needs="down"
    ),
    CommandDescription(
        do.StopMember, "stop", (MEMBER,), "stop a member with a goodbye", "x", cli=BY_PROMPT,
        http=HttpForm("POST", "/stop"), when_paused="is paused already; resume or kill it", ending="stopped",
    ),
    CommandDescription(
        do.StopCluster, "stop-cluster", (MEMBER,), "stop every member of a member's cluster at once", cli=BY_PROMPT,
        http=HttpForm(
            "POST", "/stop-cluster", (), "Stop every member of this member's cluster, without giving data away first.",
            "all members stop", needs_cluster=True,
        ),
        sentence="stop the cluster of {member}", question="Stop every member of the cluster of {member}?", verb="Stop",
        always_asked=True, takes_cluster_name=True, ending="stopped",
    ),
    CommandDescription(
        do.PromoteMember, "promote", (MEMBER,), "let a lite member hold data", cli=BY_PROMPT,
        http=HttpForm(
            "POST", "/promote", (), "Let this lite member hold data.", "the master was asked to promote {member}",
            needs_cluster=True,
        ),
        question="Let {member} hold data from now on?", verb="Promote", always_asked=True,
    ),
    CommandDescription(
        do.DemoteMember, "demote", (MEMBER,), "move a member's data away; it goes on as a lite member", cli=BY_PROMPT,
        http=HttpForm(
            "POST", "/demote", (), "Move this member's data away; it goes on as a lite member.",
            "the master was asked to demote {member}", needs_cluster=True,
        ),
        question="Let {member} hold no data from now on?", verb="Demote", always_asked=True,
    ),
    CommandDescription(
        do.Diagnose, "diagnose", (MEMBER, Argument("for_us", "duration", "10m", "for")),
        "let a cluster write diagnostics to standard output for a time; 0s ends it", cli=BY_PROMPT, ability="diagnostics",
        sentence="diagnose the cluster of {member} for {for_us}",
        question="Let every member of {member}'s cluster write diagnostics for {for_us}?", verb="Diagnose", always_asked=True,
    ),
    CommandDescription(
        do.Partition, "partition", (Argument("groups", "groups", "A,B|C,D"), MODE),
        "cut every link between members of different groups", "c", "fault", FAULT, LINKS,
        sentence="partition {groups} ({mode})",
    ),
    CommandDescription(
        do.CutLink, "cut", (*ENDS, ONE_WAY, MODE), "cut one link", "l", "fault", FAULT, LINKS,
        sentence="cut {sources} {one_way} {targets} ({mode})",
    ),
    CommandDescription(
        do.DelayLink, "delay",
        (
            *ENDS, Argument("delay_us", "duration", "250ms", "by"),
            Argument("up_to_us", "duration", "[500ms]", "up-to", ("", " to {}")), OF_KINDS, ONE_WAY,
        ),
        "let messages take this much longer, or a time drawn from a range", "w", "fault", FAULT, LINKS,
        sentence="delay {kinds}{sources} {one_way} {targets} ({delay_us}{up_to_us})",
    ),
    CommandDescription(
        do.LoseOnLink, "lose", (*ENDS, PROBABILITY, OF_KINDS, ONE_WAY), "lose messages with this probability", "w", "fault",
        FAULT, LINKS, sentence="lose {kinds}{sources} {one_way} {targets} ({probability})",
    ),
    CommandDescription(
        do.DuplicateOnLink, "duplicate", (*ENDS, PROBABILITY, OF_KINDS, ONE_WAY), "deliver messages twice with this probability",
        "w", "fault", FAULT, LINKS, sentence="duplicate {kinds}{sources} {one_way} {targets} ({probability})",
    ),
    CommandDescription(
        do.DropMessages, "drop-messages", (*ENDS, Argument("kinds", "message kinds", "KIND,KIND")),
        "drop all of these kinds from A to B; none: no more", "w", "fault", FAULT, LINKS,
        sentence="drop {kinds} messages from {sources} to {targets}",
    ),
    CommandDescription(
        do.HoldMessages, "hold", (*ENDS, OF_KINDS), role="fault", ability="simulation",
        sentence="hold {kinds}{sources} to {targets}",
    ),
    CommandDescription(
        do.ReplayMessages, "replay", ENDS, role="fault", ability="simulation",
        sentence="replay what is held from {sources} to {targets}",
    ),
    CommandDescription(
        do.MoveMember, "move", (MEMBER, Argument("address", "address", "HOST:PORT")), role="fault", ability="simulation",
        needs="down", sentence="move {member} to {address}",
    ),
    CommandDescription(
        do.Heal, "heal", (), "heal every link, or one", "h", "fault", FAULT, HttpForm("DELETE", "/faults"),
        sentence="heal",
    ),
    CommandDescription(
        do.HealLink, "heal", (*ENDS, Argument("only", "link faults", "[FAULT,FAULT]", said=("", "{} on "))), "", "", "fault",
        FAULT, LINKS, sentence="heal {only}{sources} and {targets}",
        question="Heal the links between {sources} and {targets}?", verb="Heal",
    ),
    CommandDescription(
        do.PauseMember, "pause", (MEMBER,), "freeze a member", "p", "fault", FAULT,
        HttpForm("POST", "/faults/pause", (), "Freeze this member.", "{member} is frozen"),
        when_paused="is paused already; resume it first", ending="frozen",
    ),
    CommandDescription(
        do.ResumeMember, "resume", (MEMBER,), "let a frozen member run on", "p", "fault", FAULT,
        HttpForm("POST", "/faults/resume", (), "Let a frozen member go on.", "{member} goes on"), needs="paused",
    ),
    CommandDescription(
        do.SuspectMember, "suspect", (MEMBER, Argument("suspect", "other member", "OTHER")),
        "have a member suspect another one; a master removes it", "", "fault", FAULT,
        HttpForm("POST", "/faults/suspect", ("suspect",), needs_cluster=True), sentence="let {member} suspect {suspect}",
        question="Let {member} suspect {suspect}, as if it was dead?", verb="Suspect", always_asked=True,
    ),
    CommandDescription(
        do.KillMember, "kill", (MEMBER,), "end a member without a goodbye", "K", "fault", "cluster kill {member}",
        HttpForm("POST", "/faults/kill", (), "End this member without a goodbye.", "{member} is killed"),
        always_asked=True, needs="up", ending="killed",
    ),
    CommandDescription(
        do.KillAt, "kill-at",
        (MEMBER, Argument("event", "event kind", "EVENT"), Argument("after", "flag", "[after]", said=("at", "after"))),
        "kill a member at its next event of this kind, or right after", "K", "fault",
        sentence="kill {member} {after} its next {event}", always_asked=True, needs="", ending="killed",
    ),
    CommandDescription(
        do.SetJoinList, "join-list", (MEMBER, Argument("addresses", "join list", "A,B")),
        "edit the join list; members or addresses", "e", cli="cluster join-list set --member={member} {addresses}",
        http=HttpForm("PUT", "/join-list", ("addresses",)), sentence="set join list via {member} to {addresses}",
        question="Edit the join list of {member}'s cluster?", verb="Edit",
    ),
    CommandDescription(
        do.ChangeState, "state", (MEMBER, Argument("state", "cluster state", "STATE")),
        "change the state of a member's cluster", "S", cli="cluster state --member={member} {state}",
        http=HttpForm("POST", "/state", ("state",), needs_cluster=True), sentence="change state via {member} to {state}",
        question="Change the cluster of {member} to {state}?", verb="Change", always_asked=True,
    ),
    CommandDescription(
        do.ExpectMembers, "expect", (Argument("size", "count", "N"), ANY_MEMBER),
        "accept N members as the size of the cluster: those that left are not missed",
        cli="cluster expect --member={member} {size}", http=HttpForm("POST", "/expect", ("size",)),
        sentence="accept {size} members as the size of the cluster", needs="",
    ),
    CommandDescription(
        do.SetProperties, "set", (MEMBER, Argument("properties", "properties", "NAME=VALUE")),
        "change properties of a member while it runs", cli=BY_PROMPT,
        http=HttpForm("PATCH", "/properties", ("properties",)), sentence="set {properties} at {member}",
        question="Change properties of {member}?", verb="Change",
    ),
    CommandDescription(
        do.SearchClusters, "search", (MEMBER,), "let a master look for other clusters now", "m", cli=BY_PROMPT,
        http=HttpForm(
            "POST", "/search", (), "Look for other clusters now, not at the next search. Refused by a member that is no master.",
            "it looks for other clusters", needs_cluster=True,
        ),
        question="Let {member} look for other clusters, and merge?", verb="Search", always_asked=True, needs="master",
    ),
    CommandDescription(do.Operate, "operate", (MEMBER,), "ask a member for an operation", "o"),
    CommandDescription(
        do.ArrangePartitions, "arrange", (ANY_MEMBER,), "arrange the partitions of its cluster now", "a", cli=BY_PROMPT,
        http=HttpForm(
            "POST", "/arrange", (), "Arrange the partitions, if that has not been done.",
            "the master was asked to arrange the partitions", needs_cluster=True,
        ),
    ),
    CommandDescription(
        do.CallMap, "put", (MAP, KEY, Argument("value", "bytes", "VALUE"), ANY_MEMBER), "store a value, through a member",
        "d", cli="map put --map={map} {key} {value}", sentence="put {key} = {value} into {map} via {member}",
        operation=operations.Put,
    ),
    CommandDescription(
        do.CallMap, "get", (MAP, KEY, ANY_MEMBER), "ask for a value, through a member", "d",
        cli="map get --map={map} {key}", sentence="get {key} of {map} via {member}", operation=operations.Get,
    ),
    CommandDescription(
        do.CallMap, "remove", (MAP, KEY, ANY_MEMBER), "remove a key, through a member", "d",
        cli="map remove --map={map} {key}", sentence="remove {key} of {map} via {member}", operation=operations.Remove,
    ),
    CommandDescription(do.CallMap, "put-all", (MAP, MEMBER), operation=operations.PutAll),
    CommandDescription(do.CallMap, "size", (MAP, MEMBER), cli="map size --map={map}", operation=operations.Size),
    CommandDescription(do.CallMap, "keys", (MAP, MEMBER), cli="map keys --map={map}", operation=operations.Keys),
)  # fmt: skip
"""One entry for each type of command, and for a call one for each operation."""

_BY_TYPE = {command.operation or command.command: command for command in CATALOGUE}


def description_of(command: do.Command) -> CommandDescription:
    """Return the entry of `command`."""
    return _BY_TYPE[type(command.operation) if isinstance(command, do.CallMap) else type(command)]


def described(kind: type[do.Command]) -> CommandDescription:
    """Return the entry of a type of command that is no call."""
    return _BY_TYPE[kind]


def command_text(command: do.Command) -> str:
    """Return a command as one line, without the values that it stores in maps."""
    fields = msgspec.to_builtins(command)
    operation = fields.pop("operation", None)
    words = [fields.pop("do"), fields.pop("member", ""), *(() if operation is None else operation[:1])]
    words += [f"{name}={_value_text(value)}" for name, value in fields.items() if value not in (False, "", 0)]
    return " ".join(filter(None, words))[:LONGEST_TEXT]


def _value_text(value: object) -> str:
    """Return a field of a command as the prompt writes it: members separated by commas, sides by bars."""
    if not isinstance(value, list | tuple):
        return str(value)
    is_sides = any(isinstance(part, list | tuple) for part in value)
    return ("|" if is_sides else ",").join(map(_value_text, value))


def members_ended(commands: Iterable[do.Command], *endings: Ending) -> list[str]:
    """Return the members that one of `commands` stops, kills or freezes, in order."""
    to_members = (command for command in commands if hasattr(command, "member"))
    return [command.member for command in to_members if description_of(command).ending in endings]


@cache
def commands_of_word(word: str) -> tuple[CommandDescription, ...]:
    """Return the commands that a word of the prompt may mean; none for a word that the prompt does not offer."""
    found = tuple(command for command in CATALOGUE if command.word == word)
    return found if any(known.meaning for known in found) else ()


def usage_of(word: str) -> str:
    """How a line of the prompt with this word is written."""
    found = commands_of_word(word)
    rest = max((" ".join(argument.usage for argument in each.typed) for each in found), key=len)
    optional = any(not each.arguments for each in found) and rest
    return f"{word} [{rest}]" if optional else f"{word} {rest}".rstrip()
