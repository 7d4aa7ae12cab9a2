"""A cluster of unchanged members of Hazelcast: each is followed over the client protocol, and what it reports becomes records.

Members that disagree or cannot be reached are what it is for: one is forgotten only when it is off all lists and not reached for
a day, and `connection_status` says how each is reached. What members do not report is not in the records either.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import Literal

from quarterdeck.backend.clusters.cluster import SNAPSHOTS, ConnectionStatus, Contact, ProcessFacts, refused
from quarterdeck.backend.clusters.hazelcast.log_following import HOLD_US, LogFollowing, LogSource
from quarterdeck.backend.clusters.hazelcast.operator_actions import CAN_DO, OperatorActions
from quarterdeck.backend.clusters.record_order import RecordNumbering
from quarterdeck.backend.commands.catalogue import CATALOGUE, command_text
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import Command, CommandRefused, ExpectMembers, SetJoinList
from quarterdeck.backend.core.events import MembersExpected, OperatorAsked, Record
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.hazelcast import SCHEME
from quarterdeck.backend.hazelcast.logs.interpretation import UNKNOWN_UUID_PREFIX
from quarterdeck.backend.hazelcast.wire import messages
from quarterdeck.backend.hazelcast.wire.connection import MemberWatch, NoAnswer
from quarterdeck.backend.hazelcast.wire.followers import is_address
from quarterdeck.backend.hazelcast.wire.member_configuration import ReportedConfiguration
from quarterdeck.backend.hazelcast.wire.requests import GetMemberConfig
from quarterdeck.backend.hazelcast.wire.route import WatchSettings
from quarterdeck.backend.hazelcast.witness.cluster_witness import ClusterWitness, HeardEvent
from quarterdeck.backend.hazelcast.witness.log_witness import ONLY_LOGGED, LogClocks, Logged
from quarterdeck.backend.live.cluster.background_loop import BackgroundLoop

_LOG = logging.getLogger(__name__)

WAKE_SECONDS = 0.1
MISSED = ("gone", "silent", "merging")
"""How a member is reached that all expect and that is not there. One that refuses us may be of another cluster."""
ADDRESSES_WRITTEN = 10
"""The number of addresses that a command line gets at most, unless more were given."""

READ_ONLY = "this cluster is watched read-only; connect with --write to change something"


class HazelcastCluster:
    """Members of Hazelcast as they are. Runs a thread of its own until it is closed; no caller waits for a member.

    `name` is what people call the cluster; `environment` is a badge such as PROD; `run` names the records. With `write`
    commands are let through.
    """

    source: Literal["hazelcast"] = "hazelcast"
    lacks = frozenset({SNAPSHOTS, *(command.tag for command in CATALOGUE)}) - CAN_DO

    def __init__(
        self,
        settings: WatchSettings,
        *,
        run: str,
        name: str = "",
        environment: str = "",
        write: bool = False,
        operator: str = "",
        logs: Sequence[LogSource] = (),
        options: Sequence[str] = (),
        size_file: Path | None = None,
        randomness: Random | None = None,
    ) -> None:
        """`operator` is who acts, for the records; `logs` are read besides.

        `options` are those of a command line that reaches these members, all but `--connect`. `size_file` keeps how many members
        an operator has accepted: the members themselves keep no such number.

        Raises OSError when a file that is named cannot be used, ValueError when `size_file` holds no number.
        """
        self.environment = environment
        self.writable = write
        self.started: Future[None] = Future()
        """Done when a member has answered for the first time."""
        self.name, self.run, self._operator = name or settings.cluster_name, run, operator
        self._began_utc_us, self._began_us = time.time_ns() // 1_000, time.monotonic_ns() // 1_000
        has_logs = bool(logs) or settings.route.follows_logs
        self._lock = threading.Lock()
        """Guards the data of both threads: records, labels and connections."""
        self._numbering = RecordNumbering(run, self._began_utc_us, HOLD_US if has_logs else 0)
        self._clocks = LogClocks()
        following = LogFollowing(
            logs, self._clocks, lambda: self._began_utc_us + self.now_us(), self._read, settings.route
        )
        self._logs = following if has_logs else None
        self._size_file = size_file
        if size_file is not None and size_file.exists():
            self._expect(int(size_file.read_text(encoding="utf-8")))
        self._witness = ClusterWitness()
        self._connections: dict[Address, messages.ConnectionReport] = {}
        self._heard: dict[Address, int] = {}
        self._dialled = dict.fromkeys(settings.name_of(address) or address for address in settings.addresses)
        """Where a member is looked for that has not said how it names itself."""
        self._resolved: dict[Address, tuple[Address, ...]] = {}
        """The addresses of names that stand for several."""
        self._aliases: set[Address] = set()
        """Addresses that lead to a member which names itself otherwise."""
        self._not_followed = ""
        self._settled_us: int | None = None
        self._settings, self._options = settings, tuple(options)
        self._watch = MemberWatch(settings, self._hear, self.now_us, randomness or Random())
        self._actions = OperatorActions(self._watch.ask, self._watch.host_name_of, settings, self.configuration_of)
        self._background = BackgroundLoop("hazelcast cluster")
        self._background.start(self._begin)

    # What any thread may call

    @property
    def labels(self) -> Sequence[str]:
        """The addresses of all members ever listed or heard; then the addresses that were looked for and did not answer."""
        with self._lock:
            return tuple(self._known())

    @property
    def met(self) -> bool:
        return self.started.done()

    def now_us(self) -> int:
        return time.monotonic_ns() // 1_000 - self._began_us

    def drain(self) -> list[Record]:
        with self._lock:
            return self._numbering.release(self.now_us())

    def connection_status(self) -> Mapping[str, ConnectionStatus]:
        with self._lock:
            return {address: self._status_of(address) for address in self._known()}

    def connect_options(self) -> Sequence[str]:
        """Return the options with which another command reaches the same members: the other half of a split is on no list."""
        if urls := self._settings.route.urls:
            return (*(word for url in urls for word in ("--connect", url)), *self._options)
        given = self._settings.addresses
        statuses = self.connection_status().values()
        reached = [status.url.removeprefix(SCHEME) for status in statuses if status.contact == "connected"]
        addresses = list(dict.fromkeys((*given, *reached)))[: max(len(given), ADDRESSES_WRITTEN)]
        return ("--connect", f"{SCHEME}{','.join(addresses)}", *self._options)

    def configuration_of(self, address: Address) -> ReportedConfiguration | None:
        return self._witness.configurations.get(address)

    @property
    def is_settled(self) -> bool:
        """Whether every known member has answered what it is asked first, or is known not to be reached.

        What they answered is among the records then, though it waited for logs.
        """
        if not self._has_settled():
            self._settled_us = None
            return False
        now_us = self.now_us()
        self._settled_us = now_us if self._settled_us is None else self._settled_us
        return now_us - self._settled_us >= self._numbering.hold_us

    def _has_settled(self) -> bool:
        with self._lock:
            known = {address: self._status_of(address) for address in self._known()}
            incarnations = {address: member.incarnation for address, member in self._witness.members.items()}
            if not all(self._state_of(address) for address in self._expected() if is_address(address)):
                return False
        return bool(known) and all(
            status.state if status.contact != "connected" else (it := incarnations.get(address)) and it.is_settled
            for address, status in known.items()
        )

    def process_facts(self) -> Mapping[str, ProcessFacts]:
        """Return the name of the cluster: members report nothing else of their processes."""
        with self._lock:
            return dict.fromkeys(self._heard, ProcessFacts(self._settings.cluster_name))

    def present_state(self, *, tables: bool = False) -> Future[Sequence[Record]]:
        """Return nothing: the watching begins with the present state of every member."""
        done: Future[Sequence[Record]] = Future()
        done.set_result(())
        return done

    def notes(self) -> Sequence[str]:
        """Return the notes about the watching itself."""
        return (self._not_followed,) if self._not_followed else ()

    def execute(self, command: Command) -> Future[None]:
        return self._background.ask(lambda: self._carry_out(command), self.name)

    def call(self, member: str, operation: Operation, *, watched: bool = False) -> Future[Answer]:
        return refused("this console does not read the data of members of Hazelcast")

    def close(self) -> None:
        """End all connections; the members go on. Closing twice is harmless."""
        self._background.close()

    # The thread and its tasks

    def _begin(self) -> None:
        self._background.spawn(self._watch_members())
        self._background.spawn(self._wake())
        if self._logs is not None:
            self._background.spawn(self._logs.run())

    async def _watch_members(self) -> None:
        try:
            await self._watch.run()
        except Exception as failure:  # noqa: BLE001 - the reader sees that nothing comes any more, and why
            _LOG.exception("%s is not watched any more", self.name)
            self._not_followed = f"nothing is watched any more, for this program failed: {failure!r}"

    async def _wake(self) -> None:
        while True:
            await asyncio.sleep(WAKE_SECONDS)
            with self._lock:
                self._take(self._witness.wake(self.now_us()))

    # What is heard

    def _hear(self, observation: messages.Observation) -> None:
        with self._lock:
            match observation:
                case messages.Renamed(dialled=dialled):
                    self._dialled.pop(dialled, None)
                    self._connections.pop(dialled, None)
                    self._aliases.add(dialled)
                case messages.NotFollowed(address=address, limit=limit):
                    self._not_followed = f"{address} is not followed, for {limit} members are"
                case messages.NameResolved(name=name, addresses=addresses):
                    for replaced in (name, *self._resolved.pop(name, ())):
                        self._dialled.pop(replaced, None)
                        if replaced not in addresses and replaced not in self._witness.members:
                            self._connections.pop(replaced, None)
                    self._resolved[name] = addresses
                    self._dialled.update(dict.fromkeys(addresses))
                case messages.Forgotten(address=address):
                    for known in (self._connections, self._heard, self._dialled):
                        known.pop(address, None)
                    self._take(self._witness.forget(address, self.now_us()))
                case messages.ConnectionReport(address=address):
                    self._connections[address] = observation
                case messages.Heard(at_us=at_us, address=address):
                    self._heard[address] = at_us
            self._take(self._witness.hear(observation))
        if isinstance(observation, messages.Heard) and not self.started.done():
            self.started.set_result(None)

    def _take(self, heard: Sequence[HeardEvent]) -> None:
        now_us = self.now_us()
        for event in heard:
            self._numbering.add(event.at_us, event.address, event.uuid, event.event, now_us)
            if isinstance(event.event, ListInstalled):
                self._clocks.heard(event.address, event.event, self._began_utc_us + event.at_us)

    def _read(self, logged: Logged) -> None:
        """Read the log of a member. Earlier lines than the watching are left to the replay of logs."""
        at_us, now_us = logged.utc_us - self._began_utc_us, self.now_us()
        with self._lock:
            self._take(self._witness.logs(logged.member, now_us))
            uuid = logged.uuid
            if uuid.startswith(UNKNOWN_UUID_PREFIX):
                uuid = self._witness.incarnation_of(logged.member)
            if at_us >= 0 and uuid and isinstance(logged.event, ONLY_LOGGED):
                self._numbering.add(at_us, logged.member, uuid, logged.event, now_us)

    def _known(self) -> dict[Address, None]:
        """Members that were ever listed or heard, where others are looked for, and where all expect one that is not there."""
        met = [address for address, member in self._witness.members.items() if member.is_known]
        missed = [address for address in self._expected() if self._state_of(address) in MISSED]
        return dict.fromkeys((*met, *self._dialled, *missed))

    def _expected(self) -> Sequence[Address]:
        """Return the addresses that the join list of every member that is reached names, and where no member was met."""
        lists = [
            self._witness.configurations[address].named
            for address in self._witness.members
            if self._state_of(address) == "connected" and address in self._witness.configurations
        ]
        if not lists:
            return ()
        by_all = set(lists[0]).intersection(*lists[1:]) - self._aliases
        members = self._witness.members
        return [named for named in lists[0] if named in by_all and not (named in members and members[named].is_known)]

    def _state_of(self, address: Address) -> str:
        held = self._connections.get(address)
        return held.state if held is not None else ""

    def _status_of(self, address: Address) -> ConnectionStatus:
        endpoint = self._settings.endpoint_of(address)
        held, heard_us = self._connections.get(address), self._heard.get(address)
        contact: Contact = "connecting" if heard_us is None else "stale"
        since_us = heard_us or 0
        state = held.state if held is not None else ""
        why = held.reason if held is not None else ""
        if held is not None and state == "connected":
            contact, since_us = "connected", held.since_us
        # Where no member was ever met, it is not known that there was one, unless what is on the way there knows.
        is_gone = state == "gone" and (heard_us is not None or self._settings.route.is_over(address))
        url = f"{SCHEME}{endpoint}"
        return ConnectionStatus(url, contact, since_us, why, state == "refused", state, is_gone=is_gone)

    # Commands

    async def _carry_out(self, command: Command) -> None:
        granted, answer = False, ""
        try:
            if isinstance(command, ExpectMembers):
                self._accept_size(command.size)
            elif not self.writable:
                raise CommandRefused(READ_ONLY)
            else:
                answer = await self._actions.do(command)
            granted = True
        except asyncio.CancelledError:
            raise CommandRefused(f"{self.name} was closed; whether it was done is not known") from None
        except Exception as problem:
            answer = str(problem)
            raise
        finally:
            with self._lock:
                target, tag = getattr(command, "member", ""), str(command.__struct_config__.tag)
                words = (command_text(command), "write", self._operator, granted, answer)
                asked = OperatorAsked(*words, do=tag, target=target)
                self._numbering.add(self.now_us(), self.name, self.run, asked, self.now_us())
            if isinstance(command, SetJoinList):
                self._background.hand_over(lambda: self._background.spawn(self._ask_for_join_lists()))

    def _accept_size(self, size: int) -> None:
        if self._size_file is not None:
            try:
                self._size_file.write_text(f"{size}\n", encoding="utf-8")
            except OSError as problem:
                raise CommandRefused(f"{self._size_file} is not written: {problem}") from problem
        with self._lock:
            self._expect(size)

    def _expect(self, size: int) -> None:
        now_us = self.now_us()
        self._numbering.add(now_us, self.name, self.run, MembersExpected(size), now_us)

    async def _ask_for_join_lists(self) -> None:
        """Whom the edit has reached is seen at once, not with the next look at configurations."""
        with self._lock:
            members = self._witness.members.items()
            met = ((address, known.incarnation) for address, known in members if known.is_connected)
            asked = {address: incarnation.uuid for address, incarnation in met if incarnation is not None}
        for address, uuid in asked.items():
            try:
                answer = await self._watch.ask(address, GetMemberConfig())
            except (NoAnswer, TimeoutError):
                continue
            self._hear(messages.Heard(self.now_us(), address, uuid, answer))
