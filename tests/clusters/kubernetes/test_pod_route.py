"""Pods behind a service: found, reached and read through `kubectl`, and the same under their names when they come back."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer
from threading import Thread

import pytest

from quarterdeck.backend.clusters.kubernetes import kubectl, pod_route
from quarterdeck.backend.clusters.kubernetes.kubectl import KubectlFailed
from quarterdeck.backend.clusters.kubernetes.pod_names import PodNames
from quarterdeck.backend.clusters.kubernetes.pod_route import Pod, PodRoute, pods_in
from quarterdeck.backend.clusters.kubernetes.service_url import BadService, Service, service_of
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.events import ListInstalled, MemberStarted, SuspicionRaised
from quarterdeck.backend.core.witnessed.events import OwnersTold
from quarterdeck.backend.hazelcast.wire.messages import ViewMember
from quarterdeck.backend.hazelcast.wire.route import WatchSettings
from tests.clusters.hazelcast.fake_cluster import FakeCluster, Watching, fake_cluster, watching
from tests.clusters.hazelcast.test_log_following import listed, suspicion
from tests.clusters.kubernetes.fake_kubectl import FakePods
from tests.hazelcast.wire.fake_member import FakeMember, agree, uuid_of

SERVICE = Service("orders", "hazelcast")


@pytest.fixture
def pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePods:
    found = FakePods(tmp_path)
    monkeypatch.setenv("KUBECTL", str(found.program))
    monkeypatch.setattr(kubectl, "FIRST_LINE_SECONDS", 0.0)
    monkeypatch.setattr(kubectl, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(pod_route, "EXPLANATION_SECONDS", 0.05)
    return found


def host_at(number: int) -> str:
    return f"10.244.0.{number}"


def move(member: FakeMember, number: int) -> None:
    """Have a member name itself by the address of a pod."""
    member.address = Address(f"{host_at(number)}:5701")


@contextmanager
def members_in_pods(pods: FakePods, size: int, *, logs: bool = False) -> Iterator[tuple[FakeCluster, Watching]]:
    """Pods hz-0, hz-1, … at 10.244.0.0, 10.244.0.1, … with a fake member in each, watched through the service."""
    with fake_cluster(size) as members:
        for number, member in enumerate(members.members):
            move(member, number)
            pods.run(f"hz-{number}", host_at(number), f"uid-{number}", member.listens_at)
        members.do(lambda: agree(members.members))
        route = PodRoute([SERVICE], logs=logs)
        with watching(SERVICE.address, settings=WatchSettings((SERVICE.address,), route=route)) as seen:
            yield members, seen


def names(size: int) -> set[str]:
    return {f"hz-{number}:5701" for number in range(size)}


def test_pods_are_members_by_their_names(pods: FakePods) -> None:
    with members_in_pods(pods, 3) as (_, seen):
        seen.until(lambda: len(seen.events(OwnersTold)) >= 3 and len(seen.events(ListInstalled)) == 3)
        assert set(seen.cluster.labels) == names(3)
        assert {member.address for member in seen.events(ListInstalled)[0].members} == names(3)
        assert all(status.contact == "connected" for status in seen.cluster.connection_status().values())
        assert tuple(seen.cluster.connect_options()) == ("--connect", "k8s://orders/hazelcast:5701")
    assert not [call for call in pods.calls if " logs " in call]
    assert all("--context=try" in call for call in pods.calls[1:])


@pytest.mark.parametrize("is_listed_first", [False, True])
def test_a_pod_that_comes_back_with_another_address_is_the_same_member_started_anew(
    pods: FakePods, is_listed_first: bool
) -> None:
    with members_in_pods(pods, 2) as (members, seen):
        seen.until(lambda: len(seen.events(ListInstalled)) == 2)
        first, second = members.members
        began = ViewMember(uuid_of(7), Address(f"{host_at(9)}:5701"), False, "5.3.8")

        def come_back() -> None:
            second.uuid, second.address = began.uuid, began.address
            second.hang_up()
            agree([first, second], 3)

        pods.run("hz-1", host_at(9), "uid-9", second.listens_at)
        if not is_listed_first:
            seen.until(lambda: seen.cluster._settings.route.name_of(began.address) == "hz-1:5701")
        members.do(come_back)
        if is_listed_first:
            seen.until(lambda: seen.cluster._settings.route.name_of(began.address) == "hz-1:5701")
            members.do(lambda: agree([first, second], 3))  # as each member repeats its list
        seen.until(
            lambda: any(record.uuid == uuid_of(7) for record in seen.records if isinstance(record.event, MemberStarted))
        )
        # The list may have come with the address first, and comes with the name when it is repeated.
        seen.until(lambda: seen.picture.members["hz-0:5701"].version == 3)
        seen.until(lambda: {member.address for member in seen.picture.members["hz-0:5701"].members} == names(2))
        seen.until(lambda: set(seen.cluster.labels) == names(2))


def test_who_still_lists_the_address_that_a_pod_has_left_lists_another_member(pods: FakePods) -> None:
    with members_in_pods(pods, 2) as (members, seen):
        seen.until(lambda: len(seen.events(ListInstalled)) == 2)
        first, second = members.members
        left = second.on_list()
        pods.run("hz-1", host_at(9), "uid-9", second.listens_at)
        move(second, 9)
        second.uuid = uuid_of(7)
        view = (first.on_list(), left, second.on_list())
        members.do(lambda: (second.hang_up(), first.tell(type(first.members)(3, view))))
        seen.until(lambda: (status := seen.cluster.connection_status().get("10.244.0.1:5701")) and status.is_gone)
        why = seen.cluster.connection_status()["10.244.0.1:5701"].why
        assert why == "the pod hz-1, which was at this address, has another one now"


def test_a_pod_that_is_deleted_is_gone_and_its_service_is_looked_at_again(pods: FakePods) -> None:
    with members_in_pods(pods, 2) as (members, seen):
        seen.until(lambda: len(seen.events(ListInstalled)) == 2)
        pods.delete("hz-1")
        members.stop(members.members[1])
        seen.until(lambda: seen.cluster.connection_status()["hz-1:5701"].is_gone)
        assert seen.cluster.connection_status()["hz-1:5701"].why == "there is no pod hz-1 any more"


def test_a_pod_whose_host_says_that_no_process_listens_is_gone(pods: FakePods) -> None:
    with members_in_pods(pods, 2) as (members, seen), TCPServer(("127.0.0.1", 0), BaseRequestHandler) as near_end:
        Thread(target=near_end.serve_forever, daemon=True).start()
        seen.until(lambda: len(seen.events(ListInstalled)) == 2)
        members.stop(members.members[1])
        seen.until(lambda: seen.cluster.connection_status()["hz-1:5701"].why == "what leads there has just ended")
        assert not seen.cluster.connection_status()["hz-1:5701"].is_gone, "that is the near end of the port-forward"
        pods.refuse("hz-1")
        pods.run("hz-1", host_at(1), "uid-again", Address(f"127.0.0.1:{near_end.server_address[1]}"))
        seen.until(lambda: seen.cluster.connection_status()["hz-1:5701"].is_gone)
        assert seen.cluster.connection_status()["hz-1:5701"].why == "no process listens there"
        near_end.shutdown()


@pytest.mark.parametrize("late", [False, True])
def test_the_end_of_each_connection_waits_for_words_of_its_own(
    pods: FakePods, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    pods.run("hz-1", host_at(1), "uid-1", Address("127.0.0.1:1"))
    if not late:
        pods.refuse("hz-1")
        monkeypatch.setattr(pod_route, "EXPLANATION_SECONDS", 20.0)

    async def explained_twice() -> None:
        route, pod = PodRoute([SERVICE], logs=False), Address("hz-1:5701")
        looking = asyncio.create_task(route.run())
        await route.hosts_of(SERVICE.address)
        found = []
        for _ in range(2):
            await route.reach(pod)
            found.append(await route.why_ended(pod))
            if late:  # its words on this connection come when its end was explained already
                process = route._forwards["hz-1"].result().process
                process.said = "error forwarding port 5701 to pod: connect: connection refused"
                process.spoke.set()
        assert found == 2 * [None if late else ("no process listens there", "absent")]
        looking.cancel()
        await asyncio.wait([looking])

    asyncio.run(explained_twice())


@pytest.mark.parametrize("rest", ["", "\nerror: lost connection to pod\n"])
def test_what_the_host_of_a_pod_says_is_evidence_and_what_the_api_says_is_none(rest: str) -> None:
    refused = "E1123 12:00:00.1 1 portforward.go:424] an error occurred forwarding 41234 -> 5701: error forwarding port 5701 to pod 0f, uid : failed to connect to localhost:5701 inside namespace: dial tcp4 127.0.0.1:5701: connect: connection refused"  # fmt: skip  # noqa: E501
    assert pod_route.NO_PROCESS.search(refused + rest)
    assert not pod_route.NO_PROCESS.search(
        "error upgrading connection: dial tcp 10.0.0.1:6443: connect: connection refused"
    )


def test_logs_of_pods_are_merged_and_addresses_in_them_are_pods(pods: FakePods) -> None:
    with members_in_pods(pods, 2, logs=True) as (members, seen):
        seen.until(lambda: len(seen.events(OwnersTold)) >= 2)
        a, b = (member.address for member in members.members)
        pods.log("hz-0", listed(a, b, time.time()) + suspicion(a, b, time.time()))
        seen.until(lambda: seen.events(SuspicionRaised, "hz-0:5701"))
        assert seen.events(SuspicionRaised)[0].suspect == "hz-1:5701"
        assert not seen.events(SuspicionRaised, a)


def test_no_process_is_left_behind(pods: FakePods) -> None:
    with members_in_pods(pods, 2, logs=True) as (_, seen):
        seen.until(lambda: len(seen.events(ListInstalled)) == 2)
        assert running(pods)
    assert not running(pods)


def running(pods: FakePods) -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        try:
            mine = f"PPid:\t{os.getpid()}\n" in (process / "status").read_text()
            words = (process / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if process.name.isdigit() and mine and ("sleep" in words or any(str(pods.folder) in word for word in words)):
            found.append(" ".join(words))
    return found


@pytest.mark.parametrize(
    ("said", "problem", "wanted"),
    [
        ("", BadService, 'services "hazelcast" not found'),
        (
            'Error from server (Forbidden): endpointslices is forbidden: User "x" cannot list',
            KubectlFailed,
            "cannot list",
        ),
        ("error: You must be logged in to the server (Unauthorized)", KubectlFailed, "logged in"),
    ],
)
def test_a_service_that_is_not_there_or_not_ours_to_see(
    pods: FakePods, said: str, problem: type[Exception], wanted: str
) -> None:
    pods.fail(said)
    with pytest.raises(problem, match=wanted):
        PodRoute([SERVICE], logs=False)


def test_an_api_that_does_not_answer_is_waited_for(pods: FakePods) -> None:
    said = "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?"
    pods.fail(said)
    route = PodRoute([SERVICE], logs=False)
    with watching(SERVICE.address, settings=WatchSettings((SERVICE.address,), route=route)) as seen:
        seen.until(lambda: seen.cluster.connection_status()[SERVICE.address].why)
        assert seen.cluster.connection_status()[SERVICE.address].why == said


def test_without_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECTL", str(tmp_path / "none"))
    with pytest.raises(BadService, match="kubectl is not installed here"):
        PodRoute([SERVICE], logs=False)


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("k8s://orders/hazelcast", SERVICE),
        ("k8s://orders/hazelcast:5702/", Service("orders", "hazelcast", 5702)),
        ("k8s://orders", None),
        ("k8s:///hazelcast", None),
        ("k8s://orders/hazelcast:0", None),
        ("k8s://orders/hazelcast:", None),
        ("k8s://Orders/hazelcast", None),
        ("k8s://orders/hazelcast/more", None),
        ("k8s://orders/--all", None),
    ],
)
def test_urls(url: str, wanted: Service | None) -> None:
    if wanted is None:
        with pytest.raises(BadService, match="write k8s://NAMESPACE/SERVICE"):
            service_of(url)
    else:
        assert service_of(url) == wanted


def test_names_in_what_members_write() -> None:
    found = PodNames(
        {"10.0.0.1": "hz-0", "10.0.0.11": "hz-1", "fd00::5": "hz-2", "fd00:0:0:0:0:0:0:5": "hz-2"},
        {("hz-0", "hz", "orders"): "hz-0", ("hz-10", "hz", "orders"): "hz-10"},
    )
    assert (
        found.in_line("[10.0.0.1]:5701 [dev] [5.3.8] from [10.0.0.11]:5701")
        == "[hz-0]:5701 [dev] [5.3.8] from [hz-1]:5701"
    )
    assert found.in_line("10.0.0.12 110.0.0.1 10.0.0.1.5 2.10.0.0.1") == "10.0.0.12 110.0.0.1 10.0.0.1.5 2.10.0.0.1"
    assert found.in_address("/10.0.0.1:5701->/10.0.0.11:40000") == "/hz-0:5701->/hz-1:40000"
    assert found.in_address("[fd00:0:0:0:0:0:0:5]:5701") == "hz-2:5701"
    assert found.in_address("hz-10.hz.orders.svc.cluster.local:5701,hz-0.hz:5701") == "hz-10:5701,hz-0:5701"
    assert found.in_address("hz.orders.svc.cluster.local") == "hz.orders.svc.cluster.local"
    assert PodNames({}, {}).in_address("10.0.0.1:5701") == "10.0.0.1:5701"


def test_endpoints_that_are_no_pods_are_left_out() -> None:
    text = '{"items": [{"endpoints": [{"addresses": ["1.2.3.4"]}, {"addresses": [], "targetRef": {"kind": "Pod", "name": "a"}}, {"addresses": ["1.2.3.5"], "targetRef": {"kind": "Pod", "name": "b"}}]}]}'  # noqa: E501
    assert list(pods_in(text)) == [Pod("b", "", "1.2.3.5")]
    for wrong in ("", "[]", "no json"):
        with pytest.raises(ValueError, match=r".*"):
            list(pods_in(wrong))
