"""A class archive for Java: Spark's classes laid out as Java needs them, so that a session starts in half the time.

Java itself writes one as it exits, from the classes that it has loaded. That takes some seconds and 150 MB of the user's cache,
so it is done at the end of the second session of the same Java, Spark and options: starting Spark once does not pay for it.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import platformdirs
import pyspark

from quarterdeck.backend.pipeline.spark.java import Java

OLDEST_VERSION_OF_AOT = 25
"""From this version on Java writes another form of archives, and reports them on stdout whatever its options: those get none."""

QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Java reports archives on stdout, where data goes."""

MAX_SECONDS_TO_WRITE = 60
SECONDS_UNTIL_LEFTOVER = 3_600


def archive_options(java: Java, options: Sequence[str], cache: Path | None = None) -> list[str]:
    """Return the options to start Java with besides `options`: to use the archive, to write one if that pays, or none."""
    jars = Path(pyspark.__file__).parent / "jars"
    if not jars.is_dir() or not can_have_one(java):
        return []
    cache = cache or platformdirs.user_cache_path("quarterdeck")
    archive = cache / f"classes-{_key(java, jars, options)}.jsa"
    if archive.exists():
        return [*QUIET, f"-XX:SharedArchiveFile={archive}"]
    used_before = archive.with_suffix(".used")
    try:
        _remove_leftovers(archive)
        if not used_before.exists():
            cache.mkdir(parents=True, exist_ok=True)
            used_before.touch()
            return []
    except OSError:  # a home that cannot be written to: start slowly
        return []
    building = archive.with_suffix(f".{os.getpid()}")
    atexit.register(_keep, building, archive)
    return [*QUIET, f"-XX:ArchiveClassesAtExit={building}"]


def can_have_one(java: Java) -> bool:
    """Return whether Java has an archive of its own to build on, which small runtimes lack."""
    return java.version < OLDEST_VERSION_OF_AOT and any((java.runtime_home / "lib").glob("*/classes.jsa"))


def _remove_leftovers(archive: Path) -> None:
    """Remove the files of sessions that were killed before they could finish their archive. Raises OSError."""
    for building in archive.parent.glob(f"{archive.stem}.*"):
        if building.suffix[1:].isdecimal() and time.time() - building.stat().st_mtime > SECONDS_UNTIL_LEFTOVER:
            building.unlink(missing_ok=True)


def _keep(building: Path, archive: Path) -> None:
    """Wait until Java has exited and written the archive, then move it in one step to where later sessions look for it."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if gateway is None or process is None or process.stdin is None:
        return
    gateway.shutdown()
    process.stdin.close()  # which ends Java
    try:
        complete = process.wait(MAX_SECONDS_TO_WRITE) == 0
    except subprocess.TimeoutExpired:
        complete = False
    if complete and building.exists():
        building.replace(archive)
    building.unlink(missing_ok=True)


def _key(java: Java, jars: Path, options: Sequence[str]) -> str:
    """Return a key of what Java checks in an archive: the Java, the jars and the collector."""
    digest = sha256(f"{java.runtime}\0{java.runtime_home}\0{pyspark.__version__}\0{' '.join(options)}".encode())
    for jar in sorted(jars.iterdir()):
        digest.update(f"\0{jar}\0{jar.stat().st_size}".encode())
    return digest.hexdigest()[:12]
