"""The cluster whose members are processes of their own: what kills, freezes and delays them is the operating system itself."""

from __future__ import annotations

from quarterdeck.backend.core.commands.commands import KillAt
from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.live.cluster.live_cluster import LiveCluster
from quarterdeck.backend.live.member.host import Host
from quarterdeck.backend.live.process.pipe_messages import StartIncarnation
from quarterdeck.backend.live.process.process_host import ProcessHost


class ProcessCluster(LiveCluster):
    """A `LiveCluster` of processes: a kill is a SIGKILL, a pause a SIGSTOP.

    No member outlives the cluster, nor this process, however that ends: a member ends with its stdin, and a frozen one is
    woken for it by the system, because it stands in a process group of its own that nobody looks after any more.
    """

    def _host(self, configuration: MemberConfiguration, incarnation: int, kill_point: KillAt | None) -> Host:
        links = tuple(condition for _, condition in sorted(self._network.links.conditions.items()))
        seed = f"{self._seed}/{configuration.label}/{incarnation}"
        begin = StartIncarnation(
            configuration, self._clock, dict(self.addresses), links, seed, self._timeouts, kill_point
        )
        return ProcessHost(begin, self)
