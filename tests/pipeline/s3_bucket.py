"""A server of S3 with a bucket: moto's, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import pytest

KEYS: dict[str, Any] = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}


@contextmanager
def s3_bucket() -> Iterator[tuple[str, Any]]:
    """The endpoint of a server, and its only bucket, which is empty and is named ``bucket``."""
    moto, boto3 = pytest.importorskip("moto.server"), pytest.importorskip("boto3")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        endpoint = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
        # All servers of a process have the same content: that of an earlier test, too.
        build_opener(ProxyHandler({})).open(Request(f"{endpoint}/moto-api/reset", method="POST")).close()
        yield endpoint, boto3.resource("s3", endpoint_url=endpoint, **KEYS).create_bucket(Bucket="bucket")
    finally:
        server.stop()
