"""The two sides of a handshake, as state machines without a socket: received messages go in, messages to send come out."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, structs

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RefusalCause, UnreachableCause
from quarterdeck.backend.live.security.cluster_secret import (
    NONCE_BYTES,
    ClusterKeyring,
    ClusterSecret,
    Exchange,
    new_nonce,
)
from quarterdeck.backend.live.transport.frames import BadFrame, content_of
from quarterdeck.backend.live.transport.handshake_messages import (
    ANSWER,
    HELLO,
    NO_SECRET_HERE,
    NO_SECRET_THERE,
    OLDEST_VERSION,
    PROOF,
    PROTOCOL_VERSION,
    QUOTED_CHARACTERS,
    WRONG_SECRET,
    Challenge,
    HandshakeHello,
    HandshakeRejection,
    Proof,
    Welcome,
    common_version,
    impostor_reason,
    refusal_of,
    rejection_of,
)


class HandshakeRefused(ConnectionError):
    """The handshake failed at one of the two sides. `crossed` when the other side's own dial takes precedence over ours."""

    def __init__(self, reason: str, crossed: bool = False, cause: UnreachableCause = "rejected") -> None:
        super().__init__(reason)
        self.crossed = crossed
        self.cause = cause


class PeerRejected(Exception):
    """The peer that has dialled us is refused, for `cause`.

    `answer` says why; `hostile` when it could not prove what it claims.
    """

    def __init__(self, answer: HandshakeRejection, cause: RefusalCause, hostile: bool = False) -> None:
        super().__init__(answer.reason)
        self.answer = answer
        self.cause = cause
        self.hostile = hostile


class Agreement(Struct, frozen=True):
    """Who the other side is."""

    address: Address
    uuid: str
    secret: ClusterSecret | None = None
    """The secret that both have proven."""
    version: int = OLDEST_VERSION
    """The protocol version that both speak."""


AdmissionCheck = Callable[[HandshakeHello], HandshakeRejection | None]
"""What else speaks against a peer whose hello is right; None: nothing."""


class Initiator:
    """The side that has dialled `dialled`. Begins with `hello`; `agreement` is set when all is said.

    `certified` when TLS has proven already that a member is there.
    """

    def __init__(
        self, ours: HandshakeHello, dialled: Address, secret: ClusterSecret | None, certified: bool = False
    ) -> None:
        self.hello = ours if secret is None else structs.replace(ours, nonce=new_nonce())
        self.agreement: Agreement | None = None
        self._dialled = dialled
        self._secret = secret
        self._certified = certified
        self._exchange: Exchange | None = None

    def take(self, payload: memoryview) -> Proof | None:
        """Return what to say to the answer `payload`, if anything.

        Raises:
            HandshakeRefused: The responder refuses.
            BadFrame: The answer cannot be read.
        """
        answer = content_of(ANSWER, payload)
        if isinstance(answer, HandshakeRejection):
            raise self._refused(answer)
        if isinstance(answer, Welcome):
            self._check(answer)
        impostor = impostor_reason(answer, self._dialled)
        if impostor is not None:
            raise HandshakeRefused(f"this member refuses it: {impostor}")
        if isinstance(answer, Challenge):
            return self._prove(answer)
        self.agreement = Agreement(answer.address, answer.uuid, self._secret, common_version(answer.newest))
        return None

    def _prove(self, challenge: Challenge) -> Proof:
        if self._secret is None:
            raise HandshakeRefused(f"this member refuses it: it {NO_SECRET_HERE}")
        if self._exchange is not None:
            raise BadFrame("asked for proof of the secret twice")
        self._exchange = _exchange(self.hello, challenge)
        return Proof(self._secret.proof("calls", self._exchange))

    def _refused(self, answer: HandshakeRejection) -> HandshakeRefused:
        """Return what the refusal is worth: a claim that a member would have proven is no member's."""
        reason = f"it refuses this member, which {answer.reason[: 3 * QUOTED_CHARACTERS]}"
        if answer.cause != "rejected" or answer.crossed:
            return HandshakeRefused(reason, answer.crossed, answer.cause)
        if not self._is_credible(answer):
            return HandshakeRefused(f"no member answers there, as far as it proves: {reason}", cause="no-member")
        return HandshakeRefused(reason, cause="rejected-by-cluster" if answer.joined else "rejected")

    def _is_credible(self, answer: HandshakeRejection) -> bool:
        """Return whether a member refuses. Only one with another secret, or without any, cannot prove that it is one."""
        if self._secret is None or self._certified or answer.without_secret:
            return True
        if self._exchange is None:
            return False
        return not answer.proof or self._secret.proven("refuses", self._exchange, answer.proof)

    def _check(self, welcome: Welcome) -> None:
        """Refuse who does not prove the secret. No member does that: it would have refused this one before."""
        if self._secret is None:
            return
        exchange = self._exchange
        if exchange is None or not welcome.proof:
            raise HandshakeRefused(f"this member refuses it: it {NO_SECRET_THERE}", cause="no-member")
        if welcome.uuid != exchange.called_uuid or not self._secret.proven("answers", exchange, welcome.proof):
            raise HandshakeRefused(f"this member refuses it: it {WRONG_SECRET}", cause="no-member")


