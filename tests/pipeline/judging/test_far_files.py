"""Files at addresses that tasks read by themselves, and those that only Hadoop can read."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging.far_files import FarReader, far_reader

LINES = [b'{"a":1}\n', b"torn"]


class FakeSession:
    """A session of Spark that has nothing but a configuration."""

    def __init__(self, **settings: str) -> None:
        self.settings = {f"spark.hadoop.fs.s3a.{name.replace('_', '.')}": value for name, value in settings.items()}
        self.conf = self

    def get(self, name: str, default: str | None) -> str | None:
        return self.settings.get(name, default)


def reader_for(session: FakeSession, *addresses: str) -> FarReader | None:
    return far_reader(session, [InputFile(address, address) for address in addresses])  # type: ignore[arg-type]


def test_local_addresses_are_opened_under_their_paths(tmp_path: Path) -> None:
    file = tmp_path / "odd [name] %20.jsonl"
    file.write_bytes(b"".join(LINES))
    pyarrow.parquet.write_table(pyarrow.table({"raw": ["one", "two"]}), tmp_path / "events.parquet")
    addresses = [f"file:{file}", f"file://{tmp_path}/events.parquet"]
    reader = reader_for(FakeSession(), *addresses)
    assert reader is not None
    sent = pickle.loads(pickle.dumps(reader))
    assert [list(sent.lines(InputFile(address, address))) for address in addresses] == [LINES, [b"one", b"two"]]
    with pytest.raises(FileNotFoundError):
        list(sent.lines(InputFile("file:/nowhere.jsonl", "")))


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, "hdfs://host/one.jsonl"),
        ({"aws_credentials_provider": "com.example.Keys"}, "s3a://bucket/one.jsonl"),
        ({"bucket_bucket_aws_credentials_provider": "com.example.Keys"}, "s3a://bucket/one.jsonl"),
        (
            {"endpoint": "http://127.0.0.1:1", "endpoint_region": "x", "access_key": "a", "secret_key": "b"},
            "s3a://bucket/one.jsonl",
        ),
    ],
)
def test_the_rest_is_left_to_hadoop(settings: dict[str, str], address: str, tmp_path: Path) -> None:
    assert reader_for(FakeSession(**settings), f"file:{tmp_path}/one.jsonl", address) is None


@pytest.fixture
def endpoint() -> Iterator[str]:
    """A server of S3 with two files in its bucket."""
    moto, boto3 = pytest.importorskip("moto.server"), pytest.importorskip("boto3")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        endpoint = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
        keys: dict[str, Any] = {
            "aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1",
        }  # fmt: skip
        bucket = boto3.resource("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket="bucket")
        bucket.put_object(Key="run=x/one.jsonl", Body=b"".join(LINES))
        yield endpoint
    finally:
        server.stop()


@pytest.mark.long
@pytest.mark.parametrize("prefix", ["", "bucket_bucket_"])
def test_s3_is_read_with_the_credentials_of_spark(endpoint: str, prefix: str) -> None:
    settings = {"endpoint": endpoint, "endpoint_region": "us-east-1", "path_style_access": "true"}
    keys = {f"{prefix}access_key": "test", f"{prefix}secret_key": "test"}
    address = "s3a://bucket/run=x/one.jsonl"
    reader = reader_for(FakeSession(**settings, **keys), address)
    assert reader is not None
    assert list(pickle.loads(pickle.dumps(reader)).lines(InputFile(address, address))) == LINES
    assert reader_for(FakeSession(**settings, **keys), "s3a://bucket/nothing.jsonl") is None
