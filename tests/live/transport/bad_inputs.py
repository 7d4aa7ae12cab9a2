"""Bad input for a member's port: made by chance from a seed, thrown from many hosts at once."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from quarterdeck.backend.core.address import Address, host_of, make_address, port_of
from quarterdeck.backend.core.membership.messages import JoinRefused
from quarterdeck.backend.live.security.cluster_secret import NONCE_BYTES
from quarterdeck.backend.live.transport.frames import MAX_FRAME_BYTES, MAX_HANDSHAKE_BYTES, frame_of
from quarterdeck.backend.live.transport.handshake import (
    PROTOCOL_VERSION,
    Challenge,
    HandshakeHello,
    HandshakeRejection,
    Proof,
    Welcome,
)

REQUEST = b"GET /hazelcast/health HTTP/1.1\r\nHost: a\r\n\r\n"
LATER = 0.02
"""Seconds between two pieces of what is said slowly."""


@dataclass(frozen=True)
class BadInput:
    kind: str
    pieces: tuple[bytes, ...]
    ending: Literal["waits", "closes", "resets"]


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def hello(rng: Random) -> bytes:
    """From nobody: a member's greeting, with a nonce or without."""
    nonce = rng.choice((b"", rng.randbytes(NONCE_BYTES), rng.randbytes(rng.randrange(100))))
    address = make_address(f"10.0.{rng.randrange(4)}.{rng.randrange(250)}", rng.randrange(1, 65_536))
    return frame_of(
        HandshakeHello(PROTOCOL_VERSION, rng.choice(("dev", "dev", "prod", "x" * 500)), address, "nobody", nonce)
    )


def out_of_turn(rng: Random) -> bytes:
    somebody = Address("10.0.0.1:5701")
    content = rng.choice(
        (
            Welcome(somebody, "u"),
            HandshakeRejection("go away", crossed=True),
            Challenge(somebody, "u", rng.randbytes(NONCE_BYTES)),
            Proof(rng.randbytes(32)),
            JoinRefused("no"),
        )
    )
    return frame_of(content)


def mutated(rng: Random) -> bytes:
    whole = bytearray(hello(rng))
    for _ in range(rng.randrange(1, 6)):
        whole[rng.randrange(len(whole))] = rng.randrange(256)
    return bytes(whole)


def nested(rng: Random) -> bytes:
    return frame(rng.choice((b"\x91", b"\x81\xa1a", b"\xdd\x7f\xff\xff\xff")) * rng.randrange(1, 800))


MAKERS: dict[str, Callable[[Random], tuple[bytes, ...]]] = {
    "noise": lambda rng: (rng.randbytes(rng.randrange(1, 3_000)),),
    "noise in a frame": lambda rng: (frame(rng.randbytes(rng.randrange(0, 300))),),
    "half a frame": lambda rng: (frame(bytes(rng.randrange(1, 4_000)))[: rng.randrange(1, 200)],),
    "too long a frame": lambda rng: (struct.pack(">I", rng.randrange(MAX_HANDSHAKE_BYTES + 1, 2**24)) + bytes(99),),
    "far too long a frame": lambda rng: (struct.pack(">I", rng.randrange(MAX_FRAME_BYTES, 2**32)),),
    "nested": lambda rng: (nested(rng),),
    "out of turn": lambda rng: (out_of_turn(rng),),
    "mutated hello": lambda rng: (mutated(rng),),
    "hello and noise": lambda rng: (hello(rng), rng.randbytes(rng.randrange(1, 2_000))),
    "hello twice": lambda rng: (hello(rng), hello(rng)),
    "hello and request": lambda rng: (hello(rng), REQUEST),
    "hello and half a frame": lambda rng: (hello(rng) + struct.pack(">I", 1_000) + bytes(rng.randrange(999)),),
    "request and hello": lambda rng: (REQUEST, hello(rng)),
    "half a request": lambda rng: (REQUEST[: rng.randrange(1, len(REQUEST) - 1)],),
    "bad request": lambda rng: (b"GET " + rng.randbytes(rng.randrange(1, 500)) + b"\r\n\r\n",),
    "long request": lambda rng: (REQUEST[:-2] + b"A: b\r\n" * rng.randrange(1, 5_000),),
    "letters": lambda rng: (bytes(rng.choices(range(65, 91), k=rng.randrange(1, 2_000))),),
    "half a body": lambda rng: (
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n" + b"x" * rng.randrange(899),
    ),
    "TLS": lambda rng: (b"\x16\x03\x01" + rng.randbytes(rng.randrange(2, 600)),),
    "slow": lambda rng: tuple(bytes([byte]) for byte in rng.choice((REQUEST, hello(rng)))[: rng.randrange(2, 12)]),
    "nothing": lambda rng: (),
}


def bad_input(rng: Random, *, patient: float = 0.02) -> BadInput:
    """`patient` is the share of those who wait until they are hung up on."""
    kind = rng.choice(tuple(MAKERS))
    ending = rng.choices(("waits", "closes", "resets"), (patient, (1 - patient) / 2, (1 - patient) / 2))[0]
    return BadInput(kind, MAKERS[kind](rng), ending)  # type: ignore[arg-type]


async def throw(address: Address, bad: BadInput, source: str, tls: ssl.SSLContext | None = None) -> None:
    """Connect from `source`, one of the many addresses of this machine's loopback, and say it."""
    try:
        reader, writer = await asyncio.open_connection(
            host_of(address), port_of(address), local_addr=(source, 0), limit=2**12, ssl=tls
        )
    except OSError:  # no port left on this side, or no room in the member's backlog
        return
    try:
        for number, piece in enumerate(bad.pieces):
            writer.write(piece)
            if number + 1 < len(bad.pieces):
                await asyncio.sleep(LATER if bad.kind == "slow" else 0)
        if bad.ending == "waits":
            async with asyncio.timeout(3):
                while await reader.read(4096):
                    pass
        elif bad.pieces:
            await writer.drain()
        if bad.ending == "resets":
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except (ConnectionError, TimeoutError):
        pass
    finally:
        writer.transport.abort() if bad.ending == "resets" else writer.close()


async def throw_many(
    address: Address,
    count: int,
    seed: int,
    *,
    at_a_time: int = 64,
    hosts: int = 50,
    tls: ssl.SSLContext | None = None,
) -> Counter[str]:
    """Throw `count` of them; how many there were of each kind. With `tls` every other one is said through TLS."""
    rng, kinds = Random(seed), Counter[str]()
    waiting: set[asyncio.Task[None]] = set()
    for number in range(count):
        bad = bad_input(rng)
        kinds[bad.kind] += 1
        waiting.add(
            asyncio.create_task(throw(address, bad, f"127.0.0.{2 + number % hosts}", tls if number % 2 else None))
        )
        if len(waiting) >= at_a_time:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    if waiting:
        await asyncio.wait(waiting)
    return kinds


def resident_bytes(pid: int) -> int:
    """How much memory of its own a process has at present."""
    _, resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[:3]
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
