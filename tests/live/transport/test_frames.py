from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.messages import Heartbeat
from quarterdeck.backend.live.transport.connection import MESSAGE
from quarterdeck.backend.live.transport.frames import (
    PREFIX_BYTES,
    BadFrame,
    FrameParser,
    FrameTooLarge,
    content_of,
    frame_of,
)
from quarterdeck.backend.live.transport.handshake import (
    ANSWER,
    HELLO,
    PROTOCOL_VERSION,
    HandshakeHello,
    Welcome,
    impostor_reason,
    refusal_of,
    rejection_of,
)

HERE, THERE = Address("127.0.0.1:5701"), Address("127.0.0.1:5702")
OURS = HandshakeHello(PROTOCOL_VERSION, "dev", HERE, "uuid-1")


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(PREFIX_BYTES, "big") + payload


@given(payloads=st.lists(st.binary(max_size=40)), cuts=st.lists(st.integers(1, 9), min_size=1))
def test_frames_survive_any_chopping(payloads: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(frame, payloads))
    parser, found, place, turn = FrameParser(), [], 0, 0
    while place < len(stream):
        size = cuts[turn % len(cuts)]
        found += [bytes(payload) for payload in parser.feed(stream[place : place + size])]
        place, turn = place + size, turn + 1
    assert found == payloads
    assert parser.pending_bytes == 0


def test_a_frame_over_the_limit_is_refused_by_its_announcement_alone() -> None:
    parser = FrameParser(limit=10)
    frames = parser.feed(frame(b"0123456789") + (11).to_bytes(PREFIX_BYTES, "big"))
    assert bytes(next(frames)) == b"0123456789"
    with pytest.raises(FrameTooLarge, match="announced a frame of 11 bytes; the limit is 10"):
        next(frames)


def test_nobody_can_send_what_nobody_would_accept() -> None:
    with pytest.raises(FrameTooLarge):
        frame_of(HandshakeHello(1, "x" * 100, HERE, "u"), limit=50)


@given(st.binary(max_size=60))
def test_garbage_is_one_kind_of_error(payload: bytes) -> None:
    for decoder in (HELLO, ANSWER, MESSAGE):
        try:
            content_of(decoder, memoryview(payload))
        except BadFrame:
            pass


def test_deep_nesting_and_bad_text_are_bad_frames() -> None:
    nested, cut_short = b"\x91" * 100_000, b"\x92\xb1quarterdeck-hello\x01"
    not_utf8 = b"\x95\xb1quarterdeck-hello\x01\xa1\xff\xa1a\xa1u"
    for payload in (nested, cut_short, not_utf8):
        with pytest.raises(BadFrame):
            content_of(HELLO, memoryview(payload))


def test_messages_come_back_as_they_went() -> None:
    beat = Heartbeat("a", "b", HERE, 3, (THERE,))
    (payload,) = FrameParser().feed(frame_of(beat))
    assert content_of(MESSAGE, payload) == beat


@pytest.mark.parametrize(
    ("hello", "reason"),
    [
        (HandshakeHello(PROTOCOL_VERSION, "dev", THERE, "u"), None),
        (HandshakeHello(9, "dev", THERE, "u"), "speaks protocol version 9, not 4"),
        (HandshakeHello(PROTOCOL_VERSION, "prod", THERE, "u"), "belongs to the cluster 'prod', not 'dev'"),
        (HandshakeHello(PROTOCOL_VERSION, "dev", Address("nowhere"), "u"), "gives an address that is none"),
        (HandshakeHello(PROTOCOL_VERSION, "dev", Address("127.0.0.1:05702"), "u"), "instead of"),
        (HandshakeHello(PROTOCOL_VERSION, "dev", HERE, "u"), "claims to be 127.0.0.1:5701 itself"),
        (HandshakeHello(PROTOCOL_VERSION, "dev", THERE, ""), "has no uuid"),
    ],
)
def test_who_is_a_stranger(hello: HandshakeHello, reason: str | None) -> None:
    found = refusal_of(hello, OURS)
    assert found is None if reason is None else found is not None and reason in found[1]


@pytest.mark.parametrize(
    ("oldest", "newest", "ours_oldest", "ours_newest", "reason"),
    [
        (2, 0, 2, 3, None),  # a member of the version before
        (2, 3, 2, 3, None),
        (3, 4, 2, 3, None),  # one of the version after
        (4, 5, 2, 3, "speaks protocol version 4 to 5, not 2 to 3"),
        (1, 0, 2, 3, "speaks protocol version 1, not 2 to 3"),
    ],
)
def test_members_talk_if_there_is_a_version_that_both_speak(
    oldest: int, newest: int, ours_oldest: int, ours_newest: int, reason: str | None
) -> None:
    theirs = HandshakeHello(oldest, "dev", THERE, "u", newest=newest)
    ours = HandshakeHello(ours_oldest, "dev", HERE, "v", newest=ours_newest)
    found = refusal_of(theirs, ours)
    assert found == (None if reason is None else ("other-version", reason))
    assert (refusal_of(ours, theirs) is None) == (reason is None), "both sides decide alike"


@pytest.mark.parametrize(
    ("hello", "cause", "told"),
    [
        (HandshakeHello(PROTOCOL_VERSION, "prod", THERE, "u"), "other-cluster", "other-cluster"),
        (HandshakeHello(9, "prod", THERE, "u"), "other-version", "rejected"),
        (HandshakeHello(PROTOCOL_VERSION, "dev", HERE, "u"), "itself", "itself"),
        (HandshakeHello(PROTOCOL_VERSION, "dev", THERE, "u", b"n" * 16), "secret", "rejected"),
    ],
)
def test_a_rejection_says_what_the_one_who_dialled_may_make_of_it(hello: HandshakeHello, cause: str, told: str) -> None:
    found = refusal_of(hello, OURS)
    assert found is not None and found[0] == cause
    assert rejection_of(*found).cause == told


def test_somebody_else_at_the_dialled_address_is_an_impostor() -> None:
    assert impostor_reason(Welcome(THERE, "u"), THERE) is None
    assert impostor_reason(Welcome(HERE, "u"), THERE) == "127.0.0.1:5701 answered instead"
