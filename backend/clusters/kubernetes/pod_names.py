"""Members that run as pods, called by the names of their pods: an address stands here as the name of the pod that has it now.

Members know one another by the addresses of their pods. A pod that comes back has another one, and the same name if it is of a
StatefulSet. Where a headless service is looked up by plain DNS, that has the names, too: of an address it gives back
``hazelcast-0.hazelcast.orders.svc.cluster.local``.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import msgspec

from quarterdeck.backend.core.address import Address, host_of, make_address, port_of
from quarterdeck.backend.hazelcast.wire.messages import Authenticated, MemberConfig, MembersView, Message, Metrics
from quarterdeck.backend.hazelcast.wire.route import NotReached, Route

NAMED: tuple[type, ...] = (Authenticated, MembersView, MemberConfig, Metrics)
"""The messages that hold addresses."""
MOST_LEFT = 1_000
LOOKUP_SECONDS = 3.0
REST_SECONDS = 300.0
"""So long no name is looked up by an address after a lookup without an answer."""


class NamedRoute(Route):
    """A way on which members are called by their pods."""

    def __init__(self) -> None:
        self._left: dict[str, str] = {}
        """By an address that a pod has had, the name of the pod."""
        self._names = PodNames({}, {})

    def _name(self, hosts: Mapping[str, str], pods: Mapping[tuple[str, str, str], str]) -> None:
        """Call pods by these names from now on, see `PodNames`."""
        for host in hosts:
            self._left.pop(host, None)
        while len(self._left) > MOST_LEFT:
            del self._left[next(iter(self._left))]
        self._names = PodNames({form: name for host, name in hosts.items() for form in _forms_of(host)}, pods)

    def _why_left(self, host: str) -> NotReached | None:
        if host not in self._left:
            return None
        return NotReached(f"the pod {self._left[host]}, which was at this address, has another one now", "absent")

    def is_over(self, name: Address) -> bool:
        return host_of(name) in self._left

    def name_of(self, address: Address) -> Address:
        return Address(self._names.in_address(address))

    def named(self, message: Message) -> Message:
        return _renamed(message, self._names.in_address) if isinstance(message, NAMED) else message

    def named_in_line(self, line: str) -> str:
        return self._names.in_line(line)


class DnsRoute(NamedRoute):
    """The way of a machine in the members' own network, where DNS has names for the pods of headless services."""

    def __init__(self) -> None:
        super().__init__()
        self._hosts: dict[str, str] = {}
        """By the name of a pod, its address."""
        self._called: dict[str, str] = {}
        """By the whole name that DNS gives back, the one under the name of the service by which the pod was found first."""
        self._rests_until = 0.0

    async def hosts_of(self, name: Address) -> tuple[str, ...]:
        """Return the names of a service's pods, or the addresses of another name."""
        hosts = await super().hosts_of(name)
        pods = await asyncio.gather(*(self._pod_at(host, name) for host in hosts))
        before = dict(self._hosts)
        for host, pod in zip(hosts, pods, strict=True):
            if pod and before.get(pod) != host:
                if pod in before:
                    self._left[before[pod]] = pod
                self._hosts = {known: its for known, its in self._hosts.items() if its != host} | {pod: host}
        if self._hosts != before:
            self._name({host: pod for pod, host in self._hosts.items()}, {})
        return tuple(pod or host for host, pod in zip(hosts, pods, strict=True))

    async def reach(self, endpoint: Address) -> tuple[str, int]:
        host = host_of(endpoint)
        if (moved := self._why_left(host)) is not None:
            raise moved
        return self._hosts.get(host, host), port_of(endpoint)

    def address_of(self, name: Address) -> Address:
        return make_address(self._hosts.get(host_of(name), host_of(name)), port_of(name))

    async def _pod_at(self, host: str, name: Address) -> str:
        """Return the pod of the service, or the pod, that `name` stands for; empty for other hosts."""
        back = await self._name_at(host)
        pod, _, domain = back.partition(".")
        if pod == host.replace(".", "-").replace(":", "-"):
            return ""  # of a Deployment: such a name ends with its address
        wanted = host_of(name)
        if f"{domain}.".startswith(f"{wanted}."):
            return self._called.setdefault(back, f"{pod}.{wanted}")
        _, _, service = wanted.partition(".")
        is_pod = service and f"{back}.".startswith(f"{wanted}.")
        if is_pod and host in await super().hosts_of(make_address(service, port_of(name))):
            return self._called.setdefault(back, wanted)
        return ""

    async def _name_at(self, host: str) -> str:
        """Return the name that DNS has for an address; empty where it has none, or does not say so soon."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._rests_until:
            return next((back for back, pod in self._called.items() if self._hosts.get(pod) == host), "")
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                return (await loop.getnameinfo((host, 0), socket.NI_NAMEREQD))[0].rstrip(".")
        except TimeoutError:
            self._rests_until = loop.time() + REST_SECONDS
        except OSError:
            pass
        return ""


class PodNames:
    """The names of pods in the place of their addresses, in texts of members."""

    def __init__(self, hosts: Mapping[str, str], pods: Mapping[tuple[str, str, str], str]) -> None:
        """`hosts` has names by address; `pods` by the name of a pod, of its service and of its namespace, as DNS joins them."""
        self._hosts = hosts
        domain = r"(?:\.{}(?:\.svc(?:\.[-\w.]*\w)?)?)?"
        dns = (
            rf"(?P<p{place}>{re.escape(pod)}\.{re.escape(service)}{domain.format(re.escape(namespace))})"
            for place, (pod, service, namespace) in enumerate(pods)
        )
        self._pods = tuple(pods.values())
        form = "|".join((*map(re.escape, hosts), *dns)) or "(?!)"
        self._in_address = re.compile(rf"(?<![-\w.:])\[?(?:{form})\]?(?![-\w.])")
        self._in_line = re.compile(rf"(?<![-\w.:])(?:{form})(?![-\w.])")

    def in_address(self, text: str) -> str:
        """Return a text of the wire, where the address of a name has no brackets."""
        return self._in_address.sub(self._name_of, text)

    def in_line(self, text: str) -> str:
        """Return the line of a log, where every address has brackets."""
        return self._in_line.sub(self._name_of, text)

    def _name_of(self, found: re.Match[str]) -> str:
        if found.lastgroup is not None:
            return self._pods[int(found.lastgroup[1:])]
        return self._hosts[found[0].strip("[]")]


def _forms_of(host: str) -> Iterator[str]:
    """Yield an address as Kubernetes writes it and as Java does."""
    yield host
    with suppress(ValueError):
        if (address := ip_address(host)).version == 6:
            yield ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))


def _renamed(value: Any, rename: Callable[[str], str]) -> Any:
    match value:
        case str():
            return rename(value)
        case msgspec.Struct():
            return type(value)(*(_renamed(getattr(value, name), rename) for name in value.__struct_fields__))
        case tuple():
            return tuple(_renamed(item, rename) for item in value)
        case _:
            return value
