"""``/metrics`` for Prometheus: what a member believes, as numbers.

Read from the face at each scrape; only durations are accumulated in between. Labels have values from short fixed lists, no uuids
and no keys, so the number of series is bounded whatever clients do. The one exception is the silence of other members, by
address: there are as many as are on the member list.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import get_args

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quarterdeck.backend.core.causes import RefusalCause
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.live.security.tls import not_after
from quarterdeck.backend.picture.events.catalogue import kind_of
from quarterdeck.backend.service.http.access import require
from quarterdeck.backend.service.http.face import Face, own_belief
from quarterdeck.backend.service.member_log import software_version
from quarterdeck.backend.service.meters import BOUNDS_SECONDS, Durations
from quarterdeck.backend.service.rest.health import why_not_ready, why_unsafe

LOST = "lost"
"""The kind of events that were not counted: between two scrapes the member recorded more than it keeps."""
NODE_STATES = ("STARTING", "ACTIVE", "PASSIVE", "SHUT_DOWN")


def metrics_route(face: Face) -> Route:
    """Return the route, with a registry of its own."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(MemberCollector(face))
    ProcessCollector(registry=registry)

    async def metrics(request: Request) -> Response:
        require(face, request, "read", "METRICS")
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
        """Return nothing beforehand, so that the registry need not read the member to register this."""
        return ()

    def collect(self) -> Iterable[Metric]:
        face = self._face
        versions = {"version": software_version(), "python": platform.python_version()}
        yield InfoMetricFamily("quarterdeck_build", "The software.", value=versions)
        yield from (
            GaugeMetricFamily(f"quarterdeck_{name}", meaning, value=number(face))
            for name, (meaning, number) in GAUGES.items()
        )
        states = {state: state == face.node_state for state in NODE_STATES}
        yield _labelled("node_state", "What the process is doing.", "state", states)
        states = {state: state == face.member.cluster_state for state in CLUSTER_STATES}
        yield _labelled("cluster_state", "The state of the cluster.", "state", states)
        lost = face.journal.lost if face.journal is not None else 0
        meaning = "Records that its journal lacks, for the disk did not take them."
        yield CounterMetricFamily("quarterdeck_journal_lost_records", meaning, value=lost)
        yield from self._wire()
        meaning = "Requests over HTTP, until they were answered."
        yield _histogram("http_request", meaning, ["room", "code"], face.meters.requests)
        meaning = "Operations on maps that clients have asked this member for."
        yield _histogram("map_operation", meaning, ["operation", "outcome"], face.meters.calls)
        yield from self._migrations()
        yield self._events_by_kind()

    def _wire(self) -> Iterable[Metric]:
        face = self._face
        now = face.now_us()
        silence = {str(peer): (now - heard_us) / SECOND_US for peer, heard_us in face.member.last_heard_us.items()}
        yield _labelled("heartbeat_age_seconds", "Since something came from another member.", "peer", silence)
        refused = {cause: face.meters.refusals[cause] for cause in get_args(RefusalCause)}
        meaning = "Who was refused at the member's port, by cause."
        yield _labelled("refused_connections", meaning, "cause", refused, CounterMetricFamily)
        waiting = {"dial": face.queues.messages_for_dials, "bulk": face.queues.bulk_frames}
        yield _labelled("waiting_messages", "Messages to other members that wait, for what.", "queue", waiting)
        tls = face.configuration.security.wire.tls
        expires = None if tls is None else not_after(tls.certificate)
        if expires is not None:
            name = "quarterdeck_certificate_expiry_timestamp_seconds"
            meaning = "When the member's certificate expires, seconds since 1970."
            yield GaugeMetricFamily(name, meaning, value=expires.timestamp())

    def _migrations(self) -> Iterable[Metric]:
        leading, history = own_belief(self._face).leading, self._face.picture.history
        now = {"queued": leading.waiting, "running": len(leading.running)}
        yield _labelled("migrations", "Migrations that this member leads.", "state", now)
        ended = {"done": history.done_count, "failed": history.failed_count}
        meaning = "Migrations that this member led to their end."
        yield _labelled("migrations_ended", meaning, "outcome", ended, CounterMetricFamily)
        meaning = "Partitions that this member found without any replica."
        yield CounterMetricFamily("quarterdeck_partitions_lost", meaning, value=history.lost_count)

    def _events_by_kind(self) -> Metric:
        complete, records = self._face.records.after(*self._counted)
        if records and not complete:
            first = next((stored.seq for stored in records if stored.uuid == self._counted[0]), 1)
            self._events[LOST] += max(1, first - self._counted[1] - 1)
        self._events.update(kind_of(stored.record) for stored in records)
        if records:
            self._counted = (records[-1].uuid, records[-1].seq)
        counts = dict(sorted(self._events.items()))
        return _labelled("events", "Events that this member has recorded.", "kind", counts, CounterMetricFamily)


