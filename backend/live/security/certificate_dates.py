"""Until when a certificate is good, read from its file: just so much of DER as leads to that (X.509, RFC 5280)."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

BEGINNING = "-----BEGIN CERTIFICATE-----"
END = "-----END CERTIFICATE-----"
EXPLICIT_VERSION = 0xA0
UTC_TIME = 0x17
FIELDS_BEFORE_VALIDITY = 3
"""Its serial number, how it is signed, and by whom. The version before them may be left out."""


def not_after(path: Path) -> datetime | None:
    """When the first certificate in the PEM file `path` expires; None when there is none that can be read."""
    try:
        text = path.read_text()
        first = text[text.index(BEGINNING) : text.index(END) + len(END)]
        return _not_after(ssl.PEM_cert_to_DER_cert(first))
    except (OSError, ValueError, IndexError):
        return None


def _not_after(der: bytes) -> datetime:
    _, at, _ = _element(der, 0)  # the certificate
    _, at, _ = _element(der, at)  # what is signed of it
    tag, _, end = _element(der, at)
    if tag == EXPLICIT_VERSION:
        at = end
    for _ in range(FIELDS_BEFORE_VALIDITY):
        _, _, at = _element(der, at)
    _, at, _ = _element(der, at)  # the validity: from when, until when
    _, _, at = _element(der, at)
    tag, begin, end = _element(der, at)
    form = "%y%m%d%H%M%SZ" if tag == UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(der[begin:end].decode("ascii"), form).replace(tzinfo=UTC)


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    tag, length = der[at], der[at + 1]
    begin = at + 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(der[begin : begin + size], "big")
        begin += size
    return tag, begin, begin + length
