"""An API of Kubernetes for the real `kubectl`: one namespace, one service and its pods. It grants what a Role says."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.clusters.kubernetes.spdy import SpdyServer

NAMESPACE, SERVICE = "orders", "hazelcast"
SLICES = "discovery.k8s.io"
KUBECONFIG = """{{apiVersion: v1, kind: Config, current-context: try, clusters: [{{name: try, cluster: {{server: "{url}"}}}}],
users: [{{name: try, user: {{}}}}], contexts: [{{name: try, context: {{cluster: try, user: try}}}}]}}"""
RESOURCES = {
    "/api/v1": [
        ("services", "Service"),
        ("pods", "Pod"),
        ("pods/log", "Pod"),
        ("pods/portforward", "PodPortForwardOptions"),
    ],
    f"/apis/{SLICES}/v1": [("endpointslices", "EndpointSlice")],
}


@dataclass
class RunningPod:
    """A pod: where its processes listen, and what they have logged, with the time at which each line was read."""

    name: str
    uid: str
    host: str
    log: Path
    lines: list[tuple[str, str]] = field(default_factory=list)
    ended: bool = False

    def read_log(self) -> None:
        """Read what was written since."""
        text = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        for line in text[len(self.lines) :]:
            self.lines.append((datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), line))


class ApiServer:
    """Serves on a free port. `connect` makes a socket to a host in the network of the pods."""

    def __init__(self, role: Path, connect: Callable[[str, int], socket.socket]) -> None:
        self.rights = {
            (group, resource, verb)
            for rule in yaml.safe_load(role.read_text())["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        self.used: set[tuple[str, str, str]] = set()
        """The rights that were needed; also those that were refused."""
        self.pods: dict[str, RunningPod] = {}
        self.connect = connect
        self.changed = threading.Condition()
        self.version = 1
        self.ended = False
        api = self

        class Handler(_Handler):
            server_api = api

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def kubeconfig(self) -> str:
        """Return a configuration of `kubectl` for it."""
        return KUBECONFIG.format(url=f"http://127.0.0.1:{self._server.server_address[1]}")

    def run(self, pod: RunningPod) -> None:
        """Have this pod instead of another one of its name."""
        self.delete(pod.name)
        with self.changed:
            self.pods[pod.name] = pod
            self.version += 1
            self.changed.notify_all()

    def delete(self, name: str) -> None:
        """Have no pod of this name."""
        with self.changed:
            if (before := self.pods.pop(name, None)) is not None:
                before.ended = True
                self.version += 1
                self.changed.notify_all()

    def close(self) -> None:
        """End."""
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    def slice(self) -> dict[str, Any]:
        """Return the EndpointSlice of the service."""
        endpoints = [
            {
                "addresses": [pod.host],
                "conditions": {"ready": True},
                "targetRef": {"kind": "Pod", "name": name, "uid": pod.uid},
            }
            for name, pod in self.pods.items()
        ]
        metadata = {"name": f"{SERVICE}-x", "namespace": NAMESPACE, "resourceVersion": str(self.version)}
        labels = {"kubernetes.io/service-name": SERVICE}
        return {
            "apiVersion": f"{SLICES}/v1", "kind": "EndpointSlice", "metadata": metadata | {"labels": labels},
            "addressType": "IPv4", "endpoints": endpoints, "ports": [],
        }  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_api: ApiServer

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        where = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(where.query).items()}
        match where.path.strip("/").split("/"):
            case ["api"]:
                self._answer({"kind": "APIVersions", "versions": ["v1"]})
            case ["apis"]:
                version = {"groupVersion": f"{SLICES}/v1", "version": "v1"}
                group = {"name": SLICES, "versions": [version], "preferredVersion": version}
                self._answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]})
            case ["api", "v1"] | ["apis", _, "v1"]:
                self._answer(self._resources(where.path))
            case ["apis", group, "v1", "namespaces", namespace, resource]:
                if self._may(group, resource, "watch" if query.get("watch") else "list"):
                    self._slices(namespace, query)
            case ["api", "v1", "namespaces", _]:
                self._may("", "namespaces", "get")  # which of the two is not there; that is not needed
            case ["api", "v1", "namespaces", _, "services" as resource, name]:
                if self._may("", resource, "get"):
                    self._missing(resource, name)
            case ["api", "v1", "namespaces", _, "pods", name, "log"]:
                if self._may("", "pods/log", "get") and (pod := self._pod(name)) is not None:
                    self._log(pod, query)
            case ["api", "v1", "namespaces", _, "pods", name, "portforward"]:
                self._may("", "pods/portforward", "get")  # over a WebSocket, as later versions ask for first
            case ["api", "v1", "namespaces", _, "pods", name]:
                if self._may("", "pods", "get") and (pod := self._pod(name)) is not None:
                    self._answer(self._as_object(pod))
            case _:
                self._missing("paths", where.path)

    def do_POST(self) -> None:
        parts = urlsplit(self.path).path.strip("/").split("/")
        if parts[-1] == "portforward" and self._may("", "pods/portforward", "create"):
            pod = self._pod(parts[-2])
            if pod is not None:
                self._forward(pod)

    def _may(self, group: str, resource: str, verb: str) -> bool:
        api = self.server_api
        if granted := (group, resource, verb) in api.rights:
            api.used.add((group, resource, verb))
        else:
            self._fail(403, "Forbidden", f'{resource} is forbidden: User "try" cannot {verb} resource "{resource}"')
        return granted

    def _pod(self, name: str) -> RunningPod | None:
        pod = self.server_api.pods.get(name)
        if pod is None:
            self._missing("pods", name)
        return pod

    def _missing(self, resource: str, name: str) -> None:
        self._fail(404, "NotFound", f'{resource} "{name}" not found')

    def _fail(self, code: int, reason: str, message: str) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
        self._answer(status | {"code": code, "metadata": {}}, code)

    def _answer(self, found: dict[str, Any], code: int = 200) -> None:
        body = json.dumps(found).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _resources(self, path: str) -> dict[str, Any]:
        known = [
            {
                "name": name,
                "singularName": "",
                "namespaced": True,
                "kind": kind,
                "verbs": ["get", "list", "watch", "create"],
            }
            for name, kind in RESOURCES[path.rstrip("/")]
        ]
        version = path.strip("/").removeprefix("apis/").removeprefix("api/")
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": known}

    def _as_object(self, pod: RunningPod) -> dict[str, Any]:
        return {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod.name, "namespace": NAMESPACE, "uid": pod.uid},
            "spec": {"containers": [{"name": "hazelcast", "image": "hazelcast"}]}, "status": {"phase": "Running"},
        }  # fmt: skip

    def _slices(self, namespace: str, query: dict[str, str]) -> None:
        api = self.server_api
        fits = namespace == NAMESPACE and query.get("labelSelector") == f"kubernetes.io/service-name={SERVICE}"
        if not query.get("watch"):
            metadata = {"resourceVersion": str(api.version)}
            items = [api.slice()] if fits else []
            self._answer(
                {"apiVersion": f"{SLICES}/v1", "kind": "EndpointSliceList", "metadata": metadata, "items": items}
            )
            return
        self._chunked(self._changes(int(query.get("resourceVersion") or 0)))

    def _changes(self, version: int) -> Iterator[bytes]:
        api = self.server_api
        while True:
            with api.changed:
                api.changed.wait_for(lambda before=version: api.ended or api.version > before)  # type: ignore[misc]
                version, found = api.version, api.slice()
            if api.ended:
                return
            yield json.dumps({"type": "MODIFIED", "object": found}).encode() + b"\n"

    def _log(self, pod: RunningPod, query: dict[str, str]) -> None:
        pod.read_log()
        since, tail = query.get("sinceTime", "")[:19], int(query.get("tailLines", 1_000_000))
        first = max(0, len(pod.lines) - tail)
        self._chunked(
            self._lines(pod, next((n for n, (at, _) in enumerate(pod.lines) if n >= first and at[:19] >= since), 0))
        )

    def _lines(self, pod: RunningPod, count: int) -> Iterator[bytes]:
        while not (pod.ended or self.server_api.ended):
            pod.read_log()
            new, count = pod.lines[count:], len(pod.lines)
            yield "".join(f"{at} {line}\n" for at, line in new).encode()
            with self.server_api.changed:
                self.server_api.changed.wait(0.1)

    def _chunked(self, parts: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with suppress(OSError):
            for part in parts:
                if part:
                    self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                    self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

    def _forward(self, pod: RunningPod) -> None:
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", "SPDY/3.1")
        self.send_header("X-Stream-Protocol-Version", "portforward.k8s.io")
        self.end_headers()
        self.close_connection = True
        errors: dict[str, int] = {}
        ends: list[socket.socket] = [self.connection]

        def opened(stream: int, headers: dict[str, str]) -> None:
            if headers["streamtype"] == "error":
                errors[headers["requestid"]] = stream
                return
            try:
                far = self.server_api.connect(pod.host, int(headers["port"]))
            except OSError as problem:
                said = f"error forwarding port {headers['port']} to pod {pod.uid}, uid : {problem.strerror}".lower()
                server.send(errors[headers["requestid"]], said.encode(), last=True)
                server.send(stream, b"", last=True)
                return
            ends.append(far)
            server.received[stream] = lambda data: far.sendall(data) if data else far.shutdown(socket.SHUT_WR)
            threading.Thread(target=pump, args=(stream, far, errors[headers["requestid"]]), daemon=True).start()

        def pump(stream: int, far: socket.socket, error: int) -> None:
            with suppress(OSError):
                while data := far.recv(1 << 16):
                    server.send(stream, data)
            with suppress(OSError):
                server.send(stream, b"", last=True)
                server.send(error, b"", last=True)

        def end_with_pod() -> None:
            with self.server_api.changed:
                self.server_api.changed.wait_for(lambda: pod.ended or self.server_api.ended)
            for end in ends:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

        server = SpdyServer(self.connection, opened)
        threading.Thread(target=end_with_pod, daemon=True).start()
        with suppress(OSError):
            server.serve()
