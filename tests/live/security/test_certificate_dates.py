"""Until when a certificate is good, as `openssl` and everybody else read it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from quarterdeck.backend.live.security.tls import not_after


@pytest.mark.parametrize(
    "until",
    [datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC), datetime(2061, 1, 2, tzinfo=UTC), datetime(2001, 1, 1, tzinfo=UTC)],
)
def test_the_date_of_a_certificate(tmp_path: Path, until: datetime) -> None:
    """Until 2049 it is written with two digits for the year, later with four."""
    issued = trustme.CA().issue_cert("127.0.0.1", not_after=until)
    file = tmp_path / "member.pem"
    file.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    assert not_after(file) == until


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no certificate",
        "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    ],
)
def test_what_is_none_has_no_date(tmp_path: Path, text: str) -> None:
    file = tmp_path / "member.pem"
    file.write_text(text)
    assert not_after(file) is None
    assert not_after(tmp_path / "nothing.pem") is None