class Responder:
    """The side that was dialled. `agreement` is set as soon as what `take` returns is a welcome."""

    def __init__(
        self, ours: Callable[[], HandshakeHello], keyring: ClusterKeyring | None, admission_check: AdmissionCheck
    ) -> None:
        self.agreement: Agreement | None = None
        self._ours = ours
        self._keyring = keyring
        self._admission_check = admission_check
        self._hello: HandshakeHello | None = None
        self._exchange: Exchange | None = None
        self._refusal: PeerRejected | None = None
        """To be said with a proof, when the initiator has proven itself."""

    def take(self, payload: memoryview) -> Challenge | Welcome:
        """Return what to say to `payload`.

        Raises:
            PeerRejected: The initiator is refused; then nothing more is to be taken.
            BadFrame: The message cannot be read; then nothing more is to be taken.
        """
        if self._hello is None:
            return self._take_hello(content_of(HELLO, payload))
        return self._take_proof(self._hello, content_of(PROOF, payload))

    def _take_hello(self, hello: HandshakeHello) -> Challenge | Welcome:
        ours = self._ours()
        if self._keyring is not None:
            ours = structs.replace(ours, nonce=new_nonce())
        refusal = refusal_of(hello, ours)
        if refusal is not None:
            cause, reason = refusal
            self._refusal = PeerRejected(rejection_of(cause, reason), cause, hostile=reason == NO_SECRET_THERE)
            if self._keyring is None or not hello.nonce or cause != "other-version":
                raise self._refusal
        if self._keyring is None:
            return self._welcome(hello, Welcome(ours.address, ours.uuid, newest=PROTOCOL_VERSION), None)
        if len(hello.nonce) != NONCE_BYTES:
            raise BadFrame(f"sent a nonce of {len(hello.nonce)} bytes, not {NONCE_BYTES}")
        self._require_admission(hello)
        challenge = Challenge(ours.address, ours.uuid, ours.nonce)
        self._hello, self._exchange = hello, _exchange(hello, challenge)
        return challenge

    def _take_proof(self, hello: HandshakeHello, answer: Proof) -> Welcome:
        keyring, exchange = self._keyring, self._exchange
        assert keyring is not None and exchange is not None
        secret = keyring.proving("calls", exchange, answer.proof)
        if secret is None:
            raise PeerRejected(HandshakeRejection(WRONG_SECRET), "secret", hostile=True)
        if self._ours().uuid != exchange.called_uuid:
            moved = HandshakeRejection("has called while we took a new uuid; it may call again")
            self._refusal = PeerRejected(moved, "unknown")
        if self._refusal is not None:
            proven = structs.replace(self._refusal.answer, proof=secret.proof("refuses", exchange))
            raise PeerRejected(proven, self._refusal.cause)
        welcome = Welcome(exchange.called, exchange.called_uuid, secret.proof("answers", exchange), PROTOCOL_VERSION)
        return self._welcome(hello, welcome, secret)

    def _welcome(self, hello: HandshakeHello, welcome: Welcome, secret: ClusterSecret | None) -> Welcome:
        self._require_admission(hello)
        self.agreement = Agreement(hello.address, hello.uuid, secret, common_version(hello.newest))
        return welcome

    def _require_admission(self, hello: HandshakeHello) -> None:
        """Asked before and after the proof: meanwhile our own dial may have begun."""
        refused = self._admission_check(hello)
        if refused is not None:
            raise PeerRejected(refused, "certificate")


def _exchange(hello: HandshakeHello, challenge: Challenge) -> Exchange:
    return Exchange(
        protocol=hello.protocol,
        cluster=hello.cluster,
        caller=hello.address,
        caller_uuid=hello.uuid,
        caller_nonce=hello.nonce,
        called=challenge.address,
        called_uuid=challenge.uuid,
        called_nonce=challenge.nonce,
    )
