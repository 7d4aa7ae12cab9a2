"""The cluster's secret: both sides prove that they know it, nobody says it, and no proof is good twice."""

from __future__ import annotations

import asyncio
import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.core.membership.messages import JoinRefused
from quarterdeck.backend.live.security.cluster_secret import (
    NONCE_BYTES,
    ClusterKeyring,
    ClusterSecret,
    Exchange,
)
from quarterdeck.backend.live.security.tls import WireSecurity
from quarterdeck.backend.live.transport.frames import BadFrame, FrameParser, content_of, frame_of
from quarterdeck.backend.live.transport.handshake import (
    ANSWER,
    PROTOCOL_VERSION,
    Agreement,
    Challenge,
    HandshakeHello,
    HandshakeRefused,
    HandshakeRejection,
    Initiator,
    PeerRejected,
    Proof,
    RejectionCause,
    Responder,
    Welcome,
)
from quarterdeck.backend.live.transport.limits import TransportLimits
from quarterdeck.backend.live.transport.listener import TOO_MANY_FAILURES
from tests.live.transport.http_echo import ask
from tests.live.transport.transports import Member, net
from tests.thoroughness import examples
from tests.waiting import until

HERE, THERE, ELSEWHERE = Address("127.0.0.1:5701"), Address("127.0.0.1:5702"), Address("127.0.0.1:5703")
SECRET = ClusterSecret("swordfish", "dev")
OTHER = ClusterSecret("Swordfish", "dev")
SAFE = WireSecurity(secret="swordfish")


def caller(secret: ClusterSecret | None = SECRET, address: Address = THERE) -> Initiator:
    return Initiator(HandshakeHello(PROTOCOL_VERSION, "dev", address, "u-caller"), HERE, secret)


def called(secret: ClusterSecret | None = SECRET, uuid: str = "u-called") -> Responder:
    return Responder(
        lambda: HandshakeHello(PROTOCOL_VERSION, "dev", HERE, uuid),
        secret and ClusterKeyring(secret),
        lambda hello: None,
    )


def said(content: msgspec.Struct) -> memoryview:
    return memoryview(frame_of(content))[4:]


def challenged(secret: ClusterSecret = SECRET) -> tuple[Initiator, Responder, Challenge]:
    initiator, responder = caller(secret), called(SECRET)
    challenge = responder.take(said(initiator.hello))
    assert isinstance(challenge, Challenge)
    return initiator, responder, challenge


def proof_of(initiator: Initiator, challenge: Challenge) -> Proof:
    proof = initiator.take(said(challenge))
    assert isinstance(proof, Proof)
    return proof


def test_both_prove_it_and_agree() -> None:
    initiator, responder, challenge = challenged()
    proof = proof_of(initiator, challenge)
    assert responder.agreement is None
    welcome = responder.take(said(proof))
    assert responder.agreement == Agreement(THERE, "u-caller", SECRET)
    assert initiator.agreement is None
    assert initiator.take(said(welcome)) is None
    assert initiator.agreement == Agreement(HERE, "u-called", SECRET, PROTOCOL_VERSION)


def test_without_a_secret_it_is_as_ever() -> None:
    initiator, responder = caller(None), called(None)
    welcome = responder.take(said(initiator.hello))
    assert welcome == Welcome(HERE, "u-called", newest=PROTOCOL_VERSION)
    initiator.take(said(welcome))
    assert initiator.agreement and responder.agreement


def test_the_secret_never_crosses_the_wire() -> None:
    initiator, responder, challenge = challenged()
    proof = proof_of(initiator, challenge)
    welcome = responder.take(said(proof))
    for content in (initiator.hello, challenge, proof, welcome):
        assert b"swordfish" not in bytes(said(content)) and SECRET._key not in bytes(said(content))
    assert "swordfish" not in repr((SECRET, SAFE))


def test_a_wrong_secret_is_found_out_by_either_side() -> None:
    initiator, responder, challenge = challenged(OTHER)
    with pytest.raises(PeerRejected, match="does not know the secret of the cluster") as refused:
        responder.take(said(proof_of(initiator, challenge)))
    assert refused.value.hostile and responder.agreement is None

    initiator, _, challenge = challenged()
    proof_of(initiator, challenge)
    for proof in (b"", b"\0" * 32):
        with pytest.raises(HandshakeRefused, match="secret of the cluster"):
            initiator.take(said(Welcome(HERE, "u-called", proof)))
        assert initiator.agreement is None


