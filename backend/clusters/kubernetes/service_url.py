"""The URL of a Kubernetes service whose pods are members: ``k8s://NAMESPACE/SERVICE[:PORT]``."""

from __future__ import annotations

import re
from typing import NamedTuple

from quarterdeck.backend.core.address import DEFAULT_PORT, Address, BadAddress, make_address, parse_port

PODS = "k8s://"
"""The beginning of a service's URL."""
FORM = "write k8s://NAMESPACE/SERVICE[:PORT]"
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class BadService(ValueError):
    """A text that names no service, or a service that does not exist."""


class Service(NamedTuple):
    """A service, and the port of its pods at which members listen."""

    namespace: str
    name: str
    port: int = DEFAULT_PORT

    @property
    def address(self) -> Address:
        """Return where members are looked for: the name of the service as DNS has it, as far as it is needed here."""
        return make_address(f"{self.name}.{self.namespace}", self.port)

    @property
    def url(self) -> str:
        return f"{PODS}{self.namespace}/{self.name}:{self.port}"


def service_of(url: str) -> Service:
    """Read ``k8s://NAMESPACE/SERVICE[:PORT]``. Raises `BadService`."""
    namespace, _, rest = url.removeprefix(PODS).strip("/").partition("/")
    name, colon, port = rest.partition(":")
    if wrong := next((part for part in (namespace, name) if NAME.fullmatch(part) is None), None):
        raise BadService(f"{url}: {wrong!r} is no name of Kubernetes; {FORM}")
    if not name or not namespace:
        raise BadService(f"{url} does not name a namespace and a service; {FORM}")
    try:
        return Service(namespace, name, parse_port(port, url) if colon else DEFAULT_PORT)
    except BadAddress as problem:
        raise BadService(f"{problem}; {FORM}") from problem
