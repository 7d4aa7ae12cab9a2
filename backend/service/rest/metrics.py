"""``/metrics`` for Prometheus: what a member believes, as numbers.

Read from the face at each scrape, nothing is kept up in between. Labels only have values out of short fixed lists: no
addresses, no uuids, no keys, so the number of series is bounded whatever the cluster does.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.core.events import EVENT_KINDS, Event
from quarterdeck.backend.service.http.access import require
from quarterdeck.backend.service.http.face import Face, own_belief
from quarterdeck.backend.service.member_log import software_version

LOST = "lost"
"""In place of the kind of events that were not seen: the member records more between two scrapes than it keeps."""

NODE_STATES = ("STARTING", "ACTIVE", "PASSIVE", "SHUT_DOWN")

_TAGS: dict[type[Event], str] = {kind: name for name, kind in EVENT_KINDS.items()}


def metrics_route(face: Face) -> Route:
    """The path, with a registry of its own."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(MemberCollector(face))
    ProcessCollector(registry=registry)

    async def metrics(request: Request) -> Response:
        require(face, request, "read")
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"Content-Type": content_type})

    return Route("/metrics", metrics, methods=["GET"])


class MemberCollector(Collector):
    """Makes the metrics of one member."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._events: Counter[str] = Counter()
        self._counted: tuple[str, int] = ("", 0)

    def describe(self) -> Iterable[Metric]:
        """None beforehand: the registry need not look at the member to take this in."""
        return ()

    def collect(self) -> Iterable[Metric]:
        face = self._face
        yield InfoMetricFamily(
            "quarterdeck_build",
            "The software.",
            value={"version": software_version(), "python": platform.python_version()},
        )
        yield from (
            GaugeMetricFamily(f"quarterdeck_{name}", meaning, value=number(face))
            for name, (meaning, number) in GAUGES.items()
        )
        yield _one_of("quarterdeck_node_state", "What the process is doing.", NODE_STATES, face.node_state)
        yield _one_of(
            "quarterdeck_cluster_state", "The state of the cluster.", CLUSTER_STATES, face.member.cluster_state
        )
        lost = face.journal.lost if face.journal is not None else 0
        yield CounterMetricFamily(
            "quarterdeck_journal_lost_records",
            "Records that its journal lacks, for the disk did not take them.",
            value=lost,
        )
        yield from self._migrations()
        yield self._events_by_kind()

    def _migrations(self) -> Iterable[Metric]:
        leading, history = own_belief(self._face).leading, self._face.picture.history
        now = GaugeMetricFamily("quarterdeck_migrations", "Migrations that this member leads.", labels=["state"])
        now.add_metric(["queued"], leading.waiting)
        now.add_metric(["running"], len(leading.running))
        yield now
        ended = CounterMetricFamily(
            "quarterdeck_migrations_ended", "Migrations that this member led to their end.", labels=["outcome"]
        )
        ended.add_metric(["done"], history.done_count)
        ended.add_metric(["failed"], history.failed_count)
        yield ended
        yield CounterMetricFamily(
            "quarterdeck_partitions_lost",
            "Partitions that this member found without any replica.",
            value=history.lost_count,
        )

    def _events_by_kind(self) -> Metric:
        """Counts what was recorded since the last scrape."""
        complete, records = self._face.records_after(*self._counted)
        if records and not complete:
            first = next((record.seq for record in records if record.uuid == self._counted[0]), 1)
            self._events[LOST] += max(1, first - self._counted[1] - 1)
        self._events.update(_TAGS[type(record.event)] for record in records)
        if records:
            self._counted = (records[-1].uuid, records[-1].seq)
        family = CounterMetricFamily("quarterdeck_events", "Events that this member has recorded.", labels=["kind"])
        for kind in sorted(self._events):
            family.add_metric([kind], self._events[kind])
        return family


def _list_version(face: Face) -> float:
    return face.member.members.version if face.member.members else 0


def _members(face: Face) -> float:
    return len(face.member.members.members) if face.member.members else 0


def _table_version(face: Face) -> float:
    return face.member.table.version if face.member.table else 0


def _owned(face: Face) -> float:
    table = own_belief(face).table
    return table.owned_by(face.uuid) if table else 0


def _backed_up(face: Face) -> float:
    table = own_belief(face).table
    return table.backed_up_by(face.uuid) if table else 0


GAUGES: dict[str, tuple[str, Callable[[Face], float]]] = {
    "member_list_version": ("Version of the installed member list; 0 before the first.", _list_version),
    "members": ("Members on that list.", _members),
    "is_master": ("1 when this member leads, in its own belief.", lambda face: face.member.is_master),
    "suspicions": ("Members that this one suspects.", lambda face: len(own_belief(face).suspicions)),
    "held_back_members": (
        "Members kept out until they prove their links.",
        lambda face: len(own_belief(face).held_back),
    ),
    "operating": ("1 when it sees enough members to serve clients.", lambda face: own_belief(face).operating),
    "connections": ("Open connections to other members.", lambda face: face.connections),
    "link_faults": ("Links whose condition is not plain, by command.", lambda face: len(face.faults)),
    "partition_table_version": ("Sum of the versions of all partitions.", _table_version),
    "partitions_owned": ("Partitions that this member owns.", _owned),
    "partitions_backed_up": ("Partitions that it keeps a backup of.", _backed_up),
    "backups_out_of_step": (
        "Its backups that lack what their owners have.",
        lambda face: len(own_belief(face).out_of_step),
    ),
    "journal_failing": (
        "1 while its journal cannot be written.",
        lambda face: face.journal is not None and bool(face.journal.failure),
    ),
    "journal_waiting_records": (
        "Records that wait to be written into its journal.",
        lambda face: face.journal.waiting if face.journal is not None else 0,
    ),
    "join_list_addresses": ("Addresses on its join list.", lambda face: len(face.member.join_list)),
}
"""By name: what it means, and how it is read."""


def _one_of(name: str, meaning: str, known: Iterable[str], present: str) -> Metric:
    """1 for the present one of a fixed list, 0 for the others."""
    family = GaugeMetricFamily(name, meaning, labels=["state"])
    for state in known:
        family.add_metric([state], state == present)
    return family
