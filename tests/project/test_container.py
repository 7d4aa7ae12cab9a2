"""The image, and the manifests' pods of it, without an engine or a cluster.

Debian's `buildah` builds the Containerfile on a base that `debootstrap` makes. Each pod is a namespace with an address of its own
and runs the image with the arguments, environment and files that its manifest gives it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live.cluster.test_real_links import ip
from tests.project.test_release import ROOT, built
from tests.waiting import wait_until

MANIFESTS = ROOT / "docs" / "operators" / "kubernetes"
BASE = ["debootstrap", "--variant=minbase", "--include=python3,python3-venv,ca-certificates", "bookworm"]
FROM_THE_HOST = [Path("/etc/pip.conf"), Path("/etc/ssl/certs")]
"""How this machine reaches packages."""

MEMBERS = [f"quarterdeck-{number}" for number in range(3)]
EXPORTER = "quarterdeck-exporter"
HOSTS = {pod: f"10.78.0.{number}" for number, pod in enumerate((*MEMBERS, EXPORTER), 1)}
USER = "10001"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(map(shutil.which, ("buildah", "debootstrap", "ip"))),
        reason="needs root, Debian's buildah and debootstrap, and iproute2",
    ),
]


class Images:
    """Images and containers of buildah in a folder of this test."""

    def __init__(self, folder: Path) -> None:
        self._places = ["--storage-driver", "vfs", "--root", f"{folder}/images", "--runroot", f"{folder}/run"]

    def buildah(self, *words: str | Path) -> str:
        command = ["buildah", *self._places, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def running(self, container: str, options: list[str], *words: str) -> list[str]:
        """The command line that runs something in a container."""
        return ["buildah", *self._places, "run", "--isolation", "chroot", *options, container, "--", *words]

    def lines(self, container: str, *words: str) -> list[str]:
        done = subprocess.run(self.running(container, [], *words), capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """The image `quarterdeck`, made by the Containerfile from a wheel of this tree."""
    folder = tmp_path_factory.mktemp("images")
    made = Images(folder)
    base, context = folder / "base", folder / "context"
    subprocess.run([*BASE, base], check=True, capture_output=True, timeout=600)
    empty = made.buildah("from", "scratch").strip()
    made.buildah("add", empty, base, "/")
    made.buildah("commit", "--rm", empty, "localhost/base")
    context.mkdir()
    built(context / "dist")
    shutil.copy(ROOT / "constraints.txt", context)
    shared = [word for path in FROM_THE_HOST if path.exists() for word in ("--volume", f"{path}:{path}:ro")]
    file = MANIFESTS / "Containerfile"
    made.buildah(
        *("build", "--isolation", "chroot", "--network", "host", *shared),
        *("--build-arg", "BASE=localhost/base", "--file", file, "--tag", "quarterdeck", context),
    )
    yield made
    made.buildah("rm", "--all")
    made.buildah("rmi", "--all", "--force")
    shutil.rmtree(folder)


def test_the_image_runs_as_nobody_in_particular_and_has_no_tools_to_build_with(images: Images) -> None:
    container = images.buildah("from", "localhost/quarterdeck").strip()
    assert images.lines(container, "id", "-u") == [USER]
    (version,) = images.lines(container, "quarterdeck", "version")
    assert version
    assert images.lines(container, "sh", "-c", "command -v cc gcc make git || echo none") == ["none"]
    outcome = json.loads("\n".join(images.lines(container, *"quarterdeck demo run split --no-journal -o json".split())))
    assert all(expectation["met"] for expectation in outcome["expectations"])
    configuration = json.loads(images.buildah("inspect", "--type", "image", "localhost/quarterdeck"))["OCIv1"]["config"]
    assert configuration["User"] == USER
    assert (configuration["Entrypoint"], configuration["Cmd"]) == (["quarterdeck"], ["console"])


@pytest.fixture
def network() -> Iterator[None]:
    """A namespace with an address for each pod, on one bridge in a namespace of its own."""
    with ExitStack() as made:
        ip("netns", "add", "qd-switch")
        made.callback(ip, "netns", "delete", "qd-switch")
        ip("-n", "qd-switch", "link", "add", "switch", "type", "bridge")
        ip("-n", "qd-switch", "link", "set", "switch", "up")
        for pod, host in HOSTS.items():
            ip("netns", "add", pod)
            made.callback(ip, "netns", "delete", pod)
            cable = f"c{host.rpartition('.')[2]}"
            ip("-n", "qd-switch", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", pod)
            ip("-n", "qd-switch", "link", "set", cable, "master", "switch", "up")
            ip("-n", pod, "address", "add", f"{host}/24", "dev", "eth0")
            ip("-n", pod, "link", "set", "eth0", "up")
            ip("-n", pod, "link", "set", "lo", "up")
        yield


def pod_of(kind: str, file: str) -> dict[str, Any]:
    """The specification of pods in a manifest."""
    documents = yaml.safe_load_all((MANIFESTS / file).read_text())
    (found,) = (document for document in documents if document["kind"] == kind)
    return found["spec"]["template"]["spec"]  # type: ignore[no-any-return]


def environment_of(container: Mapping[str, Any], pod: str) -> dict[str, str]:
    """The variables of a container, with the fields of its pod filled in."""
    fields = {"metadata.name": pod, "status.podIP": HOSTS[pod]}
    found: dict[str, str] = {}
    for variable in container.get("env", ()):
        value = variable.get("value") or fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        for name, known in found.items():
            value = value.replace(f"$({name})", known)
        found[variable["name"]] = value
    return found


def fetched(pod: str, path: str, port: int) -> str | None:
    """What a page of a pod says, read from inside its namespace; None when that is no success."""
    command = ["ip", "netns", "exec", pod, "curl", "-s", "-f", "-m", "5", f"http://{HOSTS[pod]}:{port}{path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    return None if done.returncode else done.stdout


def metrics() -> str:
    """The exporter's page, without its comments."""
    lines = (fetched(EXPORTER, "/metrics", 9_470) or "").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))


