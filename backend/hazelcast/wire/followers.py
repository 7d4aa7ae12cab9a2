"""Follows a whole cluster, or its halves: which addresses there are, and which member's migrations are subscribed to.

Addresses come from the settings, from the lists that members report, and from the join lists of their configuration. Off all
lists is the other half of a split, too, so an address is forgotten only when nothing answers there for a day, or when it makes
room for another one: pods come with ever new addresses. Every member's listener gets the migrations of its whole lineage, so
only the master of each lineage has one.

Like `MemberFollower` it has no sockets and no clock, and is driven in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address
from itertools import chain
from random import Random
from uuid import UUID

from quarterdeck.backend.core.address import (
    DEFAULT_PORT,
    Address,
    BadAddress,
    host_of,
    make_address,
    parse_address,
    port_of,
)
from quarterdeck.backend.core.witnessed.events import ConnectionState
from quarterdeck.backend.hazelcast.wire import messages
from quarterdeck.backend.hazelcast.wire.follower import NEVER_US, FollowedConnection, MemberFollower, Output
from quarterdeck.backend.hazelcast.wire.member_configuration import read_configuration
from quarterdeck.backend.hazelcast.wire.messages import MemberConfig, MembersView
from quarterdeck.backend.hazelcast.wire.requests import Command, Question
from quarterdeck.backend.hazelcast.wire.route import Ending, WatchSettings

NO_PEER: tuple[ConnectionState, ...] = ("gone", "silent")
"""What is not reported of an address for which an entry of a join list stands besides others: that no process listens there, or
that nothing comes from there.
"""

RANGE = re.compile(r"(?P<network>[\d.]+)\.(?P<first>\d{1,3})-(?P<last>\d{1,3})(:(?P<port>\d+))?")
MOST_IN_A_RANGE = 64
"""How many addresses of one range are dialled."""
MAX_REFUSED = 1_000
"""Of so many addresses that are not followed it is remembered that this was reported."""


class Followers:
    """One follower for each address that was ever found, up to a limit."""

    def __init__(self, settings: WatchSettings, random: Random, now_us: int) -> None:
        self._settings = settings
        self._random = random
        self._client_uuid = str(UUID(int=random.getrandbits(128), version=4))
        self._by_name: dict[Address, MemberFollower] = {}
        self._by_endpoint: dict[Address, MemberFollower] = {}
        self._aliases: set[Address] = set()
        """Addresses that lead to a member that is followed at another one."""
        self._unmet: set[Address] = set()
        """Endpoints that an entry of a join list stands for besides others, and where no member was ever met."""
        self._refused: set[Address] = set()
        self._named: dict[Address, frozenset[Address]] = {}
        """By member, the addresses on its join list."""
        self._views: dict[Address, frozenset[Address]] = {}
        """By member, the addresses on its list."""
        self._resolved: dict[Address, frozenset[Address]] = {}
        """By name that stands for several addresses, those that it had last."""
        self._host_names: dict[Address, str] = {}
        """By address that a name stands for, the host of that name: certificates are checked against it."""
        for endpoint in settings.addresses:
            name = settings.name_of(endpoint)
            self._follow(now_us, name or endpoint, pinned=name is not None)

    @property
    def by_address(self) -> Mapping[Address, MemberFollower]:
        """The followed members, by the name that each gives itself."""
        return self._by_name

    @property
    def names(self) -> frozenset[Address]:
        """Where to begin, and what join lists and configurations name, as far as a host has a name instead of an address."""
        found = {*self._settings.addresses, *chain(*self._named.values())}
        return frozenset(address for address in found if not is_numeric(host_of(address)))

    def host_name_of(self, endpoint: Address) -> str:
        """Return the name by which an endpoint was found, or its host."""
        return self._host_names.get(endpoint) or host_of(endpoint)

    def resolved(self, now_us: int, name: Address, hosts: Sequence[str]) -> list[Output]:
        """Follow all hosts that a name stands for, where they are several or have names; else it is dialled by name."""
        if not hosts or (len(hosts) == 1 and name not in self._resolved and is_numeric(hosts[0])):
            return []
        found = frozenset(make_address(host, port_of(name)) for host in hosts)
        route = self._settings.route
        unnamed = [known for address, known in self._by_name.items() if route.name_of(address) != address]
        if self._resolved.get(name) == found and not unnamed:
            return []
        outputs: list[Output] = [messages.NameResolved(now_us, name, tuple(sorted(found)))]
        for known in unnamed:  # listed or met before its name was known
            outputs += known.give_up(now_us)
            outputs.append(self._forget(now_us, known))
        by_name = self._by_endpoint.get(self._settings.endpoint_of(name))
        self._resolved[name] = found
        if by_name is not None:  # which of them answers by that name is left to chance
            outputs += by_name.give_up(now_us)
            self._forget(now_us, by_name)
            if by_name.address != name:
                outputs += self._follow(now_us, by_name.address, pinned=True)
        for address in sorted(found):
            self._host_names[self._settings.endpoint_of(address)] = host_of(name)
            outputs += self._follow(now_us, address, pinned=False)
        return outputs

    @property
    def deadline_us(self) -> int:
        return min((follower.deadline_us for follower in self._by_endpoint.values()), default=NEVER_US)

    def tick(self, now_us: int) -> list[Output]:
        """Pass the time to all followers whose deadline has come."""
        late = [follower for follower in self._by_endpoint.values() if follower.deadline_us <= now_us]
        outputs = [output for follower in late for output in self._react(now_us, follower, follower.tick(now_us))]
        pace, route = self._settings.pace, self._settings.route
        for known in late:
            kept_us = pace.over_after_us if route.is_over(known.address) else pace.forgotten_after_us
            if self._is_over(known, now_us - kept_us):
                outputs.append(self._forget(now_us, known))
        return outputs

    def opened(self, now_us: int, connection: FollowedConnection) -> list[Output]:
        follower = self._by_endpoint.get(connection.endpoint)
        return [] if follower is None else self._react(now_us, follower, follower.opened(now_us, connection))

    def received(self, now_us: int, connection: FollowedConnection, data: bytes) -> list[Output]:
        """See `MemberFollower.received`. New addresses in what was reported are followed from now on."""
        follower = self._by_endpoint.get(connection.endpoint)
        return [] if follower is None else self._react(now_us, follower, follower.received(now_us, connection, data))

    def closed(
        self, now_us: int, connection: FollowedConnection, reason: str, ending: Ending = "closed"
    ) -> list[Output]:
        if (follower := self._by_endpoint.get(connection.endpoint)) is None:
            return []
        return self._react(now_us, follower, follower.closed(now_us, connection, reason, ending))

    def ask(self, now_us: int, address: Address, request: Question | Command, ticket: int) -> list[Output]:
        """Ask the member of that name. `RequestAnswered` always follows, at once with `None` if it is not connected."""
        if (follower := self._by_name.get(address)) is None:
            return [messages.RequestAnswered(now_us, address, ticket, None)]
        return self._react(now_us, follower, follower.ask(now_us, request, ticket))

    def _react(self, now_us: int, follower: MemberFollower, outputs: Iterable[Output]) -> list[Output]:
        """Apply a follower's outputs to the others: new addresses, another name, another master."""
        reacted: list[Output] = []
        for output in outputs:
            is_no_peer = isinstance(output, messages.ConnectionReport) and output.state in NO_PEER
            if is_no_peer and follower.endpoint in self._unmet:
                continue
            reacted.append(output)
            match output:
                case messages.Renamed(dialled=dialled):
                    reacted += self._rename(now_us, follower)
                    if dialled in self._aliases:
                        break  # another follower has that member and gets these messages
                case messages.ConnectionReport(state="connected"):
                    self._unmet.discard(follower.endpoint)
                case messages.ConnectionReport(state="gone" | "merging" | "refused"):
                    reacted += follower.listen_to_migrations(now_us, False)
                case messages.Heard(message=MembersView() as view):
                    reacted += self._add_view(now_us, follower, view)
                case messages.Heard(message=MemberConfig(xml)):
                    reacted += self._add_join_list(now_us, follower, xml)
        return reacted

    def _is_over(self, follower: MemberFollower, before_us: int) -> bool:
        """Return whether no member is reached there since before then, and no list has its address."""
        if follower.state in (None, "connected") or follower.unreached_since_us > before_us:
            return False
        name = follower.address
        found = (*self._settings.addresses, *chain(*self._resolved.values()))
        if follower.endpoint in found or self._by_name.get(name) is not follower:
            return False
        reached = [known for known, one in self._by_name.items() if one.state == "connected"]
        return not any(name in self._views.get(known, ()) or name in self._named.get(known, ()) for known in reached)

    def _forget(self, now_us: int, follower: MemberFollower) -> Output:
        name = follower.address
        del self._by_name[name], self._by_endpoint[follower.endpoint]
        self._host_names.pop(follower.endpoint, None)
        for endpoints in (self._unmet, self._aliases):
            endpoints.discard(follower.endpoint)
        for lists in (self._named, self._views):
            lists.pop(name, None)
        follower.give_up(now_us)
        return messages.Forgotten(now_us, name)

    def _make_room(self, now_us: int) -> list[Output]:
        """Forget the follower that is off all lists and was not reached for the longest time."""
        over = [known for known in self._by_name.values() if self._is_over(known, now_us)]
        return [self._forget(now_us, min(over, key=lambda known: known.unreached_since_us))] if over else []

    def _add_view(self, now_us: int, follower: MemberFollower, view: MembersView) -> list[Output]:
        outputs: list[Output] = []
        self._views[follower.address] = frozenset(member.address for member in view.members)
        for member in view.members:
            outputs += [*self._follow(now_us, member.address, pinned=True), *self._listed(now_us, member.address)]
            if member.address in self._by_name:
                outputs += self._by_name[member.address].listed(now_us, member.uuid)
        leads = view.master is not None and view.master.uuid == follower.member_uuid
        return [*outputs, *follower.listen_to_migrations(now_us, leads)]

    def _add_join_list(self, now_us: int, follower: MemberFollower, xml: str) -> list[Output]:
        configuration = read_configuration(xml)
        listed = configuration.join_list if configuration is not None and configuration.uses_join_list else ()
        outputs: list[Output] = []
        found = [address for entry in listed for address in addresses_of(entry) if address not in self._resolved]
        services = configuration.services if configuration is not None else ()
        self._named[follower.address] = frozenset((*found, *services))
        for address in found:
            is_known = address in self._by_name
            outputs += self._follow(now_us, address, pinned=False)
            is_named = configuration is not None and address in configuration.named
            if not is_known and not is_named and address in self._by_name:
                self._unmet.add(self._by_name[address].endpoint)
        return outputs

    def _listed(self, now_us: int, address: Address) -> list[Output]:
        """Report the state of a member that only join lists named until now."""
        follower = self._by_name.get(address)
        if follower is None or follower.endpoint not in self._unmet or follower.state is None:
            return []
        self._unmet.discard(follower.endpoint)
        return [messages.ConnectionReport(now_us, address, follower.state, follower.reason, follower.since_us)]

    def _follow(self, now_us: int, name: Address, *, pinned: bool) -> list[Output]:
        """Follow an address from now on, unless it is followed already."""
        endpoint = self._settings.endpoint_of(name)
        if name in self._by_name or endpoint in self._by_endpoint or name in self._aliases or name in self._refused:
            return []
        most = self._settings.most_followed
        room = self._make_room(now_us) if len(self._by_name) >= most else []
        if len(self._by_name) >= most:
            if len(self._refused) < MAX_REFUSED:
                self._refused.add(name)
                return [messages.NotFollowed(now_us, name, most)]
            return []
        pinned |= self._settings.is_mapped(name)
        follower = MemberFollower(
            name, endpoint, self._settings, self._client_uuid, self._random, now_us, pinned=pinned
        )
        self._by_name[name] = self._by_endpoint[endpoint] = follower
        return room

    def _rename(self, now_us: int, follower: MemberFollower) -> list[Output]:
        """Rename a follower whose member names itself otherwise. Of two followers of one member the connected one stays."""
        before = [name for name, known in self._by_name.items() if known is follower]
        for name in before:
            del self._by_name[name]
        outputs: list[Output] = []
        other = self._by_name.get(follower.address)
        if other is not None and other.state == "connected":
            self._aliases.add(follower.endpoint)
            del self._by_endpoint[follower.endpoint]
            outputs += follower.give_up(now_us)
        else:
            if other is not None:
                del self._by_endpoint[other.endpoint]
                outputs += other.give_up(now_us)
            self._by_name[follower.address] = follower
        for name in before:
            if name != follower.endpoint:  # the member met here before may be at its own address
                outputs += self._follow(now_us, name, pinned=True)
        return outputs


def addresses_of(entry: str) -> list[Address]:
    """Return the addresses of a join list's entry: itself, or all in an IPv4 range such as ``10.0.0.1-4:5701``."""
    if (found := RANGE.fullmatch(entry)) is None:
        return [Address(entry)] if is_address(entry) else []
    numbers = range(int(found["first"]), int(found["last"]) + 1)[:MOST_IN_A_RANGE]
    texts = [f"{found['network']}.{number}:{found['port'] or DEFAULT_PORT}" for number in numbers]
    return [Address(text) for text in texts if is_address(text)]


def is_numeric(host: str) -> bool:
    """Return whether a host is written as an address, and not as a name."""
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def is_address(text: str) -> bool:
    """Return whether this is the canonical text of an address."""
    try:
        return "*" not in text and parse_address(text) == text
    except BadAddress:
        return False
