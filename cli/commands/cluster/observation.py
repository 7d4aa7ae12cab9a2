"""A running cluster as it is now, and what happens at all members, as it happens (`quarterdeck cluster watch`).

As it is now: a picture of its records, made once every member is reached or known not to be.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from http import HTTPStatus
from itertools import islice
from typing import Annotated, TypeVar, cast

from msgspec import structs

from quarterdeck.backend.clusters.cluster import Cluster, ConnectionStatus, ProcessFacts, WatchedCluster
from quarterdeck.backend.clusters.follower import Follower
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.watcher import recorded_watcher
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import with_names
from quarterdeck.cli.commands.journal import RECORD_COLUMNS, record_row
from quarterdeck.cli.commands.recording import RecordingTarget
from quarterdeck.cli.commands.run_options import DurationOption, ExpectMembersOption
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.configuration.opening import CONNECT_TIMEOUT_SECONDS, open_cluster, unreached, wait_until_started
from quarterdeck.cli.exits import BadUsage, CommandFailed, ExitCode
from quarterdeck.cli.output import Format, FormatOption, flag, option, say, write_line, write_rows

Answer = TypeVar("Answer")
Source = ConnectionTarget | RecordingTarget
"""What is asked: running members, or a moment of a recorded run."""

BAD_INPUT_STATUSES = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)
POLL_SECONDS = 0.02
MERGE_SECONDS = 0.2
"""How long records of several members are held back, so that they come in order."""
METRICS_SECONDS = 2.0
"""How long metrics of real members are waited for. They are asked for when a connection stands."""


@dataclass(frozen=True)
class ObservedCluster:
    """What the members believe at one moment, and how each is reached."""

    cluster: Cluster
    picture: Picture
    connections: Mapping[str, ConnectionStatus]
    """By label, or by the address of a member that does not answer."""
    facts: Mapping[str, ProcessFacts]
    now_us: int
    judge: Judge

    @cached_property
    def present(self) -> dict[str, MemberBelief]:
        """What the members that are reached believe, by label."""
        return {
            label: self.picture.members[label]
            for label, status in self.connections.items()
            if status.contact == "connected" and label in self.picture.members
        }

    @property
    def unreached(self) -> list[str]:
        return [label for label in self.connections if label not in self.present]

    @property
    def masters(self) -> list[str]:
        return [label for label, belief in self.present.items() if belief.leads]

    def name_of(self, address: Address | None) -> str:
        """Return the label of the member at `address`, the address where no member was met, or nothing for none."""
        return self.picture.label_of(address) if address else ""

    def named(self, text: str) -> str:
        """Return `text` with names in place of addresses."""
        return with_names(text, self.name_of)

    def member(self, wanted: str | None, what: str) -> str:
        """Return the member to ask for `what`: the one that is wanted, else the only master.

        Raises:
            CommandFailed: There is no such member, or several lead.
        """
        if wanted is not None:
            label = wanted if wanted in self.present else self.name_of(cast("Address", wanted))
            if label not in self.present:
                known = ", ".join(self.present)
                raise BadUsage(f"--member {wanted}: no such member answers; there are {known}")
            return label
        if len(self.masters) == 1:
            return self.masters[0]
        if not self.masters:
            raise BadUsage(f"no master was found; say with --member who is asked for {what}")
        names = ", ".join(self.masters)
        raise BadUsage(f"there are several clusters, led by {names}; say with --member which one {what} is for")


@contextmanager
def observe(
    source: Source,
    *,
    history: bool = False,
    tables: bool = False,
    metrics: bool = False,
    write: bool = False,
    expected_members: int | None = None,
) -> Iterator[ObservedCluster]:
    """Open the cluster that `source` names, and yield it as it is now, or a recorded one as it was at its moment.

    With `history` the members report all that they have recorded, else only their present state. With `tables` that includes the
    rows of their partition tables, which are of one moment then. With `metrics` those of real members are waited for, a little.

    Raises:
        CommandFailed: It cannot be opened, or no member is reached.
    """
    if isinstance(source, RecordingTarget):
        moment = recorded_moment(source)
        if expected_members is not None:
            accepting = structs.replace(moment.judge.watcher, expected_members=expected_members)
            moment = replace(moment, judge=Judge(moment.picture, accepting, moment.now_us))
        yield moment
        return
    connection = source
    opened = open_cluster(connection.require_named(), write=write, records=history, pod_logs=False)
    with closing(opened) as cluster:
        followed = Follower(cluster, expected_members=expected_members)
        followed.fold(settled_records(cluster, MERGE_SECONDS if history or connection.logs else 0))
        if not any(status.contact == "connected" for status in cluster.connection_status().values()):
            raise unreached(cluster)
        present = answer_of(cluster.present_state(tables=tables))
        followed.fold(present)
        if tables:
            await_tables(followed)
        if metrics:
            await_metrics(followed)
        yield ObservedCluster(
            cluster,
            followed.picture,
            cluster.connection_status(),
            cluster.process_facts(),
            cluster.now_us(),
            followed.judge(),
        )


def recorded_moment(recording: RecordingTarget) -> ObservedCluster:
    """Return a recorded cluster as it was at a moment, by what was recorded up to then.

    Raises:
        CommandFailed: It cannot be read, or there is no such moment.
    """
    from quarterdeck.backend.clusters.recorded.recorded_moment import picture_at, recorded_status

    run, at_us = recording.opened()
    with closing(run):
        picture, now_us = picture_at(run, at_us)
    if run.failure:
        raise CommandFailed(ExitCode.BAD_INPUT, f"--replay {recording.path}: {run.failure}")
    facts = dict.fromkeys(picture.members, ProcessFacts(""))
    judge = Judge(picture, recorded_watcher(picture), now_us)
    return ObservedCluster(run, picture, recorded_status(picture), facts, now_us, judge)


def await_tables(followed: Follower) -> None:
    """Return when witnessed members report one table, or have differed for so long that they have two."""
    from quarterdeck.backend.judgement.table_agreement import is_unsettled

    _follow_while(lambda: is_unsettled(followed.picture, followed.cluster.now_us()), followed)


def await_metrics(followed: Follower) -> None:
    """Return when all witnessed members that answer have reported metrics, or do not within `METRICS_SECONDS`."""
    latest = time.monotonic() + METRICS_SECONDS

    def waits() -> bool:
        return time.monotonic() < latest and any(
            "client-protocol" in belief.witnessed_by and belief.running and belief.metrics is None
            for belief in followed.picture.members.values()
        )

    _follow_while(waits, followed)


def _follow_while(waits: Callable[[], bool], followed: Follower) -> None:
    while waits():
        time.sleep(POLL_SECONDS)
        followed.follow()


def settled_records(
    cluster: WatchedCluster, merge_seconds: float = MERGE_SECONDS, longest_seconds: float = CONNECT_TIMEOUT_SECONDS
) -> list[Record]:
    """Return the records up to the moment at which every member is reached or known not to be; not after `longest_seconds`."""
    records: list[Record] = []
    now = time.monotonic()
    end = latest = now + longest_seconds
    while now < end:
        time.sleep(POLL_SECONDS)
        now = time.monotonic()
        if not cluster.is_settled:
            end = latest
        elif end == latest:
            end = min(now + merge_seconds, latest)
        records += cluster.drain()
    return records


def answer_of(asked: Future[Answer]) -> Answer:
    """Wait for what the members answer.

    Raises:
        CommandFailed: They refuse, or do not answer.
    """
    from quarterdeck.backend.clusters.remote.member_client import BadResponse, RequestRefused, Unreachable
    from quarterdeck.backend.clusters.remote.remote_commands import PartiallyDone

    try:
        return asked.result()
    except RequestRefused as refusal:
        code = ExitCode.BAD_INPUT if refusal.status in BAD_INPUT_STATUSES else ExitCode.REFUSED
        raise CommandFailed(code, str(refusal)) from refusal
    except (Unreachable, BadResponse) as problem:
        raise CommandFailed(ExitCode.UNREACHABLE, str(problem)) from problem
    except (CommandRefused, PartiallyDone) as refusal:
        raise CommandFailed(ExitCode.REFUSED, str(refusal)) from refusal


WATCH_SECONDS = 0.1


@with_connection
def watch(
    connection: ConnectionTarget,
    new: Annotated[bool, flag("Print only what happens from now on, without the history.", "--new")] = False,
    seconds: DurationOption = None,
    limit: Annotated[int | None, option("Stop after this many records.", min=1)] = None,
    expect_members: ExpectMembersOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print the events of all members, in the order of time; a table of sentences, or whole records.

    Members that fall silent or come back are reported on stderr, and in a sentence how the cluster is, when that has changed or
    data is lost. Exits with 3 when no member is reached at the start.
    """
    with closing(open_cluster(connection.require_named())) as cluster:
        wait_until_started(cluster)
        stream = RecordStream(cluster, 0 if not new else time.time_ns() // 1_000, expect_members)
        records = islice(stream.records(None if seconds is None else time.monotonic() + seconds), limit)
        if output is Format.TABLE:
            stream.show(records)
        else:
            write_rows((record_row(record, flat=output.is_flat) for record in records), RECORD_COLUMNS, output)


class RecordStream:
    """What a remote cluster reports; who is reached and who is not is said on stderr meanwhile."""

    def __init__(self, cluster: WatchedCluster, since_utc_us: int, expected_members: int | None = None) -> None:
        self._cluster, self._since_utc_us = cluster, since_utc_us
        self._followed = Follower(cluster, expected_members=expected_members)
        self._said: dict[str, str] = {}
        self._judged: tuple[str, int] | None = None
        """The condition that was said last, and how many partitions were lost then."""

    def records(self, until: float | None) -> Iterator[Record]:
        """Those that are wanted, until `until` on the monotonic clock, or for ever."""
        while until is None or time.monotonic() < until:
            fresh = self._followed.follow()
            # First, for the reader may want no more records after these.
            self._say_changes(self._cluster.connection_status())
            for record in fresh:
                if record.utc >= self._since_utc_us:
                    yield record
            self._say_health()
            sys.stdout.flush()
            time.sleep(WATCH_SECONDS)

    def show(self, records: Iterable[Record]) -> None:
        """Print them in words."""
        from quarterdeck.backend.picture.events.catalogue import describe_record

        for record in records:
            write_line(describe_record(record, self._followed.picture.label_of))

    def _say_health(self) -> None:
        if not self._cluster.is_settled:
            return
        health = self._followed.judge().health
        judged = health.condition, sum(loss.partitions for loss in health.losses)
        if judged != self._judged:
            self._judged = judged
            say(health.narrated)

    def _say_changes(self, connection_status: Mapping[str, ConnectionStatus]) -> None:
        for label, status in connection_status.items():
            text = (status.state or status.contact) + (f": {status.why}" if status.why else "")
            text += f"; history incomplete: {status.incomplete} is lost" if status.incomplete else ""
            if text != "connecting" and self._said.get(label) != text:
                self._said[label] = text
                say(f"{label} is {text}")