def test_only_one_of_the_two_has_a_secret() -> None:
    with pytest.raises(PeerRejected, match="does not prove that it knows the secret") as refused:
        called().take(said(caller(None).hello))
    assert refused.value.hostile
    with pytest.raises(PeerRejected, match="no secret is configured at the member that it calls") as refused:
        called(None).take(said(caller().hello))
    assert not refused.value.hostile
    with pytest.raises(HandshakeRefused, match="it does not prove that it knows the secret"):
        caller().take(said(Welcome(HERE, "u-called")))
    with pytest.raises(HandshakeRefused, match="no secret is configured here"):
        caller(None).take(said(Challenge(HERE, "u-called", bytes(NONCE_BYTES))))


def test_a_recorded_proof_is_worth_nothing() -> None:
    initiator, responder, challenge = challenged()
    hello, proof = initiator.hello, proof_of(initiator, challenge)
    welcome = responder.take(said(proof))
    later = called()
    assert isinstance(later.take(said(hello)), Challenge)
    with pytest.raises(PeerRejected):
        later.take(said(proof))
    afresh = caller()
    proof_of(afresh, challenge)
    with pytest.raises(HandshakeRefused):
        afresh.take(said(welcome))


def test_a_member_is_no_oracle_against_itself() -> None:
    """Whoever is called by a member cannot call it back and have it answer its own challenge."""
    initiator = caller()
    mirror = Responder(
        lambda: HandshakeHello(PROTOCOL_VERSION, "dev", THERE, "u-caller"), ClusterKeyring(SECRET), lambda hello: None
    )
    stolen = HandshakeHello(PROTOCOL_VERSION, "dev", HERE, "u-called", initiator.hello.nonce)
    challenge = mirror.take(said(stolen))
    assert isinstance(challenge, Challenge)
    proof = proof_of(initiator, Challenge(HERE, "u-called", challenge.nonce))
    with pytest.raises(PeerRejected):
        mirror.take(said(proof))


@pytest.mark.parametrize("cause", ["other-cluster", "itself"])
@pytest.mark.parametrize("challenges", [False, True])
@pytest.mark.parametrize("without_secret", [False, True])
def test_a_cause_to_found_a_cluster_is_believed_only_with_a_proof(
    cause: RejectionCause, challenges: bool, without_secret: bool
) -> None:
    """Any process that answers at a listed address could otherwise make a joiner found a cluster of its own."""
    initiator = caller()
    if challenges:
        proof_of(initiator, Challenge(HERE, "u-called", bytes(NONCE_BYTES)))
    rejection = HandshakeRejection("belongs elsewhere", cause=cause, without_secret=without_secret)
    with pytest.raises(HandshakeRefused, match="no member answers there, as far as it proves") as refused:
        initiator.take(said(rejection))
    assert refused.value.cause == "no-member"  # which counts as silence where a member may found a cluster
    with pytest.raises(HandshakeRefused) as refused:
        caller(None).take(said(rejection))
    assert refused.value.cause == cause


async def test_a_member_with_a_secret_proves_to_itself_that_an_address_is_its_own() -> None:
    async with net(listening=1, security=SAFE) as world:
        a, _, _ = world.members
        a.transport.send(Address(a.address.replace("127.0.0.1", "localhost")), JoinRefused("1"))
        await until(lambda: a.failed)
        assert a.causes == ["itself"]


def test_a_challenge_is_good_for_one_proof_and_asked_once() -> None:
    initiator, responder, challenge = challenged()
    proof = proof_of(initiator, challenge)
    with pytest.raises(BadFrame, match="twice"):
        initiator.take(said(challenge))
    responder.take(said(proof))
    with pytest.raises(BadFrame):
        responder.take(said(initiator.hello))


def test_a_uuid_that_changes_meanwhile_is_not_vouched_for() -> None:
    uuid = "old"
    responder = Responder(
        lambda: HandshakeHello(PROTOCOL_VERSION, "dev", HERE, uuid), ClusterKeyring(SECRET), lambda hello: None
    )
    initiator = caller()
    challenge = responder.take(said(initiator.hello))
    assert isinstance(challenge, Challenge)
    uuid = "new"
    with pytest.raises(PeerRejected, match="took a new uuid"):
        responder.take(said(proof_of(initiator, challenge)))


def test_our_own_dial_that_begins_meanwhile_takes_precedence() -> None:
    verdicts = iter((None, HandshakeRejection("our own dial is under way", crossed=True)))
    responder = Responder(
        lambda: HandshakeHello(PROTOCOL_VERSION, "dev", HERE, "u-called"),
        ClusterKeyring(SECRET),
        lambda hello: next(verdicts),
    )
    initiator = caller()
    challenge = responder.take(said(initiator.hello))
    assert isinstance(challenge, Challenge)
    with pytest.raises(PeerRejected) as refused:
        responder.take(said(proof_of(initiator, challenge)))
    assert refused.value.answer.crossed and responder.agreement is None


