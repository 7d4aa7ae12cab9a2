"""The cluster whose members all run inside this process: the quickest to start, and the easiest to look into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Unpack

from quarterdeck.backend.core.commands import KillAt
from quarterdeck.backend.core.member import Birth, MemberMachine
from quarterdeck.backend.core.membership.identity import Randomness
from quarterdeck.backend.core.membership.state import Stopwatch
from quarterdeck.backend.live.host import Host
from quarterdeck.backend.live.live_cluster import LiveCluster, Options
from quarterdeck.backend.live.member_host import Machine, MemberHost


class LocalCluster(LiveCluster):
    """A `LiveCluster` in one process. Of all that it takes only `machine` is its own: what makes a member's state machine.

    To pause a member here means that its sockets are not read and its clock not looked at; to kill it, that its sockets
    are broken off.
    """

    def __init__(
        self,
        labels: Sequence[str] | int = 3,
        *,
        machine: Callable[[Birth, Randomness, Stopwatch], Machine] = MemberMachine,
        **options: Unpack[Options],
    ) -> None:
        self._machine = machine
        super().__init__(labels, **options)

    def _host(self, birth: Birth, life: int, dies_at: KillAt | None) -> Host:
        randomness = Random(f"{self._seed}/{birth.label}/{life}")
        machine = self._machine(birth, randomness, self._clock.now_us)
        return MemberHost(
            birth.label, birth.cluster_name, machine, self._clock, self._network, self, self._patience, dies_at
        )
