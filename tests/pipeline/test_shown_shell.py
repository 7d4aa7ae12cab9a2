"""All lines of the shell in the pages about Spark work: on a standalone cluster of two workers, one of which is killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

import quarterdeck
from tests.pipeline.journal_builder import JournalBuilder, write
from tests.pipeline.spark.local_clusters import clean_environment, connect_server, standalone, worker_python
from tests.pipeline.streaming.kafka_broker import kafka_broker, produce, with_connector
from tests.ports import take_ports
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "tests" / "hazelcast" / "logs" / "data" / "formation-and-crash"
SCENARIO = ROOT / "tests" / "scenarios" / "killed-process.yaml"
LIMIT_SECONDS = 600
"""For a command and its Java on a busy machine."""

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400), pytest.mark.xdist_group("lines of the shell about Spark")]

BLOCKS = re.compile(r"^```(\w*)\n(.*?)^```|^((?: {4}quarterdeck [^\n]*\n)+)", re.DOTALL | re.MULTILINE)
LINES = {
    page.name: [
        re.sub(r" \\\n *", " ", fenced or indented)
        for language, fenced, indented in BLOCKS.findall(page.read_text())
        if language in ("", "sh")
    ]
    for page in sorted((ROOT / "docs" / "spark").glob("*.md"))
}
"""By page, its blocks. Those of one block are typed one after the other into one shell."""

FEWER = {
    "1:100000 --members 3-20": "1:300 --members 3-5",
    "1:100000": "1:10",
    "1:1000": "1:10",
    "--seeds 1000": "--seeds 10",
    "--seeds 500": "--seeds 3",
}
IS_ENDLESS = re.compile(r"pipeline stream (?!.*--once)|spark-class ")
IS_DONE = ("pip install", "python -m venv", "env/bin/", "spark.hadoop.")
"""What would fetch packages that are here, and lines that are none of the shell's."""

