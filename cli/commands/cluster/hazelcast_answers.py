"""What a short visit to members of Hazelcast tells, in the rows that members of ours are shown in. What is not told is null."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from quarterdeck.backend.clusters.connection_status import ConnectionStatus
from quarterdeck.backend.clusters.hazelcast.hazelcast_cluster import HazelcastCluster
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.merging.why_not_merging import why_not_merging
from quarterdeck.cli.configuration.connection import ConnectionTarget
from quarterdeck.cli.configuration.hazelcast_connection import open_hazelcast
from quarterdeck.cli.exits import CommandFailed, ExitCode

if TYPE_CHECKING:
    from quarterdeck.backend.core.commands.commands import Command

SETTLED_SECONDS = 6.0
"""How long a visit waits for members that do not answer, and for answers that take long."""

POLL_SECONDS = 0.05

Row = dict[str, object]


class Visit(NamedTuple):
    """What was heard, and how each member was reached."""

    picture: Picture
    connections: Mapping[str, ConnectionStatus]
    now_us: int
    untold: Mapping[str, Mapping[str, str]]

    @property
    def present(self) -> dict[str, MemberBelief]:
        """What those believe who were reached and have told a list."""
        members = self.picture.members
        return {
            label: members[label]
            for label, one in self.connections.items()
            if one.contact == "connected" and label in members and members[label].version
        }

    @property
    def discovered_members(self) -> Mapping[str, object]:
        """Everybody who was looked for, by label."""
        return self.connections

    def member(self, wanted: str | None, what: str) -> str:
        """Return the member that is meant: the one that is wanted, else the only master.

        Raises:
            CommandFailed: There is no such member, or several lead.
        """
        masters = [label for label, belief in self.present.items() if belief.is_master]
        if wanted is not None:
            if wanted in self.present:
                return wanted
            known = ", ".join(self.present)
            raise CommandFailed(ExitCode.BAD_INPUT, f"--member {wanted}: no such member answers; there are {known}")
        if len(masters) == 1:
            return masters[0]
        named = f"there are several clusters, led by {', '.join(masters)}" if masters else "no master was found"
        raise CommandFailed(ExitCode.BAD_INPUT, f"{named}; say with --member which one {what} is for")


def visit(connection: ConnectionTarget) -> Visit:
    """All that the members tell in a moment. Raises `CommandFailed` when nobody answers."""
    cluster = open_hazelcast(connection)
    try:
        return _visit(connection, cluster)
    finally:
        cluster.close()


def act(
    connection: ConnectionTarget, command_for: Callable[[Visit], Command], require_name: Callable[[Command, str], None]
) -> None:
    """Have a member do the command that follows from what is seen, unless `require_name` objects. Raises `CommandFailed`.

    `require_name` is given the command and the name of the cluster.
    """
    from quarterdeck.backend.core.commands.commands import CommandRefused

    cluster = open_hazelcast(connection.require_writable(), write=True)
    try:
        command = command_for(_visit(connection, cluster))
        require_name(command, cluster.name)
        try:
            cluster.execute(command).result()
        except CommandRefused as refusal:
            raise CommandFailed(ExitCode.REFUSED, str(refusal)) from refusal
    finally:
        cluster.close()


def _visit(connection: ConnectionTarget, cluster: HazelcastCluster) -> Visit:
    picture, deadline = Picture(), time.monotonic() + SETTLED_SECONDS
    while True:
        for record in cluster.drain():
            picture.apply(record)
        connections = cluster.connection_status()
        refused = connections and all(one.state == "refused" for one in connections.values())
        if refused or time.monotonic() >= deadline or _is_settled(picture, connections, cluster):
            break
        time.sleep(POLL_SECONDS)
    if not any(one.contact == "connected" for one in connections.values()):
        why = "; ".join(f"{one.url}: {one.why or 'no answer'}" for one in connections.values())
        raise CommandFailed(ExitCode.REFUSED if refused else ExitCode.UNREACHABLE, why)
    return Visit(picture, connections, cluster.now_us(), cluster.untold())


def _is_settled(picture: Picture, connections: Mapping[str, ConnectionStatus], cluster: HazelcastCluster) -> bool:
    """Whether everybody was reached, or not, and who was has told all that it tells."""
    untold = cluster.untold()
    for label, one in connections.items():
        belief = picture.members.get(label)
        if one.contact != "connected":
            if not one.state:
                return False
        elif belief is None or not belief.version:
            return False
        elif not all(belief.tells(aspect) for aspect in ("cluster-state", "settings")) and label not in untold:
            return False
    return bool(connections)


# Rows


def status_document(seen: Visit, cluster_name: str) -> Row:
    """As `cluster status` has it of members of ours. Versions of tables are told by nobody: digests are compared."""
    lists: dict[tuple[str, int, tuple[str, ...]], list[str]] = {}
    tables: dict[str, list[str]] = {}
    for label, belief in seen.present.items():
        members = tuple(member.uuid for member in belief.members)
        lists.setdefault((belief.lineage, belief.version, members), []).append(label)
        if belief.table is not None:
            tables.setdefault(belief.table.digest, []).append(label)
    unreached = [label for label in seen.connections if label not in seen.present]
    most_first = sorted(lists.values(), key=len, reverse=True)
    states = (_state(belief) for belief in seen.present.values())
    return {
        "clusters": [cluster_name],
        "agreed": len(lists) == 1 and len(tables) <= 1 and not unreached,
        "reached": list(seen.present),
        "unreached": unreached,
        "masters": [label for label, belief in seen.present.items() if belief.is_master],
        "lists": [
            {
                "version": seen.present[holders[0]].version,
                "master": seen.present[holders[0]].master,
                "members": [member.address for member in seen.present[holders[0]].members],
                "held_by": holders,
            }
            for holders in most_first
        ],
        "states": dict(Counter(state for state in states if state is not None)),
        "tables": [{"version": None, "digest": digest, "held_by": holders} for digest, holders in tables.items()],
    }


def member_rows(seen: Visit, cluster_name: str) -> Iterator[Row]:
    """Yield a row for each member that was looked for."""
    for label, one in seen.connections.items():
        belief = seen.present.get(label)
        row: Row = {"member": label, "address": label, "reached": one.contact == "connected"}
        if belief is not None:
            row |= {
                "uuid": belief.uuid,
                "node_state": None,
                "is_master": belief.is_master,
                "master": belief.master,
                "list_version": belief.version,
                "list_size": len(belief.members),
                "members": [each.address for each in belief.members],
                "lineage": belief.lineage,
                "cluster": cluster_name,
                "cluster_state": _state(belief),
                "table_version": None,
                "table_digest": belief.table.digest if belief.table is not None else None,
                "clock_ahead_ms": None,
                "allow_faults": False,
                "read_only": None,
                "version": belief.connection.reason if belief.connection is not None else None,
            }
        yield row | {"url": one.url, "why": one.why or (one.state if one.contact != "connected" else "")}


def list_rows(seen: Visit) -> Iterator[Row]:
    """Yield a row for each member: its list."""
    for label, belief in seen.present.items():
        yield {
            "member": label,
            "list_version": belief.version,
            "lineage": belief.lineage,
            "master": belief.master,
            "members": [member.address for member in belief.members],
        }


def table_rows(seen: Visit, asked: str, first: int, last: int | None) -> Iterator[Row]:
    """Yield a row for each partition. Only its owner is reported, so no more than one replica stands there."""
    table = seen.present[asked].table
    if table is None:
        return
    for partition in range(first, min(table.partitions, (table.partitions if last is None else last + 1))):
        replicas = [None if holder is None else holder.address for holder in table.row(partition)]
        yield {"partition": partition, "version": None, "replicas": replicas, "backups": None}


def join_list_rows(seen: Visit) -> Iterator[Row]:
    """Yield a row for each member: where it looks for its cluster, or null where that is not reported or is no list."""
    for label, belief in seen.present.items():
        addresses = list(belief.join_list) if belief.tells("join-list") else None
        yield {"member": label, "join_list": addresses, "addresses": addresses}


def state_rows(seen: Visit) -> Iterator[Row]:
    """Yield a row for each member: the state of the cluster as it holds it."""
    for label, belief in seen.present.items():
        yield {"member": label, "cluster_state": _state(belief), "node_state": None}


def why_rows(seen: Visit) -> Iterator[Row]:
    """Yield a row for each master: why its cluster does not become one with the others, as far as can be seen from outside."""
    pairs = why_not_merging(seen.picture, seen.now_us)
    masters = {label: belief for label, belief in seen.present.items() if belief.is_master}
    for label, belief in masters.items():
        found = [pair for pair in pairs if label in (pair.smaller, pair.greater)]
        alone = "there is one cluster" if len(masters) == 1 else "nothing is known of another cluster"
        yield {
            "member": label,
            "sentence": "; ".join(pair.sentence for pair in found) or alone,
            "remedy": "; ".join(pair.unblock.text for pair in found if pair.unblock is not None) or None,
            "master": belief.master,
            "is_master": True,
            "merging": None,
            "obstacles": None,
            "verdicts": None,
            "delay": None,
            "held_back": None,
            "join_list": list(belief.join_list) if belief.tells("join-list") else None,
            "remembered": None,
        }


def _state(belief: MemberBelief) -> str | None:
    return belief.cluster_state if belief.tells("cluster-state") else None