GAUGES: dict[str, tuple[str, Callable[[Face], float]]] = {
    "member_list_version": (
        "Version of the installed member list; 0 before the first.",
        lambda face: face.member.members.version if face.member.members else 0,
    ),
    "members": (
        "Members on that list.",
        lambda face: len(face.member.members.members) if face.member.members else 0,
    ),
    "is_master": ("1 when this member leads, in its own belief.", lambda face: face.member.is_master),
    "suspicions": ("Members that this one suspects.", lambda face: len(own_belief(face).suspicions)),
    "held_back_members": (
        "Members kept out until they prove their links.",
        lambda face: len(own_belief(face).held_back),
    ),
    "operating": ("1 when it sees enough members to serve clients.", lambda face: own_belief(face).operating),
    "ready": ("1 when it should be sent work.", lambda face: not why_not_ready(face)),
    "cluster_safe": (
        "1 when the loss of one member would lose no data, as far as this member knows.",
        lambda face: not why_unsafe(face),
    ),
    "waiting_bulk_bytes": ("Bytes of tables and data that wait for receivers.", lambda face: face.queues.bulk_bytes),
    "calls_in_flight": ("Calls of clients that are not answered yet.", lambda face: face.calls_in_flight),
    "pending_connections": ("Connections that have not said what they are.", lambda face: face.queues.strangers),
    "http_connections": ("Connections that speak HTTP.", lambda face: face.queues.http_connections),
    "connections": ("Open connections to other members.", lambda face: face.connections),
    "link_faults": ("Links whose condition is not plain, by command.", lambda face: len(face.faults)),
    "partition_table_version": (
        "Sum of the versions of all partitions.",
        lambda face: face.member.partitions.table.version if face.member.partitions.table else 0,
    ),
    "partitions_owned": (
        "Partitions that this member owns.",
        lambda face: table.owned_by(face.member.uuid) if (table := own_belief(face).table) else 0,
    ),
    "partitions_backed_up": (
        "Partitions that it keeps a backup of.",
        lambda face: table.backed_up_by(face.member.uuid) if (table := own_belief(face).table) else 0,
    ),
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


def _histogram(name: str, meaning: str, labels: Sequence[str], taken: Mapping[tuple[str, str], Durations]) -> Metric:
    family = HistogramMetricFamily(f"quarterdeck_{name}_duration_seconds", meaning, labels=labels)
    for values, durations in sorted(taken.items()):
        bounds = [*map(str, BOUNDS_SECONDS), "+Inf"]
        buckets = list(zip(bounds, accumulate(durations.counts), strict=True))
        family.add_metric(values, buckets, durations.seconds)
    return family


def _labelled(
    name: str,
    meaning: str,
    label: str,
    numbers: Mapping[str, float],
    family: type[GaugeMetricFamily | CounterMetricFamily] = GaugeMetricFamily,
) -> Metric:
    made = family(f"quarterdeck_{name}", meaning, labels=[label])
    for value, number in numbers.items():
        made.add_metric([value], number)
    return made
