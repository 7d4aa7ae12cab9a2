"""Files at addresses, which every process opens by itself."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from quarterdeck.backend.pipeline.address import Address, address_of
from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging.group_judge import lines_of_file
from tests.pipeline.s3_bucket import s3_bucket

LINES = [b'{"a":1}\n', b"torn"]


class FakeSession:
    """A session of Spark that has nothing but a configuration."""

    def __init__(self, **settings: str) -> None:
        self.settings = {f"spark.hadoop.fs.s3a.{name.replace('_', '.')}": value for name, value in settings.items()}
        self.conf = self

    def get(self, name: str, default: str | None) -> str | None:
        return self.settings.get(name, default)


def lines_at(address: Address) -> list[bytes]:
    """As a task reads them."""
    file = InputFile(str(address), str(address), source=address)
    return list(lines_of_file(pickle.loads(pickle.dumps(file))))


def test_files_are_opened_under_their_names(tmp_path: Path) -> None:
    file = tmp_path / "odd [name] %20.jsonl"
    file.write_bytes(b"".join(LINES))
    pyarrow.parquet.write_table(pyarrow.table({"raw": ["one", "two"]}), tmp_path / "events.parquet")
    assert lines_at(address_of(f"file:{file}")) == LINES
    assert lines_at(address_of(f"file://{tmp_path}/events.parquet")) == [b"one", b"two"]
    with pytest.raises(FileNotFoundError):
        lines_at(address_of("file:/nowhere.jsonl"))


def test_only_finished_files_are_found(tmp_path: Path) -> None:
    for name in ("run=x/a.jsonl", "run=x/_open/b.jsonl", "_stream/c.jsonl", ".tables-1/d.parquet", "_e"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"1")
    (found,) = address_of(f"file://{tmp_path}").files()
    assert (str(found.place), found.size_bytes) == (f"file:{tmp_path}/run=x/a.jsonl", 1)
    assert [file.place.name for file in address_of(f"file://{tmp_path}/_e").files()] == ["_e"], "it was named"
    assert address_of(f"file://{tmp_path}/nothing").files() == []


def test_what_nothing_reads_is_an_error_of_files() -> None:
    with pytest.raises(OSError, match="nowhere"):
        address_of("nowhere://bucket/one")


@pytest.mark.parametrize("comment", ["", "# keys\n\n"])
def test_buckets_are_opened_with_the_configuration_of_spark(
    comment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        f"{comment}spark.hadoop.fs.s3a.access.key   one\nspark.hadoop.fs.s3a.secret.key=two\n"
        "spark.hadoop.fs.s3a.bucket.other.access.key: three\nspark.hadoop.fs.s3a.endpoint.region eu-central-1\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    system = address_of("s3a://bucket/journals")._system
    assert system.region == "eu-central-1" and system != address_of("s3a://other/journals")._system
    given: Any = FakeSession(endpoint_region="us-east-2", access_key="a", secret_key="b")
    assert (address := address_of("s3a://bucket/journals", given))._system.region == "us-east-2"
    assert (address / "events").delta_options == {
        "aws_region": "us-east-2", "aws_access_key_id": "a", "aws_secret_access_key": "b",
    }  # fmt: skip


@pytest.fixture
def endpoint() -> Iterator[str]:
    """A server of S3 with a file in its bucket."""
    with s3_bucket() as (endpoint, bucket):
        bucket.put_object(Key="run=x/one.jsonl", Body=b"".join(LINES))
        yield endpoint


@pytest.mark.long
@pytest.mark.parametrize("prefix", ["", "bucket_bucket_"])
def test_s3_is_read_with_the_credentials_of_spark(endpoint: str, prefix: str, tmp_path: Path) -> None:
    settings = {"endpoint": endpoint, "endpoint_region": "us-east-1", "path_style_access": "true"}
    session: Any = FakeSession(**settings, **{f"{prefix}access_key": "test", f"{prefix}secret_key": "test"})
    bucket = address_of("s3a://bucket", session)
    (found,) = bucket.files()
    assert str(found.place) == "s3a://bucket/run=x/one.jsonl" and lines_at(found.place) == LINES
    with pytest.raises(FileNotFoundError):
        lines_at(bucket / "nothing.jsonl")
    (bucket / "audit" / "_store.json").write_bytes(b"12")
    assert (bucket / "audit").is_dir() and (bucket / "audit" / "_store.json").read_bytes() == b"12"
