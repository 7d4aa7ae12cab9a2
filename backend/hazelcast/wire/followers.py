"""Follows a whole cluster, or its halves: which addresses there are, and which member is listened to for migrations.

Addresses are those of the settings, those on the lists that members tell, and those in the join lists of their
configuration. None is forgotten while this lives: the other half of a split is on nobody's list. Every member's listener hears
the migrations of its whole lineage, so only the master of each lineage has one.

It is as free of sockets and clocks as `MemberFollower`, and is driven in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from random import Random
from uuid import UUID

from quarterdeck.backend.core.address import Address, BadAddress, parse_address, port_of
from quarterdeck.backend.core.join_list import DEFAULT_PORT
from quarterdeck.backend.hazelcast.wire.follower import NEVER_US, Ending, FollowedConnection, MemberFollower, Output
from quarterdeck.backend.hazelcast.wire.member_configuration import read_configuration
from quarterdeck.backend.hazelcast.wire.messages import MemberConfig, MembersView
from quarterdeck.backend.hazelcast.wire.observations import (
    ConnectionState,
    ConnectionTold,
    Heard,
    NotFollowed,
    Renamed,
    RequestAnswered,
)
from quarterdeck.backend.hazelcast.wire.requests import Command, Question
from quarterdeck.backend.hazelcast.wire.settings import WatchSettings

NOBODY: tuple[ConnectionState, ...] = ("gone",)
NOTHING: tuple[ConnectionState, ...] = ("gone", "silent")
"""What is not told of an address that only a join list names: that nobody listens there, or that nothing comes from there."""

RANGE = re.compile(r"(?P<network>[\d.]+)\.(?P<first>\d{1,3})-(?P<last>\d{1,3})(:(?P<port>\d+))?")
MOST_IN_A_RANGE = 64
"""How many addresses of one range are dialled."""

MOST_TURNED_DOWN = 1_000
"""Of so many addresses that are not followed it is remembered that this has been said."""


class Followers:
    """One follower for each address that was ever found, up to a limit."""

    def __init__(self, settings: WatchSettings, random: Random, now_us: int) -> None:
        self._settings = settings
        self._random = random
        self._client_uuid = str(UUID(int=random.getrandbits(128), version=4))
        self._by_name: dict[Address, MemberFollower] = {}
        self._by_endpoint: dict[Address, MemberFollower] = {}
        self._aliases: set[Address] = set()
        """Addresses that lead to a member who is followed at another one."""
        self._unmet: dict[Address, tuple[ConnectionState, ...]] = {}
        """Where a member may be looked for though nobody has ever been met there, and what of it is not worth telling."""
        self._turned_down: set[Address] = set()
        inside = {outer: inner for inner, outer in settings.address_map.items()}
        for endpoint in settings.addresses:
            self._follow(now_us, inside.get(endpoint, endpoint), pinned=endpoint in inside)

    @property
    def by_address(self) -> Mapping[Address, MemberFollower]:
        """Who is followed, by the name that the member gives itself."""
        return self._by_name

    @property
    def deadline_us(self) -> int:
        """When `tick` has to be called, at the latest."""
        return min((follower.deadline_us for follower in self._by_endpoint.values()), default=NEVER_US)

    def tick(self, now_us: int) -> list[Output]:
        """Hand the time to all followers whose deadline has come."""
        late = [follower for follower in self._by_endpoint.values() if follower.deadline_us <= now_us]
        return [output for follower in late for output in self._react(now_us, follower, follower.tick(now_us))]

    def opened(self, now_us: int, connection: FollowedConnection) -> list[Output]:
        """See `Follower.opened`."""
        follower = self._by_endpoint.get(connection.endpoint)
        return [] if follower is None else self._react(now_us, follower, follower.opened(now_us, connection))

    def received(self, now_us: int, connection: FollowedConnection, data: bytes) -> list[Output]:
        """See `Follower.received`. New addresses in what was told are followed from now on."""
        follower = self._by_endpoint.get(connection.endpoint)
        return [] if follower is None else self._react(now_us, follower, follower.received(now_us, connection, data))

    def closed(
        self, now_us: int, connection: FollowedConnection, reason: str, ending: Ending = "closed"
    ) -> list[Output]:
        """See `Follower.closed`."""
        follower = self._by_endpoint.get(connection.endpoint)
        return (
            []
            if follower is None
            else self._react(now_us, follower, follower.closed(now_us, connection, reason, ending))
        )

    def ask(self, now_us: int, address: Address, request: Question | Command, ticket: int) -> list[Output]:
        """Ask the member of that name. `RequestAnswered` follows always, at once with `None` when it is not connected."""
        follower = self._by_name.get(address)
        if follower is None:
            return [RequestAnswered(now_us, address, ticket, None)]
        return self._react(now_us, follower, follower.ask(now_us, request, ticket))

    def _react(self, now_us: int, follower: MemberFollower, outputs: Iterable[Output]) -> list[Output]:
        """What a follower's outputs mean for the others: new addresses, another name, another master."""
        reacted: list[Output] = []
        for output in outputs:
            if isinstance(output, ConnectionTold) and output.state in self._unmet.get(follower.endpoint, ()):
                continue
            reacted.append(output)
            match output:
                case Renamed(dialled=dialled):
                    reacted += self._rename(now_us, follower)
                    if dialled in self._aliases:
                        break  # somebody else follows that member: what it said first is heard there
                case ConnectionTold(state="connected"):
                    self._unmet.pop(follower.endpoint, None)
                case ConnectionTold(state="gone" | "merging" | "refused"):
                    reacted += follower.listen_to_migrations(now_us, False)
                case Heard(message=MembersView() as view):
                    reacted += self._take_view(now_us, follower, view)
                case Heard(message=MemberConfig(xml)):
                    reacted += self._take_join_list(now_us, follower, xml)
                case _:
                    pass
        return reacted

    def _take_view(self, now_us: int, follower: MemberFollower, view: MembersView) -> list[Output]:
        outputs: list[Output] = []
        for member in view.members:
            outputs += [*self._follow(now_us, member.address, pinned=True), *self._is_member(now_us, member.address)]
        leads = view.master is not None and view.master.uuid == follower.member_uuid
        return [*outputs, *follower.listen_to_migrations(now_us, leads)]

    def _take_join_list(self, now_us: int, follower: MemberFollower, xml: str) -> list[Output]:
        told = read_configuration(xml)
        listed = told.join_list if told is not None and told.uses_join_list else ()
        outputs: list[Output] = []
        for address in [address for entry in listed for address in addresses_of(entry)]:
            is_known = address in self._by_name
            outputs += self._follow(now_us, address, pinned=False)
            if not is_known and address in self._by_name:
                likely = port_of(address) == port_of(follower.address)  # an entry without a port stands for several
                self._unmet[self._by_name[address].endpoint] = NOBODY if likely else NOTHING
        return outputs

    def _is_member(self, now_us: int, address: Address) -> list[Output]:
        """An address that only join lists named is on a list now: how it stands there is worth telling."""
        follower = self._by_name.get(address)
        if follower is None or self._unmet.pop(follower.endpoint, None) is None or follower.state is None:
            return []
        return [ConnectionTold(now_us, address, follower.state, follower.reason, follower.since_us)]

    def _follow(self, now_us: int, name: Address, *, pinned: bool) -> list[Output]:
        """Follow an address from now on, unless it is already."""
        endpoint = self._settings.address_map.get(name, name)
        if name in self._by_name or endpoint in self._by_endpoint or name in self._aliases or name in self._turned_down:
            return []
        most = self._settings.most_followed
        if len(self._by_name) >= most:
            if len(self._turned_down) < MOST_TURNED_DOWN:
                self._turned_down.add(name)
                return [NotFollowed(now_us, name, most)]
            return []
        mapped = name in self._settings.address_map
        follower = MemberFollower(
            name, endpoint, self._settings, self._client_uuid, self._random, now_us, pinned=pinned or mapped
        )
        self._by_name[name] = self._by_endpoint[endpoint] = follower
        return []

    def _rename(self, now_us: int, follower: MemberFollower) -> list[Output]:
        """The member that a follower has met names itself otherwise. Of two followers of one member the connected one stays."""
        before = [name for name, one in self._by_name.items() if one is follower]
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
            if name != follower.endpoint:  # whom it met here before may live at its own address
                outputs += self._follow(now_us, name, pinned=True)
        return outputs


def addresses_of(entry: str) -> list[Address]:
    """The addresses that an entry of a join list stands for: itself, or all in a range of IPv4 such as ``10.0.0.1-4:5701``."""
    found = RANGE.fullmatch(entry)
    if found is None:
        return [Address(entry)] if is_address(entry) else []
    numbers = range(int(found["first"]), int(found["last"]) + 1)[:MOST_IN_A_RANGE]
    texts = [f"{found['network']}.{number}:{found['port'] or DEFAULT_PORT}" for number in numbers]
    return [Address(text) for text in texts if is_address(text)]


def is_address(text: str) -> bool:
    """Whether this is the canonical text of an address."""
    try:
        return "*" not in text and parse_address(text) == text
    except BadAddress:
        return False
