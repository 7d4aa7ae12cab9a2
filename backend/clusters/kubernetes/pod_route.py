"""The way to the pods of Kubernetes services: found by EndpointSlices, reached by a port-forward each, called by their names."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from quarterdeck.backend.clusters.kubernetes.kubectl import Kubectl, KubectlFailed, PodLog, RunningKubectl
from quarterdeck.backend.clusters.kubernetes.pod_names import MOST_LEFT, NamedRoute
from quarterdeck.backend.clusters.kubernetes.service_url import BadService, Service
from quarterdeck.backend.core.address import Address, host_of, make_address, port_of
from quarterdeck.backend.hazelcast.wire.route import Ending, NotReached

LOOK_AGAIN_SECONDS = 5.0
"""The wait when a watch has ended. Where we may list and not watch, pods are looked for so often."""
SETTLE_SECONDS = 0.1
"""Changes so close together are looked at together."""
EXPLANATION_SECONDS = 0.3
"""So long after the end of a connection `kubectl` is expected to say why."""
FORWARDING = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) ->")
NO_PROCESS = re.compile(r"error forwarding port .*connection refused", re.IGNORECASE)
"""Answers of the pod's host. An API that refuses connections says nothing about the pod."""


class Pod(NamedTuple):
    """A pod behind a service, ready or not. A pod that was made anew under its name has another uid."""

    name: str
    uid: str
    host: str


class _Forward(NamedTuple):
    process: RunningKubectl
    port: int


