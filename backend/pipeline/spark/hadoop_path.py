"""Files and directories at addresses such as `s3a://…` or `hdfs://…`, with the interface of `pathlib`.

Hadoop's FileSystem in the driver's Java does the work, so all that it is configured for can be read and written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_GLOB_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\{}[]*?"})


def literal(path: str) -> str:
    """Escape a path for Spark's readers, so that no character in it is a wildcard."""
    return path.translate(_GLOB_SIGNS)


class FileStatus(NamedTuple):
    """The status of a file, with the fields of `os.stat`."""

    st_size: int
    st_mtime_ns: int


class HadoopPath:
    """A file or directory at an address. Failures other than those of `pathlib` are OSErrors with Hadoop's message."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        self._spark = spark
        self._address = address.rstrip("/")
        with _failing_as_file(self._address):
            java: Any = spark._jvm
            self._path: Any = java.org.apache.hadoop.fs.Path(self._address)
            self._system: Any = self._path.getFileSystem(spark._jsc.hadoopConfiguration())

    def __str__(self) -> str:
        return self._address

    def __lt__(self, other: HadoopPath) -> bool:
        return self._address < other._address

    def __truediv__(self, name: str) -> HadoopPath:
        return HadoopPath(self._spark, f"{self._address}/{name}")

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self._address.rpartition("/")[2]

    def exists(self) -> bool:
        """Return whether there is a file or a directory."""
        with _failing_as_file(self._address):
            return bool(self._system.exists(self._path))

    def is_dir(self) -> bool:
        """Return whether there is a directory."""
        return self.exists() and bool(self._system.getFileStatus(self._path).isDirectory())

    def stat(self) -> FileStatus:
        """Return size and time of the last change."""
        with _failing_as_file(self._address):
            status = self._system.getFileStatus(self._path)
            return FileStatus(int(status.getLen()), int(status.getModificationTime()) * 1_000_000)

    def glob(self, pattern: str) -> Iterator[HadoopPath]:
        """Yield what is directly in the directory and fits the pattern; nothing where there is no directory."""
        if self.is_dir():
            with _failing_as_file(self._address):
                names = [str(status.getPath().getName()) for status in self._system.listStatus(self._path)]
            yield from (self / name for name in names if fnmatchcase(name, pattern))

    def mkdir(self, *, parents: bool = True, exist_ok: bool = True) -> None:
        """Make the directory and its parents, if they do not exist."""
        with _failing_as_file(self._address):
            self._system.mkdirs(self._path)

    def read_bytes(self) -> bytes:
        """Read the whole file."""
        if not self.exists():
            raise FileNotFoundError(2, "No such file", self._address)
        with _failing_as_file(self._address):
            stream = self._system.open(self._path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def write_bytes(self, content: bytes) -> None:
        """Write the file, replacing an old one."""
        with _failing_as_file(self._address):
            stream = self._system.create(self._path, True)
            try:
                stream.write(bytearray(content))
            finally:
                stream.close()

    def fetch(self, copy: Path) -> None:
        """Copy the file to this machine."""
        with _failing_as_file(self._address):
            self._system.copyToLocalFile(False, self._path, self._local(copy), True)

    def put(self, file: Path) -> None:
        """Make this a copy of a file of this machine, replacing an old one."""
        with _failing_as_file(self._address):
            self._system.copyFromLocalFile(False, True, self._local(file), self._path)

    def _local(self, file: Path) -> Any:
        java: Any = self._spark._jvm
        return java.org.apache.hadoop.fs.Path(file.absolute().as_uri())

    def rename(self, target: HadoopPath) -> None:
        """Move the file or directory to `target`, replacing what is there."""
        target.remove()
        with _failing_as_file(self._address):
            if not self._system.rename(self._path, target._path):
                raise OSError(5, f"cannot be renamed to {target}", self._address)

    def remove(self) -> None:
        """Remove the file, or the directory with all its content, if it exists."""
        with _failing_as_file(self._address):
            self._system.delete(self._path, True)


@contextmanager
def _failing_as_file(address: str) -> Iterator[None]:
    """Convert what Java raises about a file to OSError."""
    try:
        yield
    except AttributeError as problem:  # a session of Spark Connect has no Java here
        raise OSError(
            95, "is written by Spark in this process; Spark Connect only reads addresses", address
        ) from problem
    except Py4JJavaError as problem:
        said = str(problem.java_exception.getMessage() or problem.java_exception.getClass().getName())
        raise OSError(5, said.splitlines()[0], address) from problem
