"""A cluster whose members run elsewhere, watched and commanded over HTTP.

Give it the URL of one member or of several: it finds the others through their lists, follows each of them, and puts what
they say side by side. Members that disagree, or that cannot be reached, are what it is for: nothing is smoothed over and
nothing is forgotten; `connection_status` says whose records are old.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from random import Random
from typing import Literal
from uuid import uuid4

from msgspec import structs

from quarterdeck.backend.clusters.cluster import NOT_REMOTE, ConnectionStatus, ProcessFacts
from quarterdeck.backend.clusters.record_order import RecordMerge
from quarterdeck.backend.clusters.remote.access import MemberCredentials, address_in, member_url, url_of_other
from quarterdeck.backend.clusters.remote.member_client import MemberClient, Unreachable, present_state, urls_known_of
from quarterdeck.backend.clusters.remote.member_stream import MemberStream, StreamTimings
from quarterdeck.backend.clusters.remote.remote_commands import (
    CommandTarget,
    call_map,
    execute_command,
    remote_snapshot,
)
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.commands import CallMap, Command, CommandRefused
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership.events import JoinListChanged, ListInstalled
from quarterdeck.backend.core.operations import Answer, Get, Keys, Operation, Size
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, ConnectionState
from quarterdeck.backend.live.cluster.background_loop import BackgroundLoop
from quarterdeck.backend.member_api.beliefs import ThisMember

_LOG = logging.getLogger(__name__)

READ_ONLY = "this cluster is watched read-only; connect with --write to change something"

MOST_MEMBERS = 1_000
"""However many a list names: no more are followed."""

MINUTE_US = 60 * SECOND_US

LOOK_AROUND_SECONDS = 5.0
"""How often members are asked again whom else they know of."""


class RemoteCluster:
    """Members reached over the net. Runs a thread of its own until it is closed; no caller ever waits for a member.

    `write` lets commands through; what a member allows is still its own affair. Without `records` it is there to act on only.
    `name` is what people call the cluster, by default the name that its members give; `environment` is a badge such as PROD.
    Raises `BadUrl` for a URL that is none, and OSError when a file of `access` cannot be used.
    """

    source: Literal["remote"] = "remote"

    def __init__(
        self,
        urls: Sequence[str],
        *,
        access: MemberCredentials | None = None,
        name: str = "",
        environment: str = "",
        write: bool = False,
        records: bool = True,
        timings: StreamTimings | None = None,
        randomness: Random | None = None,
    ) -> None:
        seeds = list(dict.fromkeys(member_url(url) for url in urls))
        if not seeds:
            raise ValueError("a remote cluster needs the URL of a member")
        self.environment = environment
        self.lacks = NOT_REMOTE
        self.writable = write
        self.started: Future[None] = Future()
        """Done when a member is connected for the first time and has sent its history."""
        self._client = MemberClient(access or MemberCredentials())
        self._records = records
        self._timings = timings or StreamTimings()
        self._randomness = randomness or Random()
        self.name, self._given_name = name or seeds[0], bool(name)
        self.labels: tuple[str, ...] = ()
        self._addresses_by_label: dict[str, Address] = {}
        """Labels of members that have said who they are, in order of first appearance, and where each was."""
        self._followed: dict[str, MemberStream] = {}
        """By URL."""
        self._candidates: set[str] = set()
        """URLs that are being asked whether they belong to us."""
        self._origin_us: int | None = None
        """UTC at which the clock of this cluster shows 0: the minute in which the member that was met first was started."""
        self._ahead_us = 0
        """By how much that member's clock shows more than ours."""
        self._created_us = _utc_us()
        self._lock = threading.Lock()
        """Guards the merge and the table of who is followed, which both threads look into."""
        self._merge = RecordMerge()
        self._own_uuid, self._own_records = uuid4().hex, 0
        self._background = BackgroundLoop("remote cluster")
        self._background.start(lambda: self._begin(seeds))

    # What any thread may call

    @property
    def met(self) -> bool:
        return bool(self._addresses_by_label)

    def now_us(self) -> int:
        return self._on_our_clock(_utc_us())

    def drain(self) -> list[Record]:
        with self._lock:
            labels: dict[str, str] = {address: label for label, address in self._addresses_by_label.items()}
            return [_with_labels_of_links(record, labels) for record in self._merge.release(_utc_us())]

    def connection_status(self) -> Mapping[str, ConnectionStatus]:
        with self._lock:
            return {
                stream.label or stream.address: ConnectionStatus(
                    stream.url,
                    stream.contact,
                    self._on_our_clock(stream.heard_us if stream.contact == "stale" else stream.since_us),
                    stream.why,
                    stream.refused,
                    incomplete=stream.incomplete,
                    is_gone=stream.is_gone,
                )
                for stream in self._followed.values()
            }

    @property
    def is_settled(self) -> bool:
        with self._lock:
            followed = self._followed.values()
            return not self._candidates and all(it.contact == "connected" or it.why for it in followed)

    def process_facts(self) -> Mapping[str, ProcessFacts]:
        with self._lock:
            met = [(stream, facts) for stream in self._followed.values() if (facts := stream.facts) is not None]
        return {
            stream.label: ProcessFacts(
                facts.cluster_name, facts.version, facts.node_state, stream.clock_ahead_us, facts.allow_faults,
                facts.read_only,
            )
            for stream, facts in met
        }  # fmt: skip

    def present_state(self, *, tables: bool = False) -> Future[Sequence[Record]]:
        return self._background.ask(lambda: self._present_state(tables), self.name)

    async def _present_state(self, tables: bool) -> Sequence[Record]:
        connected = [stream for stream in self._followed.values() if stream.contact == "connected"]
        asked = [stream for stream in connected if stream.incomplete or not self._records]
        work = [present_state(self._client, stream.url, started=not self._records, rows=tables) for stream in asked]
        answers = await asyncio.gather(*work, return_exceptions=True)
        records: list[Record] = []
        for stream, answer in zip(asked, answers, strict=True):
            if isinstance(answer, list):
                records += (self._with_own_clock_and_label(record, stream) for record in answer)
            elif not isinstance(answer, Unreachable):
                raise answer
        return records

    def execute(self, command: Command) -> Future[None]:
        """Do as the protocol says; the future fails with `PartiallyDone` when some members have done it and some have not."""
        return self._background.ask(lambda: self._carry_out(command), self.name)

    def call(self, member: str, operation: Operation, *, watched: bool = False) -> Future[Answer]:
        """Ask `member` for `operation`. Whether it is recorded is the member's affair, not `watched`'s."""
        return self._background.ask(lambda: self._call(member, operation), self.name)

    def snapshot(self) -> Future[ClusterSnapshot]:
        return self._background.ask(self._take_snapshot, self.name)

    def close(self) -> None:
        """End all connections; the members go on. Closing twice is harmless."""
        self._background.close(self._client.close)

    # The thread and its tasks

    def _begin(self, seeds: Sequence[str]) -> None:
        for url in seeds:
            self._follow(url)
        self._background.spawn(self._poll_for_members())

    # Finding members

    def _follow(self, url: str) -> None:
        if url in self._followed or any(member.address == address_in(url) for member in self._followed.values()):
            return
        if len(self._followed) >= MOST_MEMBERS:
            _LOG.warning("%s is not followed, for %d members are", url, MOST_MEMBERS)
            return
        with self._lock:
            self._followed[url] = stream = MemberStream(
                url, self._client, self, self._randomness, self._timings, _utc_us(), records=self._records
            )
        self._show_labels()
        self._background.spawn(self._keep_following(stream))

    async def _keep_following(self, stream: MemberStream) -> None:
        try:
            await stream.follow()
        except Exception as failure:  # noqa: BLE001 - the others go on, and the reader sees that this one does not
            _LOG.exception("%s is not followed any more", stream.url)
            self.lost(stream, "gone", f"it is not followed any more, for this program failed: {failure!r}")

    async def _poll_for_members(self) -> None:
        """Members may know other members that no list has: of the other half of a former cluster, for instance."""
        while True:
            await asyncio.sleep(LOOK_AROUND_SECONDS)
            connected = [member.url for member in self._followed.values() if member.contact == "connected"]
            asked = (self._client.facts(url) for url in connected)
            for url, facts in zip(connected, await asyncio.gather(*asked, return_exceptions=True), strict=True):
                if isinstance(facts, ThisMember):
                    self._follow_known_members(facts, url)

    def _follow_known_members(self, facts: ThisMember, url: str) -> None:
        for member in facts.members:
            self._follow(url_of_other(member.address, url, facts.address))
        for other in urls_known_of(facts, url):
            self._consider_candidate(other, facts.cluster_name)

    def _consider_candidate(self, url: str, cluster_name: str) -> None:
        """Follow the member there if it is of this cluster."""
        if url not in self._candidates and url not in self._followed and len(self._candidates) < MOST_MEMBERS:
            self._candidates.add(url)
            self._background.spawn(self._follow_if_same_cluster(url, cluster_name))

    async def _follow_if_same_cluster(self, url: str, cluster_name: str) -> None:
        try:
            facts = await self._client.facts(url)
        except CommandRefused:
            pass  # nothing is said of an address that a member only knows of
        else:
            known = any(member.address == facts.address for member in self._followed.values())
            if facts.cluster_name == cluster_name and not known:
                self._follow(url)
        finally:
            self._candidates.discard(url)

    # As the observer of the streams (`member_stream.StreamObserver`)

    def identified(self, stream: MemberStream, facts: ThisMember) -> bool:
        known = [other for other in self._followed.values() if other.facts and other.address == facts.address]
        if known and known[0] is not stream:  # two URLs of one member
            with self._lock:
                del self._followed[stream.url]
            self._show_labels()
            return False
        now_us = _utc_us()
        if self._origin_us is None:
            self._ahead_us = facts.utc_us - now_us
            began_us = round(facts.started_utc.timestamp() * SECOND_US)
            self._origin_us = began_us - began_us % MINUTE_US
        if not self._given_name:
            self.name, self._given_name = facts.cluster_name, True
        with self._lock:
            stream.facts, stream.heard_us, stream.label = facts, now_us, self._label_for(facts)
        self._show_labels()
        self._follow_known_members(facts, stream.url)
        return True

    def history_begins(self, stream: MemberStream) -> None:
        with self._lock:
            self._merge.begin_history(stream.url, _utc_us())

    def records_received(self, stream: MemberStream, records: Sequence[Record]) -> None:
        facts, now_us = stream.facts, _utc_us()
        assert facts is not None, "a stream says whom it has met before it says what it hears"
        with self._lock:
            stream.heard_us = now_us
            own = self._with_own_clock_and_label
            fresh = [record for record in records if self._merge.add(stream.url, own(record, stream), now_us)]
        for record in fresh:
            match record.event:
                case ListInstalled(members=members):
                    for member in members:
                        self._follow(url_of_other(member.address, stream.url, facts.address))
                case JoinListChanged(addresses=addresses):
                    for address in addresses:
                        self._consider_candidate(url_of_other(address, stream.url, facts.address), facts.cluster_name)

    def incomplete(self, stream: MemberStream, what: str) -> None:
        with self._lock:
            stream.incomplete = what

    def connected(self, stream: MemberStream) -> None:
        with self._lock:
            self._merge.end_history(stream.url)
            if stream.contact == "stale":
                self._record_connection(stream, ConnectionChanged("connected"))
            stream.contact, stream.since_us, stream.why = "connected", _utc_us(), ""
            stream.refused = stream.is_gone = False
        if not self.started.done():
            self.started.set_result(None)

    def lost(self, stream: MemberStream, state: ConnectionState, why: str, is_gone: bool = False) -> None:
        with self._lock:
            self._merge.end_history(stream.url)
            if stream.facts and stream.contact != "stale":
                self._record_connection(stream, ConnectionChanged(state, why))
            stream.contact, stream.why = ("stale" if stream.facts else "connecting"), why
            stream.refused, stream.is_gone = state == "refused", is_gone

    def _record_connection(self, stream: MemberStream, event: ConnectionChanged) -> None:
        assert stream.facts is not None
        self._own_records += 1
        utc_us = _utc_us() + self._ahead_us
        at_us = self._member_us(utc_us)
        record = Record(stream.facts.run, stream.label, self._own_uuid, self._own_records, at_us, utc_us, event)
        self._merge.add(stream.url, record, _utc_us())

    # Names and clocks

    def _label_for(self, facts: ThisMember) -> str:
        """Its own label; with its address when another member has that label."""
        if self._addresses_by_label.setdefault(facts.label, facts.address) == facts.address:
            return facts.label
        label = f"{facts.label}@{facts.address}"
        self._addresses_by_label[label] = facts.address
        return label

    def _show_labels(self) -> None:
        unmet = [member.address for member in self._followed.values() if not member.label]
        self.labels = (*self._addresses_by_label, *unmet)

    def _with_own_clock_and_label(self, record: Record, stream: MemberStream) -> Record:
        """Return the record on the clock of this cluster, under the label by which its member goes here."""
        assert stream.facts is not None
        label = stream.label if record.member == stream.facts.label else record.member
        at = self._member_us(record.utc)
        return structs.replace(record, member=label, at=at)

    def _on_our_clock(self, utc_us: int) -> int:
        """Return a moment of this machine's UTC clock on the clock of this cluster."""
        return utc_us - self._created_us if self._origin_us is None else utc_us + self._ahead_us - self._origin_us

    # Commands

    def _command_targets(self) -> dict[str, CommandTarget]:
        gone = "it was last seen where another member is now"
        found = {label: CommandTarget(label, address, "", gone) for label, address in self._addresses_by_label.items()}
        for member in self._followed.values():
            label = member.label or member.address
            why = "" if member.contact == "connected" else member.why or "not yet"
            found[label] = CommandTarget(label, member.address, member.url, why)
        return found

    async def _carry_out(self, command: Command) -> None:
        if isinstance(command, CallMap):  # events say how it ends
            await self._call(command.member, command.operation)
            return
        if not self.writable:
            raise CommandRefused(READ_ONLY)
        await execute_command(self._client, command, self._command_targets())

    async def _take_snapshot(self) -> ClusterSnapshot:
        if not self.writable:
            raise CommandRefused(READ_ONLY)
        return await remote_snapshot(self._client, self.name, self._command_targets(), self._member_us)

    def _member_us(self, utc_us: int) -> int:
        """Return a moment of the members' UTC clocks, on which their records go as well."""
        return utc_us - (self._origin_us or 0)

    async def _call(self, member: str, operation: Operation) -> Answer:
        if not self.writable and not isinstance(operation, Get | Size | Keys):
            raise CommandRefused(READ_ONLY)
        target = self._command_targets().get(member)
        if target is None or target.why:
            raise CommandRefused(f"{member} is not reached: {target.why if target else 'no member is called that'}")
        return await call_map(self._client, target.url, operation)


def _with_labels_of_links(record: Record, labels: Mapping[str, str]) -> Record:
    """Return the record with labels of the members at the ends of a link: a member knows others by address only."""
    event = record.event
    if not isinstance(event, LinkChanged):
        return record
    source, target = labels.get(event.source, event.source), labels.get(event.target, event.target)
    return structs.replace(record, event=structs.replace(event, source=source, target=target))


def _utc_us() -> int:
    return time.time_ns() // 1_000
