"""Files and directories at addresses such as `s3a://…`, with the interface of `pathlib`, through pyarrow's file systems.

Every process can open them by itself, also a task of Spark's: Spark only distributes the work.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S3 = re.compile("^s3[an]?://")
LOCAL = re.compile("^file:/+")
SETTINGS = "spark.hadoop.fs.s3a."
OPTIONS = {
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}
"""What Spark's configuration calls the options of pyarrow, which looks for keys as all of Amazon's programs do without them."""

OF_DELTA = {
    "access_key": "aws_access_key_id",
    "secret_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "region": "aws_region",
}
"""What deltalake calls these options of pyarrow."""

BUFFER_BYTES = 1 << 20


Place: TypeAlias = "Path | Address"
"""A file or directory, of this machine or at an address."""


@contextmanager
def naming_damaged(place: object) -> Iterator[None]:
    """Name the place where something is no whole Parquet file. Raises OSError."""
    import pyarrow

    try:
        yield
    except pyarrow.ArrowInvalid as problem:
        raise OSError(errno.EIO, f"cannot be read ({problem})", str(place)) from problem


class FileStatus(NamedTuple):
    """A file at an address, its size, and when it was changed."""

    place: Address
    size_bytes: int
    changed_us: int


class Address:
    """A file or directory at an address. Failures are OSErrors."""

    def __init__(self, address: str, system: Any, path: str, options: Mapping[str, str] | None = None) -> None:
        """`path` is what the pyarrow file system `system` calls the place; `options` are those of deltalake."""
        self._address, self._system, self._path = address.rstrip("/"), system, path.rstrip("/") or "/"
        self.delta_options = dict(options or {})

    def __str__(self) -> str:
        return self._address

    def __lt__(self, other: Address) -> bool:
        return self._address < other._address

    def __truediv__(self, name: str) -> Address:
        return Address(f"{self._address}/{name}", self._system, f"{self._path}/{name}", self.delta_options)

    @property
    def delta_uri(self) -> str:
        """The name of this place for deltalake."""
        return self._path if LOCAL.match(self._address) else self._address

    @property
    def name(self) -> str:
        return self._address.rpartition("/")[2]

    def exists(self) -> bool:
        return bool(self._system.get_file_info(self._path).type.name != "NotFound")

    def is_dir(self) -> bool:
        return bool(self._system.get_file_info(self._path).type.name == "Directory")

    def files(self) -> list[FileStatus]:
        """Return the files here and below that are finished: those of which no part of the name begins with `_` or a dot."""
        from pyarrow.fs import FileSelector

        if (itself := self._system.get_file_info(self._path)).is_file:
            return [self._status(itself)]
        listed = self._system.get_file_info(FileSelector(self._path, allow_not_found=True, recursive=True))
        found = [self._status(info) for info in listed if info.is_file]
        below = len(self._address) + 1
        finished = (file for file in found if not re.search(r"(^|/)[._]", str(file.place)[below:]))
        return sorted(finished, key=lambda one: str(one.place))

    def open(self, mode: str = "rb") -> BinaryIO:
        """Open the file to read bytes of it, also anywhere in it."""
        return cast(BinaryIO, self._system.open_input_file(self._path))

    def read_bytes(self) -> bytes:
        with self.open() as file:
            return file.read()

    def write_bytes(self, content: bytes) -> None:
        """Write the file, replacing an old one, and make its directory."""
        self._system.create_dir(self._path.rpartition("/")[0])
        with self._system.open_output_stream(self._path) as file:
            file.write(content)

    def fetch(self, copy: Path) -> None:
        with self.open() as file, copy.open("wb") as target:
            shutil.copyfileobj(file, target, BUFFER_BYTES)

    def _status(self, info: Any) -> FileStatus:
        below = info.path.removeprefix(self._path)
        place = Address(f"{self._address}{below}", self._system, info.path)
        return FileStatus(place, info.size, info.mtime_ns // 1_000)


def is_address(path: Path | str) -> bool:
    """Return whether this is an address, and no path of this machine."""
    return "://" in str(path)


def place_of(path: Path | str, spark: SparkSession | None = None) -> Place:
    """Return the place at a path of this machine, or at an address, as `address_of` does."""
    return address_of(str(path), spark) if is_address(path) else Path(path)


def address_of(address: str, spark: SparkSession | None = None) -> Address:
    """Return the place at an address; buckets of S3 are opened with what Spark's configuration says of them.

    That is the configuration of the session `spark`, or else ``spark-defaults.conf``. Raises OSError where nothing can read it.
    """
    from pyarrow import ArrowInvalid, ArrowNotImplementedError
    from pyarrow.fs import FileSystem, LocalFileSystem, S3FileSystem

    if LOCAL.match(address):
        path = LOCAL.sub("/", address)
        return Address(f"file:{path}", LocalFileSystem(), path)
    if S3.match(address):
        path = S3.sub("", address)
        options = _options(path.partition("/")[0], _settings_of(spark))
        return Address(address, S3FileSystem(allow_bucket_creation=False, **options), path, _delta_options(options))
    try:
        return Address(address, *FileSystem.from_uri(address))
    except (ArrowInvalid, ArrowNotImplementedError) as problem:
        raise OSError(95, f"cannot be read or written ({problem})", address) from problem


def _options(bucket: str, setting_of: Callable[[str], str | None]) -> dict[str, Any]:
    def setting(name: str) -> str | None:
        return setting_of(f"{SETTINGS}bucket.{bucket}.{name}") or setting_of(SETTINGS + name)

    options: dict[str, Any] = {ours: value for name, ours in OPTIONS.items() if (value := setting(name))}
    if endpoint := setting("endpoint"):
        scheme, _, rest = endpoint.rpartition("://")
        is_plain = scheme == "http" or setting("connection.ssl.enabled") == "false"
        options |= {"endpoint_override": rest, "scheme": "http" if is_plain else "https"}
        options["force_virtual_addressing"] = setting("path.style.access") != "true"
    return options


def _delta_options(options: Mapping[str, Any]) -> dict[str, str]:
    found = {OF_DELTA[name]: value for name, value in options.items() if name in OF_DELTA}
    if "endpoint_override" in options:
        found["aws_endpoint"] = f"{options['scheme']}://{options['endpoint_override']}"
        found["aws_allow_http"] = "true"
        found["aws_virtual_hosted_style_request"] = str(options["force_virtual_addressing"]).lower()
    return found


def _settings_of(spark: SparkSession | None) -> Callable[[str], str | None]:
    if spark is not None:
        return lambda name: spark.conf.get(name, None)
    return spark_defaults().get


def spark_defaults() -> dict[str, str]:
    """Return the user's configuration of Spark, ``spark-defaults.conf``; nothing where there is none."""
    folder = os.environ.get("SPARK_CONF_DIR") or f"{os.environ.get('SPARK_HOME', '')}/conf"
    try:
        lines = (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (re.split(r"\s*[\s=:]\s*", line.strip(), maxsplit=1) for line in lines if not line.lstrip().startswith("#"))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
