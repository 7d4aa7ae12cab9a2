"""The cluster whose members all run inside this process: the quickest to start, and the easiest to look into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Unpack

from quarterdeck.backend.core.commands.commands import KillAt
from quarterdeck.backend.core.member import MemberConfiguration, MemberMachine
from quarterdeck.backend.core.membership.state import Stopwatch
from quarterdeck.backend.core.membership.views.identity import Randomness
from quarterdeck.backend.live.cluster.live_cluster import LiveCluster, Options
from quarterdeck.backend.live.member.member_host import Host, MemberHost


class LocalCluster(LiveCluster):
    """A `LiveCluster` in one process. Of all that it takes only `machine` is its own: what makes a member's state machine.

    To pause a member here means that its sockets are not read and its clock not looked at; to kill it, that its sockets
    are broken off.
    """

    def __init__(
        self,
        labels: Sequence[str] | int = 3,
        *,
        machine: Callable[[MemberConfiguration, Randomness, Stopwatch], MemberMachine] = MemberMachine,
        **options: Unpack[Options],
    ) -> None:
        self._machine = machine
        super().__init__(labels, **options)

    def _host(self, configuration: MemberConfiguration, incarnation: int, kill_point: KillAt | None) -> Host:
        randomness = Random(f"{self._seed}/{configuration.label}/{incarnation}")
        machine = self._machine(configuration, randomness, self._clock.now_us)
        return MemberHost(
            configuration.label,
            configuration.cluster_name,
            machine,
            self._clock,
            self._network,
            self,
            self._timeouts,
            kill_point,
        )
