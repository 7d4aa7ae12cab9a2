"""One member that a remote cluster follows, and how it is reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quarterdeck.backend.clusters.connection_status import ConnectionStatus, Contact, ProcessFacts
from quarterdeck.backend.clusters.remote.access import address_in
from quarterdeck.backend.clusters.remote.member_stream import MemberStream
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.member_api.beliefs import ThisMember


@dataclass
class FollowedMember:
    """One member that is followed, and how it is reached. Times are UTC by this machine's clock, in microseconds."""

    stream: MemberStream
    since_us: int
    contact: Contact = "connecting"
    heard_us: int = 0
    why: str = ""
    refused: bool = False
    is_gone: bool = False
    """No process listens where it was."""
    incomplete: str = ""
    facts: ThisMember | None = None
    clock_ahead_us: int = 0
    label: str = ""
    """Empty until the member has said who it is."""

    @property
    def url(self) -> str:
        return self.stream.url

    @property
    def address(self) -> Address:
        return self.facts.address if self.facts is not None else address_in(self.url)

    def connection_status(self, on_our_clock: Callable[[int], int]) -> ConnectionStatus:
        """Return how it is reached. `on_our_clock` turns UTC into the time of the cluster's clock."""
        return ConnectionStatus(
            url=self.url,
            contact=self.contact,
            since_us=on_our_clock(self.heard_us if self.contact == "stale" else self.since_us),
            why=self.why,
            refused=self.refused,
            incomplete=self.incomplete,
            is_gone=self.is_gone,
        )

    def process_facts(self, facts: ThisMember) -> ProcessFacts:
        """Return what its process says of itself."""
        return ProcessFacts(
            facts.cluster_name,
            facts.version,
            facts.node_state,
            self.clock_ahead_us,
            facts.allow_faults,
            facts.read_only,
        )