def test_pods_of_the_manifests_find_one_another_by_their_names_and_are_exported(
    images: Images, network: None, tmp_path: Path
) -> None:
    names = tmp_path / "hosts"
    names.write_text("127.0.0.1 localhost\n" + "".join(f"{host} {pod}.quarterdeck\n" for pod, host in HOSTS.items()))
    for secret in ("cluster.secret", "monitoring.token"):
        (tmp_path / secret).write_text(secrets.token_hex(32))
        (tmp_path / secret).chmod(0o440)
        os.chown(tmp_path / secret, 0, int(USER))
    files = {"/etc/hosts": names, "/etc/quarterdeck/member.yaml": MANIFESTS / "member.yaml"}
    files |= {f"/etc/quarterdeck/secrets/{name}": tmp_path / name for name in ("cluster.secret", "monitoring.token")}
    with ExitStack() as running:
        for pod in HOSTS:
            kind, file = ("Deployment", "exporter.yaml") if pod == EXPORTER else ("StatefulSet", "members.yaml")
            (specified,) = pod_of(kind, file)["containers"]
            options = [f"--env={name}={value}" for name, value in environment_of(specified, pod).items()]
            options += [f"--volume={source}:{target}:ro" for target, source in files.items()]
            options += [f"--user={USER}:{USER}", "--no-hosts"]
            container = images.buildah("from", "--name", pod, "localhost/quarterdeck").strip()
            command = ["ip", "netns", "exec", pod]
            command += images.running(container, options, "quarterdeck", *specified["args"])
            log = running.enter_context((tmp_path / f"{pod}.log").open("wb"))
            running.callback(subprocess.Popen(command, stdout=log, stderr=log).wait, 60)
            running.callback(subprocess.run, f"kill -KILL $(ip netns pids {pod})", shell=True)

        def logs() -> str:
            return "".join((tmp_path / f"{pod}.log").read_text()[-2_000:] for pod in HOSTS)

        for pod in MEMBERS:
            (specified,) = pod_of("StatefulSet", "members.yaml")["containers"]
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                path = specified[probe]["httpGet"]["path"]
                wait_until(lambda pod=pod, path=path: fetched(pod, path, 5_701) is not None, logs)  # type: ignore[misc]
        wait_until(lambda: "quarterdeck_cluster_whole 1.0\n" in metrics(), lambda: metrics() + logs())
        assert "quarterdeck_cluster_lists_agree 1.0\n" in metrics()