FINDS = re.compile(r"audit .*\b(journals|tables)\b(?!/run)|stream journals .*--once|--fail-on observation")
"""What ends with 1, because one of the runs breaks a rule."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The folder and the address of a cluster of two workers, whose Python has no quarterdeck."""
    folder = tmp_path_factory.mktemp("cluster")
    worker_python(folder)
    with standalone(folder) as master:
        yield folder, master


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a reader stands: a scenario, journals and logs under the names that the pages use."""
    here = tmp_path / "here"
    here.mkdir()
    shutil.copy(SCENARIO, here / "split.yaml")
    shutil.copytree(LOGS, here / "logs" / LOGS.name)
    broken = JournalBuilder("broken")
    broken.installs("a1", "one/1", 2, "a1 b1")
    broken.installs("b1", "one/1", 2, "a1 b1 c1")
    write(here / "journals", broken)
    for root, run in (("journals", "orders"), ("journal", "demo")):
        recorded = quarterdeck.simulate(SCENARIO, seed=1, journal=tmp_path / run)
        assert recorded.passed
        (lines,) = (tmp_path / run).rglob("*.jsonl")
        copy = here / root / f"run={run}" / lines.name
        copy.parent.mkdir(parents=True)
        copy.write_text(re.sub('"run":"[^"]*"', f'"run":"{run}"', lines.read_text()))
    for name in ("journals", "logs"):
        shutil.copytree(here / name, here / "bucket" / name)
    return here


def test_the_pages_have_lines() -> None:
    assert sum(map(len, LINES.values())) > 10
    assert {"campaigns.md", "first-spark-cluster.md", "metrics.md", "streaming.md"} < {
        page for page, blocks in LINES.items() if blocks
    }


@pytest.mark.parametrize(
    "page", sorted((page for page in LINES if LINES[page]), key=lambda page: page != "campaigns.md")
)
def test_the_lines_of_a_page_work(cluster: tuple[Path, str], folder: Path, tmp_path: Path, page: str) -> None:
    """A worker is killed during the first campaign of the first page; the others have what is left."""
    workers, master = cluster
    port = str(take_ports(1))
    environment = clean_environment(
        SPARK_CONF_DIR=str(tmp_path), PYSPARK_PYTHON=str(workers / "python"), SPARK_LOCAL_IP="127.0.0.1",
        PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    )  # fmt: skip
    if page == "metrics.md":
        typed("quarterdeck pipeline tables journals --out tables", folder, environment)
    with ExitStack() as stack:
        for block in LINES[page]:
            names = {"spark://head:7077": master, ":7077": f":{port}", "--port 7077": f"--port {port}", **FEWER}
            names |= {
                "s3a://bucket": f"file://{folder}/bucket",
                "/shared": f"{folder}/shared",
                ".venv/": f"{sys.prefix}/",
            }
            if "sc://" in block:
                names["sc://server:15002"] = stack.enter_context(connect_server(workers))
            if "kafka://" in block:
                environment = with_connector(tmp_path, environment)
                names["broker:9092"] = stack.enter_context(kafka_broker(tmp_path))
                produce(names["broker:9092"], folder / "journals", environment)
            if "env.tar.gz" in block:
                packed_environment(workers, folder / "env.tar.gz")
            for name, here in names.items():
                block = block.replace(name, here)
            lines = [line for line in block.splitlines() if not line.startswith(IS_DONE)]
            if any(line.startswith("spark-class") for line in lines):
                said = stack.enter_context((tmp_path / "said").open("ab"))
                stack.enter_context(running("\n".join(lines), folder, environment, said.fileno()))
                until_said(tmp_path / "said", "Successfully registered" if "worker.Worker" in block else "ALIVE")
                continue
            for line in lines:
                shutil.rmtree(folder / "nightly", ignore_errors=True)
                kills = workers if (page, line) == ("campaigns.md", lines[0]) else None
                typed(on_cluster(line, master), folder, environment, kills)


def until_said(log: Path, text: str) -> None:
    wait_until(lambda: text in log.read_text(), log.read_text)


def on_cluster(line: str, master: str) -> str:
    """The same command on the cluster, where it can run there and names no other place."""
    if re.search("--master|--remote", line):
        return line
    return re.sub("^quarterdeck (audit|pipeline metrics|campaign run)", rf"\g<0> --master {master}", line.strip())


def typed(line: str, folder: Path, environment: Mapping[str, str], kills: Path | None = None) -> None:
    """Type a line and see that it ends as it should. One that goes on is interrupted when it has done something."""
    before = marks(folder)
    with running(line, folder, environment) as process:
        if IS_ENDLESS.search(line) or kills:
            wait_until(lambda: marks(folder) - before or process.poll() is not None, limit_seconds=LIMIT_SECONDS)
            assert process.poll() is None, (line, process.communicate())
        if IS_ENDLESS.search(line):
            os.killpg(process.pid, signal.SIGINT)
        elif kills:
            os.kill(int((kills / "worker-0.pid").read_text()), signal.SIGKILL)  # its executor ends with it
        printed, said = process.communicate(timeout=LIMIT_SECONDS)
    expected = 130 if IS_ENDLESS.search(line) else 1 if FINDS.search(line) else 0
    assert process.returncode == expected, (line, process.returncode, printed, said)
    assert "Traceback" not in said and "Python worker" not in said, (line, said)


def marks(folder: Path) -> set[Path]:
    """What a stream or a campaign leaves that has done some work."""
    return {place for name in ("commits/0", "read.jsonl", "verdicts/*.parquet") for place in folder.rglob(name)}


@contextmanager
def running(
    line: str, folder: Path, environment: Mapping[str, str], output: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    """A shell with a line, and all that it starts, until the end of the block."""
    process = subprocess.Popen(
        ["bash", "-c", line], cwd=folder, env=environment, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=output, stderr=output,
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def packed_environment(workers: Path, archive: Path) -> None:
    """An environment as ``venv-pack`` makes it, with a Python that imports what is installed here but for our package."""
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(workers / "python", "bin/python")