EXCHANGE = Exchange(1, "dev", HERE, "a", b"n" * 32, THERE, "b", b"m" * 32)


def test_a_proof_covers_everything() -> None:
    variants = [
        EXCHANGE,
        structs.replace(EXCHANGE, protocol=2),
        structs.replace(EXCHANGE, cluster="prod"),
        structs.replace(EXCHANGE, caller=ELSEWHERE),
        structs.replace(EXCHANGE, caller_uuid="c"),
        structs.replace(EXCHANGE, caller_nonce=b"o" * 32),
        structs.replace(EXCHANGE, called=ELSEWHERE),
        structs.replace(EXCHANGE, called_uuid="c"),
        structs.replace(EXCHANGE, called_nonce=b"o" * 32),
        structs.replace(EXCHANGE, caller_uuid="ab", caller_nonce=b""),
    ]
    secrets = (SECRET, OTHER, ClusterSecret("swordfish", "prod"))
    proofs = [
        secret.proof(side, exchange)  # type: ignore[arg-type]
        for secret, side, exchange in itertools.product(secrets, ("calls", "answers"), variants)
    ]
    assert len(set(proofs)) == len(proofs)


@given(flip=st.integers(0, 32 * 8 - 1))
def test_a_proof_with_one_bit_turned_is_none(flip: int) -> None:
    proof = bytearray(SECRET.proof("calls", EXCHANGE))
    assert SECRET.proven("calls", EXCHANGE, bytes(proof))
    proof[flip // 8] ^= 1 << flip % 8
    assert not SECRET.proven("calls", EXCHANGE, bytes(proof))
    assert not SECRET.proven("calls", EXCHANGE, bytes(proof[:-1]))


@settings(max_examples=examples(300))
@given(payloads=st.lists(st.binary(max_size=120), max_size=3), begun=st.booleans())
def test_whatever_is_said_nobody_gets_in_without_the_secret(payloads: list[bytes], begun: bool) -> None:
    responder, initiator = called(), caller()
    if begun:
        responder.take(said(initiator.hello))
    for payload in payloads:
        for side in (responder, initiator):
            try:
                side.take(memoryview(payload))
            except (BadFrame, PeerRejected, HandshakeRefused):
                pass
    assert responder.agreement is None and initiator.agreement is None


def test_an_empty_secret_is_an_error() -> None:
    with pytest.raises(ValueError, match="refuses no peer"):
        ClusterSecret("", "dev")


# On real sockets


@pytest.mark.parametrize("_", range(5))
async def test_members_with_the_same_secret_talk_also_when_their_dials_cross(_: int) -> None:
    async with net(security=SAFE) as world:
        a, b, _ = world.members
        a.say(b, *"12")
        b.say(a, *"34")
        await until(lambda: b.words == list("12") and a.words == list("34"))
        await until(lambda: len(a.transport._connections) == len(b.transport._connections) == 1)
        assert not (a.failed or b.failed or a.strangers or b.strangers)


@pytest.mark.parametrize(
    ("secret", "reason"),
    [
        ("wrong", "does not know the secret of the cluster"),
        ("", "does not prove that it knows the secret of the cluster"),
    ],
)
async def test_who_does_not_know_it_is_a_stranger_and_told_so(secret: str, reason: str) -> None:
    async with net(listening=1, security=SAFE) as world:
        a, b, _ = world.members
        other = Member(b.address, world.network, security=WireSecurity(secret))
        other.say(a, "let me in")
        await until(lambda: other.failed)
        assert a.strangers == [reason]
        assert other.failed == [(a.address, f"it refuses this member, which {reason}")]
        assert not a.got and not a.transport.connected
        other.transport.abort()


async def test_who_is_called_and_does_not_know_it_is_not_believed() -> None:
    """A listener that welcomes everybody, with a proof made up."""

    async with net(listening=1, security=SAFE) as world:
        a, b, _ = world.members

        async def pretend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(4096)
            writer.write(frame_of(Challenge(b.address, "u", bytes(NONCE_BYTES))))
            await reader.read(4096)
            writer.write(frame_of(Welcome(b.address, "u", bytes(32))))

        host, port = b.address.split(":")
        server = await asyncio.start_server(pretend, host, int(port))
        a.say(b, "trust")
        await until(lambda: a.failed)
        assert a.failed == [(b.address, "this member refuses it: it does not know the secret of the cluster")]
        server.close()


async def test_guessing_is_slowed_down() -> None:
    limits = TransportLimits(failures=4, failures_per_second=0)
    async with net(security=SAFE, limits=limits) as world:
        a, b, _ = world.members
        answers = []
        for _ in range(10):
            hello = HandshakeHello(PROTOCOL_VERSION, "dev", b.address, "u", bytes(NONCE_BYTES))
            answers.append(await ask(a.address, frame_of(hello) + frame_of(Proof(bytes(32)))))
        heard = [list(FrameParser().feed(answer)) for answer in answers if answer]
        first = [content_of(ANSWER, frames[0]) for frames in heard]
        assert all(isinstance(answer, Challenge) for answer in first[:4])
        assert first[4:] == [HandshakeRejection(TOO_MANY_FAILURES)] * 6
        assert a.strangers == ["does not know the secret of the cluster"] * 4


def keyring(*secrets: ClusterSecret) -> ClusterKeyring:
    made = ClusterKeyring(secrets[0])
    for secret in secrets[1:]:
        made.add(secret)
    return made


def test_two_secrets_are_accepted_and_one_is_used() -> None:
    ring = keyring(SECRET, OTHER)
    ring.add(ClusterSecret("swordfish", "dev"))
    assert ring.used is SECRET and ring.accepted == (SECRET, OTHER)
    ring.use(ClusterSecret("Swordfish", "dev"))
    assert ring.used is OTHER and ring.accepted == (OTHER, SECRET)
    assert ring.remove(ClusterSecret("swordfish", "dev")) is SECRET
    assert ring.accepted == (OTHER,) and ring.remove(SECRET) is None


def test_a_turn_that_would_shut_members_out_is_refused() -> None:
    ring, third = keyring(SECRET, OTHER), ClusterSecret("third", "dev")
    for turn, problem in ((ring.add, "two secrets"), (ring.use, "add it"), (ring.remove, "")):
        if problem:
            with pytest.raises(CommandRefused, match=problem):
                turn(third)
    with pytest.raises(CommandRefused, match="is used"):
        ring.remove(SECRET)
    assert ring.accepted == (SECRET, OTHER)


def test_members_know_a_secret_by_a_fingerprint_that_is_none_of_its_letters() -> None:
    assert SECRET.fingerprint == ClusterSecret("swordfish", "dev").fingerprint != OTHER.fingerprint
    assert SECRET.fingerprint != ClusterSecret("swordfish", "prod").fingerprint
    assert len(SECRET.fingerprint) == 12 and "swordfish" not in SECRET.fingerprint


@pytest.mark.parametrize("ours", [SECRET, OTHER])
def test_either_of_two_accepted_secrets_agrees_and_is_the_one_that_answers(ours: ClusterSecret) -> None:
    initiator = caller(ours)
    responder = Responder(
        lambda: HandshakeHello(PROTOCOL_VERSION, "dev", HERE, "u-called"), keyring(SECRET, OTHER), lambda hello: None
    )
    challenge = responder.take(said(initiator.hello))
    assert isinstance(challenge, Challenge)
    initiator.take(said(responder.take(said(proof_of(initiator, challenge)))))
    assert initiator.agreement == Agreement(HERE, "u-called", ours, PROTOCOL_VERSION)
    assert responder.agreement == Agreement(THERE, "u-caller", ours)


async def test_the_secret_turns_under_a_connection_and_what_it_was_proven_by_ends_with_it() -> None:
    async with net(security=SAFE) as world:
        a, b, _ = world.members
        rings = [member.transport.keyring for member in (a, b)]
        a.say(b, "old")
        await until(lambda: b.words == ["old"])
        for ring in rings:
            assert ring is not None
            ring.add(OTHER)
            ring.use(OTHER)
        a.say(b, "still")
        await until(lambda: b.words == ["old", "still"])
        for member in (a, b):
            assert member.transport.keyring is not None
            removed = member.transport.keyring.remove(SECRET)
            assert removed is not None
            member.transport.disconnect(proven=removed)
        await until(lambda: not (a.transport.connected or b.transport.connected))
        a.say(b, "new")
        await until(lambda: b.words == ["old", "still", "new"])
        assert not a.failed and not b.failed


async def test_a_member_that_knows_one_of_the_two_alone_is_reached_with_it() -> None:
    """As one that was started again with the old secret, or with the new one, while the secret turns."""

    async with net(security=SAFE) as world:
        a, b, _ = world.members
        assert a.transport.keyring is not None
        a.transport.keyring.add(OTHER)
        a.transport.keyring.use(OTHER)
        a.say(b, "with the old one")
        await until(lambda: b.words)
        assert not a.failed
