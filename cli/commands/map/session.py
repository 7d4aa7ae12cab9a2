"""A distributed map in reach of the command line: who is asked, and what an operation and its answer look like as data.

The lines of `quarterdeck map run` are read and checked before anything is done.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.backend.commands.catalogue import CATALOGUE, members_ended
from quarterdeck.backend.core.commands import Command, CommandRefused, StartMember
from quarterdeck.backend.core.operations import Answer, Get, Keys, Operation, Put, PutAll, Remove, Size
from quarterdeck.cli.commands.console import read_settings
from quarterdeck.cli.commands.run_options import new_run, recording, stopping
from quarterdeck.cli.configuration.connection import ConnectionTarget
from quarterdeck.cli.configuration.opening import open_cluster, wait_until_started
from quarterdeck.cli.exits import BadUsage, CommandFailed, ExitCode, failing_as

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.cluster import Cluster, ConnectionStatusSource


MAP_WORDS = ("put", "get", "remove", "size", "keys")
MEMBER_WORDS = ("start", "stop", "kill")
DESCRIPTIONS = {word: next(row for row in CATALOGUE if row.word == word) for word in (*MAP_WORDS, *MEMBER_WORDS)}

LOAD = "load"
LOAD_USAGE = "MAP COUNT [VALUE_BYTES]"

DEFAULT_VALUE_BYTES = 100


@dataclass(frozen=True)
class ScriptLoad:
    """Put so many entries of this size into the map."""

    map: str
    entries: int
    value_bytes: int = DEFAULT_VALUE_BYTES


@dataclass(frozen=True)
class ScriptLine:
    """One line of a script: its number, and what it asks for."""

    number: int
    wanted: Command | ScriptLoad
    """A call is for whichever member the session asks."""


def read_script(text: str, source: str) -> list[ScriptLine]:
    """Return the lines of `text`, without empty ones and comments (``#``).

    Raises:
        CommandFailed: A line is wrong; the message names `source` and the line.
    """
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            words = shlex.split(line, comments=True)
            if words:
                lines.append(ScriptLine(number, _wanted(words)))
        except ValueError as problem:
            raise BadUsage(f"{source}:{number}: {problem}") from problem
    return lines


def _wanted(words: Sequence[str]) -> Command | ScriptLoad:
    """Return what these words ask for. Raises ValueError when that is nothing that there is."""
    verb, *rest = words
    if verb not in (*DESCRIPTIONS, LOAD):
        raise ValueError(f"{verb!r} is not known; write one of {', '.join((*MAP_WORDS, LOAD, *MEMBER_WORDS))}")
    if verb == LOAD:
        _check_count(verb, LOAD_USAGE, rest)
        return _load(*rest)
    description = DESCRIPTIONS[verb]
    arguments = description.details or description.arguments
    _check_count(verb, " ".join(argument.usage for argument in arguments), rest)
    pairs = zip(arguments, rest, strict=True)
    values = {known.name: word.encode() if known.kind == "bytes" else word for known, word in pairs}
    return description.make({"member": "", **values})


def _check_count(verb: str, usage: str, rest: Sequence[str]) -> None:
    most = len(usage.split())
    if not most - usage.count("[") <= len(rest) <= most:
        raise ValueError(f"{verb} takes {usage}, not {len(rest)} words; put quotes around words with blanks")


def _load(name: str, count: str, value_bytes: str = str(DEFAULT_VALUE_BYTES)) -> ScriptLoad:
    for field, given in (("COUNT", count), ("VALUE_BYTES", value_bytes)):
        if not given.isdecimal():
            raise ValueError(f"{field}: {given!r} is not a whole number")
    return ScriptLoad(name, int(count), int(value_bytes))


LONGEST_WAIT_SECONDS = 3600.0
"""Longer than any operation or command of a cluster takes, however it is set up: no call waits for ever."""

BATCH_ENTRIES = 500

STEP_SECONDS = 0.02
"""How often it is looked what is due."""


class MapSession:
    """One client of one cluster: it asks the first member that it believes to run, one thing after the other."""

    def __init__(self, cluster: Cluster, running: Sequence[str]) -> None:
        self._cluster = cluster
        self.running = list(running)

    def ask(self, operation: Operation) -> Answer:
        """Ask for `operation` and wait for its answer. Raises `CommandRefused` when there is no member to ask."""
        if not self.running:
            raise CommandRefused("no member is left to be asked; start one")
        return self._cluster.call(self.running[0], operation, watched=True).result(LONGEST_WAIT_SECONDS)

    def reached(self) -> list[str]:
        """Return the members that can be asked now."""
        from quarterdeck.backend.clusters.cluster import ConnectionStatusSource

        if isinstance(self._cluster, ConnectionStatusSource):
            return connected(self._cluster)
        return self.running

    def make_traffic(self, said: Mapping[str, object]) -> dict[str, object]:
        """Make the traffic of which this is said until it is over, or Ctrl-C or SIGTERM ends it; say what was done.

        Raises ValueError, with a sentence for people.
        """
        from quarterdeck.backend.clusters.traffic import Traffic, load_from

        load = load_from(said, self.reached())
        traffic = Traffic(self._cluster, load, self._cluster.now_us())
        stop = threading.Event()
        began = time.perf_counter()
        with stopping(stop):
            while not traffic.over:
                traffic.step(self._cluster.now_us(), self.reached())
                self._cluster.drain()
                if stop.is_set():
                    traffic.finish(self._cluster.now_us())
                time.sleep(STEP_SECONDS)
        seconds = time.perf_counter() - began
        return {
            "do": "load",
            **{name: getattr(load, name) for name in ("map", "rate", "keys", "value_bytes", "skew", "reads")},
            "seconds": round(seconds, 3),
            **{name: getattr(traffic, name) for name in ("done", "failed", "unanswered", "left_out")},
            "operations_per_second": round(traffic.done / max(seconds, 1e-9)),
            "problem": traffic.problem,
        }

    def do(self, command: Command) -> None:
        """Start, stop or kill a member, and wait until that is done. Raises `CommandRefused`."""
        self._cluster.execute(command).result(LONGEST_WAIT_SECONDS)
        ended = members_ended([command], "stopped", "killed")
        self.running = [label for label in self.running if label not in ended]
        if isinstance(command, StartMember):
            self.running.append(command.member)

    def load(self, name: str, entries: int, value_bytes: int = DEFAULT_VALUE_BYTES) -> dict[str, object]:
        """Put `entries` entries, `BATCH_ENTRIES` at a time, and say how quick that was."""
        value = b"v" * value_bytes
        began = time.perf_counter()
        problem = ""
        done = 0
        while done < entries and not problem:
            batch = range(done, min(done + BATCH_ENTRIES, entries))
            problem = self.ask(PutAll(name, tuple((f"key-{number}", value) for number in batch))).problem
            if not problem:
                done = batch.stop
        seconds = time.perf_counter() - began
        return {
            "do": "load",
            "map": name,
            "entries": done,
            "value_bytes": value_bytes,
            "seconds": round(seconds, 3),
            "entries_per_second": round(done / max(seconds, 1e-9)),
            "problem": problem,
        }


@contextmanager
def map_session(
    members: int,
    properties: list[str] | None,
    *,
    processes: bool = False,
    journal: Path | None = None,
    connection: ConnectionTarget,
) -> Iterator[MapSession]:
    """Yield a session with the cluster that `connection` names; when it names none, with a new one on this machine.

    A new one runs as long as the session. This is the only place that knows where the cluster of a `quarterdeck map` command
    comes from.

    Raises:
        CommandFailed: There is no such cluster.
    """
    settings = read_settings(properties or [], "training")
    if connection.urls:
        if processes or journal is not None:
            raise BadUsage("--processes and --journal are for a cluster that is started here")
        reached = open_cluster(connection.require_http_api(), write=not connection.read_only, records=False)
        with closing(reached):
            wait_until_started(reached)
            yield MapSession(reached, connected(reached))
        return
    from quarterdeck.backend.clusters.local import LocalCluster, ProcessCluster

    kind = ProcessCluster if processes else LocalCluster
    with recording(journal, new_run("map"), wanted=journal is not None) as writer:
        with failing_as(ExitCode.UNREACHABLE, OSError, about="the cluster cannot start"):
            cluster = kind(members, settings=settings, journal=writer)
        try:
            with failing_as(ExitCode.UNREACHABLE, OSError, about="the cluster cannot start"):
                cluster.started.result()
            yield MapSession(cluster, cluster.labels)
        except TimeoutError as silent:
            raise CommandFailed(ExitCode.UNREACHABLE, "the cluster gives no answer") from silent
        finally:
            cluster.close()


def connected(cluster: ConnectionStatusSource) -> list[str]:
    """Return the members that are reached."""
    return [label for label, status in cluster.connection_status().items() if status.contact == "connected"]


def answer_as_data(operation: Operation, answer: Answer) -> dict[str, object]:
    """Return the operation and its answer as a row of output.

    `found` distinguishes an empty value from none; `untouched` stands beside a problem only.
    """
    row: dict[str, object] = {"do": str(operation.__struct_config__.tag), "map": operation.map}
    match operation:
        case Put() | Get() | Remove():
            value = None if answer.value is None else answer.value.decode(errors="replace")
            row |= {"key": operation.key, "value": value, "found": value is not None}
        case Size():
            row["size"] = answer.size
        case Keys():
            row["keys"] = answer.keys
    return row | {"problem": answer.problem} | ({"untouched": answer.untouched} if answer.problem else {})
