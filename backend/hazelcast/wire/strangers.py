"""What a peer is that does not speak the client protocol, as far as its first words show.

A listener that waits for more, as most web servers do, looks like a member that stands still: both accept and say nothing.
"""

from __future__ import annotations

import re

MOST_QUOTED = 40

SILENT = "it accepts the connection and says nothing: a member that stands still, or a listener that is no member"

TLS = "it answers in TLS: give --tls"
FIRST_WORDS: tuple[tuple[bytes, str], ...] = (
    (b"HTTP/", "it answers in HTTP: a web server, or a port for REST alone"),
    (b"SSH-", "it answers as an SSH server"),
    (b"\x15\x03\x01", TLS),
    (b"\x15\x03\x03", TLS),
    (b"HZC", "it answers as a member does to members: a port that is not for clients"),
)
PRINTABLE = re.compile(rb"[\x20-\x7e]{4,}")


def stranger(first: bytes) -> str:
    """Return what the first bytes of an answer show of the peer; empty where they may be those of a member."""
    for beginning, meaning in FIRST_WORDS:
        if first.startswith(beginning):
            return meaning
    said = PRINTABLE.match(first)
    # The length of a frame that began with four letters would be more than any first answer has.
    return f'it answers "{said[0][:MOST_QUOTED].decode()}", which no member does' if said is not None else ""
