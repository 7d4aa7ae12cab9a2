"""Random records that touch every part of the picture, and a picture in a form that can be compared."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hypothesis import strategies as st

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data import events as data
from quarterdeck.backend.core.events import Event, ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.picture.fold.picture import Picture

LABELS = ("n1", "n2", "n3")
ADDRESSES = {label: Address(f"10.0.0.{place}:5701") for place, label in enumerate(LABELS, 1)}
A, B, C = ADDRESSES.values()
LISTED = tuple(Member(address, f"{label}-1", place) for place, (label, address) in enumerate(ADDRESSES.items(), 1))
HOLDERS = tuple(partition_events.Holder(address, f"{label}-1") for label, address in ADDRESSES.items())


def migration(number: int) -> partition_events.MigrationStarted:
    return partition_events.MigrationStarted(
        migration_id=f"m{number}", partition=number, type="COPY", partition_version=1, source=None, source_current=-1,
        source_new=-1, destination=B, destination_current=-1, destination_new=1, owner=A, available=1, replicas_wanted=2,
        unavoidable=False,
    )  # fmt: skip


PLANNED = tuple(partition_events.PlannedMigration(partition, "COPY", None, B, 1) for partition in (1, 1, 2))

EVENTS: tuple[Event, ...] = (
    events.MemberStarted(A, False, (A, B, C)),
    events.MemberStopped("asked to"),
    events.ListInstalled(1, "L1", A, LISTED, A, "joined"),
    events.ListInstalled(2, "L1", A, LISTED[:2], A, "unknown", "removed"),
    events.ListInstalled(2, "L2", C, LISTED[2:], C, "unknown", "split"),
    events.SuspicionRaised(C, "n3-1", "silence"),
    events.SuspicionCleared(C, "n3-1", "a heartbeat"),
    events.NotMerging(C, "not reported"),
    events.NotMerging(C, ""),
    events.DisconnectionReported(B, (C,)),
    partition_events.MigrationsPlanned(PLANNED, 3, 3, "a member joined"),
    migration(1),
    migration(2),
    partition_events.MigrationCommitting("m1", 1),
    partition_events.MigrationDecided("m1", 1, True, 1, ""),
    partition_events.MigrationAccepted("m2", 2, "destination", -1, 1),
    partition_events.MigrationFinished("m2", 2, "destination", True, -1, 1),
    partition_events.TableChanged(3, "aa", 8, HOLDERS[:2], ((1, 1, 0, 1), (2, 1, 1, 0)), "n1-1", "arranged"),
    partition_events.TableChanged(4, "bb", 8, HOLDERS[1:], ((2, 2, 1, 0),), "n1-1", "published"),
    data.BackupOutOfStep(2, B, "no answer"),
    data.BackupInStep(2, B, 4, 99),
    LinkChanged("n1", "n2", blocked="blackhole"),
    LinkChanged("n1", "n2"),
    ProcessKilled("n2"),
    ProcessPaused("n3"),
    ProcessResumed("n3"),
)

RANDOM_EVENTS = st.lists(
    st.tuples(st.sampled_from(LABELS), st.sampled_from((1, 1, 1, 2)), st.sampled_from(EVENTS)), max_size=40
)


def records_of(random_events: list[tuple[str, int, Event]], times_us: list[int]) -> list[Record]:
    return [
        Record("run-1", label, f"{label}-{life}", seq, at_us, at_us, event)
        for seq, ((label, life, event), at_us) in enumerate(zip(random_events, times_us, strict=True), 1)
    ]


def fold(records: list[Record]) -> Picture:
    picture = Picture()
    for record in records:
        picture.apply(record)
    return picture


def picture_contents(picture: Picture) -> dict[str, Any]:
    """All that a picture says."""
    beliefs = {}
    for label, belief in picture.members.items():
        said = {**asdict(belief), "writer": None, "obstacles": list(belief.obstacles.items())}
        if (table := belief.table) is not None:
            owned = {
                holder.uuid: (table.owned_by(holder.uuid), table.backed_up_by(holder.uuid)) for holder in table.holders
            }
            said["table"] = (
                table.version, table.digest, table.since_us, table.holders, owned, [table.row(place) for place in range(8)],
            )  # fmt: skip
        beliefs[label] = said
    history = picture.history
    return {
        "members": list(beliefs.items()),
        "links": list(picture.links.items()),
        "at": picture.at,
        "done": (list(history.done), history.done_count),
        "failed": (list(history.failed), history.failed_count),
        "labels": {address: picture.label_of(address) for address in ADDRESSES.values()},
    }
