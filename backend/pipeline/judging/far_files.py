"""Reads files at addresses in any process, with pyarrow: those at `file:` and `s3a:`. Only Hadoop reads the rest.

A task that reads its files itself keeps what it needs of a line; files that Java reads are held whole, and sent to the task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.fs

from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging.group_judge import PARQUET, lines_of_content

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S3A = "s3a://"
LOCAL = re.compile("^file:/+")
SETTINGS = "spark.hadoop.fs.s3a."
PROVIDER = "aws.credentials.provider"
OPTIONS = {
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}
"""What Hadoop calls the options of pyarrow. Without keys both look into the environment and ask the machine itself."""
BUFFER_BYTES = 1 << 20


class FarReader(NamedTuple):
    """Reads the lines of files at addresses. It can be sent to other processes."""

    buckets: dict[str, dict[str, Any]]
    """By bucket, the options of pyarrow."""

    def lines(self, file: InputFile) -> Iterator[bytes]:
        """Read the lines of a file, as `lines_of_file` does on this machine. Raises OSError."""
        with ExitStack() as stack:
            if LOCAL.match(file.read):
                content: Any = stack.enter_context(Path(LOCAL.sub("/", file.read)).open("rb"))
            else:
                path = file.read.removeprefix(S3A)
                system = pyarrow.fs.S3FileSystem(**self.buckets[path.partition("/")[0]])
                content = stack.enter_context(system.open_input_file(path))
                if not path.endswith(PARQUET):
                    content = BufferedReader(content, BUFFER_BYTES)
            yield from lines_of_content(file, content)


def far_reader(spark: SparkSession, files: Sequence[InputFile]) -> FarReader | None:
    """Return what reads these files, with the credentials of Spark's configuration; None where only Hadoop can."""
    buckets: dict[str, dict[str, Any]] = {}
    for file in files:
        if file.read.startswith(S3A):
            bucket = file.read.removeprefix(S3A).partition("/")[0]
            if bucket not in buckets:
                options = _options(spark, bucket)
                if options is None or not _is_readable(file, options):
                    return None
                buckets[bucket] = options
        elif not LOCAL.match(file.read):
            return None
    return FarReader(buckets)


def _options(spark: SparkSession, bucket: str) -> dict[str, Any] | None:
    """Return pyarrow's options for a bucket; None where Hadoop is told to find credentials in a way of its own."""

    def setting(name: str) -> str | None:
        of_all = spark.conf.get(SETTINGS + name, None)
        return spark.conf.get(f"{SETTINGS}bucket.{bucket}.{name}", None) or of_all

    if setting(PROVIDER):
        return None
    options: dict[str, Any] = {ours: value for name, ours in OPTIONS.items() if (value := setting(name))}
    if endpoint := setting("endpoint"):
        scheme, _, rest = endpoint.rpartition("://")
        is_plain = scheme == "http" or setting("connection.ssl.enabled") == "false"
        options |= {"endpoint_override": rest, "scheme": "http" if is_plain else "https"}
        options["force_virtual_addressing"] = setting("path.style.access") != "true"
    return options


def _is_readable(file: InputFile, options: dict[str, Any]) -> bool:
    """Return whether the file is found with these options: what stands in Hadoop's own files is not known here."""
    try:
        found = pyarrow.fs.S3FileSystem(**options).get_file_info(file.read.removeprefix(S3A))
    except OSError:
        return False
    return bool(found.is_file)
