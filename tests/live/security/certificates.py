"""Certificates for tests, as files."""

from __future__ import annotations

from pathlib import Path

import trustme

from quarterdeck.backend.live.security.tls import TlsFiles


class Authority:
    """Signs what the tests need and writes it under `place`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.ca = trustme.CA()
        self.file = place / "authority.pem"
        self.ca.cert_pem.write_to_path(str(self.file))

    def files(self, *names: str, stem: str = "member", mutual: bool = True) -> TlsFiles:
        """A certificate for these hosts; for 127.0.0.1 when none is named. Written over an older one of the same stem."""
        issued = self.ca.issue_cert(*(names or ("127.0.0.1",)))
        certificate, key = self.place / f"{stem}.pem", self.place / f"{stem}.key"
        certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(str(key))
        return TlsFiles(certificate, key, self.file, mutual)
