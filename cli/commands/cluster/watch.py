"""`quarterdeck cluster watch`: what happens at all members, as it happens."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from quarterdeck.backend.clusters.cluster import WatchedCluster, missed_members
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.health.cluster_health import ClusterHealth, cluster_health
from quarterdeck.backend.picture.health.data_loss import CopyCounts
from quarterdeck.cli.commands.journal import RECORD_COLUMNS, record_row
from quarterdeck.cli.commands.run_options import DurationOption
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.configuration.opening import open_cluster, wait_until_started
from quarterdeck.cli.output import Format, FormatOption, flag, option, say, write_rows

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.cluster import ConnectionStatus


POLL_SECONDS = 0.1


@with_connection
def watch(
    connection: ConnectionTarget,
    new: Annotated[bool, flag("Print only what happens from now on, without the history.", "--new")] = False,
    seconds: DurationOption = None,
    limit: Annotated[int | None, option("Stop after this many records.", min=1)] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print the events of all members, in the order of time; a table of sentences, or whole records.

    Members that fall silent or come back are reported on stderr, and in a sentence how the cluster is, when that has changed or
    data is lost. Exits with 3 when no member is reached at the start.
    """
    with closing(open_cluster(connection.require_named())) as cluster:
        wait_until_started(cluster)
        stream = RecordStream(cluster, 0 if not new else time.time_ns() // 1_000)
        records = islice(stream.records(None if seconds is None else time.monotonic() + seconds), limit)
        if output is Format.TABLE:
            stream.show(records)
        else:
            write_rows((record_row(record, flat=output.is_flat) for record in records), RECORD_COLUMNS, output)


class RecordStream:
    """What a remote cluster reports; who is reached and who is not is said on stderr meanwhile."""

    def __init__(self, cluster: WatchedCluster, since_utc_us: int) -> None:
        self._cluster, self._since_utc_us = cluster, since_utc_us
        self._followed = FollowedCluster(cluster)
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
            time.sleep(POLL_SECONDS)

    def show(self, records: Iterable[Record]) -> None:
        """Print them in words."""
        from quarterdeck.backend.picture.events.catalogue import describe_record

        for record in records:
            print(describe_record(record, self._followed.picture.label_of))

    def _say_health(self) -> None:
        if not self._cluster.is_settled:
            return
        health = self._followed.health()
        judged = health.condition, sum(loss.partitions for loss in health.losses)
        if judged != self._judged:
            self._judged = judged
            say(health.narrated)

    def _say_changes(self, connection_status: Mapping[str, ConnectionStatus]) -> None:
        from quarterdeck.backend.picture.text.formatting import one_line

        for label, status in connection_status.items():
            text = (status.state or status.contact) + (f": {status.why}" if status.why else "")
            text += f"; history incomplete: {status.incomplete} is lost" if status.incomplete else ""
            if text != "connecting" and self._said.get(label) != text:
                self._said[label] = text
                say(one_line(f"{label} is {text}"))


class FollowedCluster:
    """A cluster and what is known of it after the records that came."""

    def __init__(self, cluster: WatchedCluster) -> None:
        self.cluster, self.picture = cluster, Picture()
        self._copy_counts = CopyCounts()
        self._known: frozenset[str] = frozenset()
        """Labels of the members that the cluster looked for when it was followed last."""

    def follow(self) -> list[Record]:
        """Apply the records that came since the last call, and return them."""
        fresh = self.cluster.drain()
        for record in fresh:
            self.picture.apply(record)
        known = frozenset(self.cluster.labels)
        for label in self._known - known:
            self.picture.forget(label)
        self._known = known
        return fresh

    def health(self) -> ClusterHealth:
        """Return whether the cluster is whole and its data safe now."""
        missed = missed_members(self.cluster.connection_status())
        return cluster_health(self.picture, self.cluster.now_us(), *missed, counts=self._copy_counts)