class PodRoute(NamedRoute):
    """The way to the pods of some services, with one context of `kubectl`."""

    is_indirect = True

    def __init__(self, services: Sequence[Service], *, logs: bool) -> None:
        """Look for the services. With `logs` the logs of their pods are followed.

        Raises `BadService` when there is no `kubectl` here or no such service, `KubectlFailed` when we may not look for it.
        An API that does not answer is waited for.
        """
        super().__init__()
        self.follows_logs = logs
        self.urls = tuple(service.url for service in services)
        self.logs: dict[str, PodLog] = {}
        self._kubectl = Kubectl()
        self._services = {service.address: service for service in services}
        self._pods: dict[Service, tuple[Pod, ...]] = {}
        self._problems: dict[Service, str] = {}
        self._known: dict[str, tuple[Service, Pod]] = {}
        """By the name of a host here, the pod that has it; also one that is not behind its service any more."""
        self._over: dict[str, None] = {}
        """Names of pods that do not exist."""
        self._forwards: dict[str, asyncio.Task[_Forward]] = {}
        self._following: dict[str, asyncio.Task[None]] = {}
        self._changed, self._looked = asyncio.Event(), asyncio.Event()
        for service in services:
            self._check(service)

    # Finding pods

    def _check(self, service: Service) -> None:
        try:
            if not any(pods_in(self._kubectl.call(*_slices_of(service), "--output=json"))):
                self._kubectl.call(f"--namespace={service.namespace}", "get", "service", service.name, "--output=name")
        except KubectlFailed as failed:
            if failed.not_found:
                raise BadService(f"{service.url}: {failed}") from failed
            if failed.denied:
                raise
            self._problems[service] = str(failed)

    async def run(self) -> None:
        wakes = [(service, asyncio.Event()) for service in self._services.values()]
        try:
            async with asyncio.TaskGroup() as group:  # which waits for all, so that no process is left half started
                for pair in wakes:
                    group.create_task(self._watch(*pair))
                    group.create_task(self._look(*pair))
        finally:
            tasks = (*self._following.values(), *self._forwards.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._kubectl.close()

    async def _watch(self, service: Service, wake: asyncio.Event) -> None:
        """Set `wake` whenever the pods of a service may be others."""
        while True:
            wake.set()
            with suppress(KubectlFailed):
                watch = await self._kubectl.start(*_slices_of(service), "--watch", "--output=name")
                try:
                    async for _ in watch.lines():
                        wake.set()
                finally:
                    await watch.end()
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    async def _look(self, service: Service, wake: asyncio.Event) -> None:
        while True:
            await wake.wait()
            wake.clear()
            try:
                found = tuple(pods_in(await self._kubectl.ask(*_slices_of(service), "--output=json")))
            except (KubectlFailed, ValueError) as failed:
                self._problems[service] = str(failed)
            else:
                self._problems.pop(service, None)
                if self._pods.get(service) != found:
                    self._pods[service] = found
                    self._know()
            if len(self._pods.keys() | self._problems.keys()) == len(self._services):
                self._looked.set()
            await asyncio.sleep(SETTLE_SECONDS)

    def _know(self) -> None:
        """Take in the present pods: name, address, and number among the pods of that name."""
        several = len({service.namespace for service in self._services.values()}) > 1
        present: dict[str, tuple[Service, Pod]] = {}
        for service, pods in self._pods.items():
            for pod in pods:
                present[f"{pod.name}.{service.namespace}" if several else pod.name] = service, pod
        for name, (service, pod) in present.items():
            before = self._known.get(name)
            if before is not None and before[1] != pod:
                self._left[before[1].host] = name
                self._end_forward(name)
            if self.follows_logs and (before is None or before[1].uid != pod.uid):
                self._follow_log(name, service, pod)
            self._known[name] = service, pod
            self._over.pop(name, None)
        for name in self._following.keys() - present.keys():
            self.logs[name].may_end = True
            if self._following[name].done():
                del self.logs[name], self._following[name]
        while len(self._over) > MOST_LEFT:
            del self._over[next(iter(self._over))]
        names = {(pod.name, service.name, service.namespace): name for name, (service, pod) in self._known.items()}
        self._name({pod.host: name for name, (_, pod) in self._known.items()}, names)
        self._changed.set()

    def _follow_log(self, name: str, service: Service, pod: Pod) -> None:
        if (running := self._following.pop(name, None)) is not None:
            running.cancel()
        self.logs[name] = PodLog(self._kubectl, service.namespace, pod.name)
        self._following[name] = asyncio.create_task(self.logs[name].follow())

    # What a watch asks of its route

    async def pause(self, seconds: float) -> None:
        """Return when the pods have changed, after this number of seconds at the latest."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()

    async def hosts_of(self, name: Address) -> tuple[str, ...]:
        """Return the names of a service's pods; other names are those of DNS, as far as it has them here."""
        if (service := self._services.get(name)) is not None:
            await self._looked.wait()
            here = self._pods.get(service, ())
            return tuple(sorted(known for known, (its, pod) in self._known.items() if its == service and pod in here))
        if host_of(name) in self._known or host_of(name) in self._over:
            return ()
        return tuple(self._names.in_address(host) for host in await super().hosts_of(name))

    async def reach(self, endpoint: Address) -> tuple[str, int]:
        """Return the near end of a port-forward to the pod. Raises `NotReached`."""
        host = host_of(endpoint)
        if (service := self._services.get(endpoint)) is not None:
            raise NotReached(self._problems.get(service) or f"{service.url} has no pods now", "unreachable")
        if (moved := self._why_left(host)) is not None:
            raise moved
        if host in self._over:
            raise NotReached(f"there is no pod {host} any more", "absent")
        if host not in self._known:
            raise NotReached(f"no pod of {', '.join(self.urls)} has this address", "unreachable")
        forward = self._forwards.get(host)
        if forward is None or _has_ended(forward):
            forward = self._forwards[host] = asyncio.create_task(self._forward(host, port_of(endpoint)))
            forward.add_done_callback(lambda done: done.cancelled() or done.exception())
        process, near_port = await asyncio.shield(forward)
        process.forget()  # what it said of earlier connections
        return "127.0.0.1", near_port

    async def why_ended(self, endpoint: Address) -> tuple[str, Ending] | None:
        """Return the words of `kubectl` about the end of a connection, if they come soon."""
        forward = self._forwards.get(host_of(endpoint))
        if forward is None or not forward.done() or forward.cancelled() or forward.exception() is not None:
            return None
        process = forward.result().process
        with suppress(TimeoutError):
            async with asyncio.timeout(EXPLANATION_SECONDS):
                await process.spoke.wait()
        said = process.said
        process.forget()
        if NO_PROCESS.search(said):
            return "no process listens there", "absent"
        return (f"kubectl: {KubectlFailed(said)}", "closed") if said else None

    def is_over(self, name: Address) -> bool:
        return host_of(name) in self._over or super().is_over(name)

    def address_of(self, name: Address) -> Address:
        known = self._known.get(host_of(name))
        return name if known is None else make_address(known[1].host, port_of(name))

    # Port-forwards

    async def _forward(self, name: str, port: int) -> _Forward:
        service, pod = self._known[name]
        where = (f"--namespace={service.namespace}", "port-forward", "--address=127.0.0.1")
        process = await self._kubectl.start(*where, f"pod/{pod.name}", f":{port}")
        try:
            async for line in process.lines():
                if (found := FORWARDING.search(line)) is not None:
                    process.read_on()
                    return _Forward(process, int(found[1]))
            failed = await process.failure()
        except asyncio.CancelledError:
            await process.end()
            raise
        if failed.not_found and self._known.get(name) == (service, pod):
            del self._known[name]
            self._over[name] = None
            raise NotReached(f"there is no pod {name} any more", "absent")
        raise NotReached(f"kubectl: {failed}", "refused" if failed.denied else "unreachable")

    def _end_forward(self, name: str) -> None:
        forward = self._forwards.pop(name, None)
        if forward is not None and not forward.cancel() and not _has_ended(forward):
            forward.result().process.stop()


def pods_in(text: str) -> Iterator[Pod]:
    """Yield the pods in a list of EndpointSlices, ready or not. Raises `ValueError` for what is none."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("kubectl has answered without a list")
    for endpoint in (endpoint for part in found.get("items") or () for endpoint in part.get("endpoints") or ()):
        target, addresses = endpoint.get("targetRef") or {}, endpoint.get("addresses")
        if target.get("kind") == "Pod" and addresses:
            yield Pod(target["name"], target.get("uid", ""), addresses[0])


def _slices_of(service: Service) -> tuple[str, ...]:
    chosen = f"--selector=kubernetes.io/service-name={service.name}"
    return f"--namespace={service.namespace}", "get", "endpointslices.discovery.k8s.io", chosen


def _has_ended(forward: asyncio.Task[_Forward]) -> bool:
    if not forward.done():
        return False
    return forward.cancelled() or forward.exception() is not None or forward.result().process.code is not None
