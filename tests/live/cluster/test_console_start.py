"""A member that cannot start is told on the screen, although the console itself knows nothing of how clusters start."""

from __future__ import annotations

import asyncio
import socket

from quarterdeck.app.console import Console
from quarterdeck.backend.core.address import port_of
from quarterdeck.backend.core.commands import StartMember
from quarterdeck.backend.live.cluster.live_cluster import LiveCluster
from quarterdeck.backend.live.cluster.local_clusters import LocalCluster
from tests.app.fakes.screen_text import until_shown
from tests.live.cluster.observed_cluster import BASE_PORT, QUICK


def test_the_console_tells_which_member_could_not_start() -> None:
    async def story(cluster: LiveCluster) -> None:
        console = Console(cluster, cluster.started)
        async with console.run_test(size=(130, 30)) as pilot:
            text = await until_shown(pilot, lambda text: "starting the members failed" in text)
            assert "n2 cannot start at 127.0.0.1:" in text

    class Robbed(LocalCluster):
        """Somebody takes the port of n2 before it starts."""

        async def _start(self, command: StartMember) -> None:
            if command.member == "n2":
                robber.bind(("127.0.0.1", port_of(self.addresses["n2"])))
                robber.listen()
            await super()._start(command)

    with socket.socket() as robber:
        robber.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        cluster = Robbed(3, settings=QUICK, base_port=BASE_PORT)
        try:
            asyncio.run(story(cluster))
        finally:
            cluster.close()
