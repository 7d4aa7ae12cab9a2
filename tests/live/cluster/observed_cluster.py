"""A live cluster under observation: its timing, its ports, and all that it has recorded so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.live.cluster.live_cluster import LiveCluster
from tests.ports import take_ports
from tests.waiting import LIMIT_SECONDS, wait_until

QUICK = Settings.of(
    {
        "hazelcast.heartbeat.interval.seconds": 0.1,
        "hazelcast.max.no.heartbeat.seconds": 0.6,
        "hazelcast.member.list.publish.interval.seconds": 0.5,
        "hazelcast.mastership.claim.timeout.seconds": 2,
    }
)
BASE_PORT = take_ports(150)


class ObservedCluster:
    """A cluster and all its records so far."""

    def __init__(self, cluster: LiveCluster) -> None:
        self.cluster = cluster
        self.records: list[Record] = []

    def until(self, condition: Callable[[], object]) -> None:
        def came() -> object:
            self.records += self.cluster.drain()
            return condition()

        wait_until(came, lambda: f"it never came to that; views: {self.views()}")

    def do(self, command: Command) -> None:
        self.cluster.execute(command).result(LIMIT_SECONDS)

    def events(self, kind: type[Any], member: str | None = None) -> list[Any]:
        return [r.event for r in self.records if isinstance(r.event, kind) and member in (None, r.member)]

    def view(self, label: str) -> list[str]:
        """Labels of the members that `label` last believed in, the master first."""
        names = {address: name for name, address in self.cluster.addresses.items()}
        lists = self.events(ListInstalled, label)
        return [names[member.address] for member in lists[-1].members] if lists else []

    def views(self) -> dict[str, list[str]]:
        return {label: self.view(label) for label in self.cluster.labels}

    def agree(self, labels: Sequence[str]) -> bool:
        return all(self.view(label) == list(labels) for label in labels)
