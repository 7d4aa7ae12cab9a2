"""The handshake: the first messages on a connection, the rules by which peers are refused, and its two sides.

The initiator sends `HandshakeHello`, the responder answers `Welcome` or `HandshakeRejection`. When they share a secret, a
`Challenge` and a `Proof` come in between, and the welcome carries a proof as well. The sides are state machines without a
socket: received messages go in, messages to send come out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Struct, structs

from quarterdeck.backend.core.address import Address, BadAddress, parse_address
from quarterdeck.backend.core.causes import RefusalCause, UnreachableCause
from quarterdeck.backend.live.security.cluster_secret import (
    NONCE_BYTES,
    ClusterKeyring,
    ClusterSecret,
    Exchange,
    new_nonce,
)
from quarterdeck.backend.live.transport.frames import BadFrame, content_of

PROTOCOL_VERSION = 4
"""Raised whenever members say something that those of the version before could not understand."""

OLDEST_VERSION = 2
"""The oldest version that members of this one speak, too, so that a cluster can be upgraded member by member."""

NO_SECRET_THERE = "does not prove that it knows the secret of the cluster"
NO_SECRET_HERE = "asks for proof of a cluster secret, and no secret is configured here"
NO_SECRET_AT_CALLED = "asks for proof of a cluster secret, and no secret is configured at the member that it calls"
WRONG_SECRET = "does not know the secret of the cluster"


RejectionCause = Literal["rejected", "other-cluster", "itself"]
"""What the one who dialled may make of it, in the words of `backend.core.causes.UnreachableCause`."""


class HandshakeHello(Struct, frozen=True, tag="quarterdeck-hello", array_like=True):
    """The one who dialled introduces itself. `address` is where it listens, `uuid` its present incarnation."""

    protocol: int
    """The oldest version that it speaks. Members of version 2 speak no other, and compare it with theirs."""
    cluster: str
    address: Address
    uuid: str
    nonce: bytes = b""
    """The fresh number for the proof of the cluster's secret, where the cluster has one."""
    newest: int = 0
    """The newest version that it speaks; members of version 2 do not say it."""


class Challenge(Struct, frozen=True, tag="quarterdeck-challenge", array_like=True):
    """The one who was dialled says who it is and asks for the proof of the cluster's secret."""

    address: Address
    uuid: str
    nonce: bytes


class Proof(Struct, frozen=True, tag="quarterdeck-proof", array_like=True):
    """The one who dialled proves that it knows the secret."""

    proof: bytes


class Welcome(Struct, frozen=True, tag="quarterdeck-welcome", array_like=True):
    """The one who was dialled agrees, and says who it is."""

    address: Address
    uuid: str
    proof: bytes = b""
    """The proof of the secret, where the cluster has one."""
    newest: int = 0
    """The newest version that it speaks; members of version 2 do not say it."""


class HandshakeRejection(Struct, frozen=True, tag="quarterdeck-refused", array_like=True):
    """The one who was dialled will not talk.

    `crossed` when only because its own dial to the other side is under way and takes precedence, so that the other side
    should wait for that instead of giving up.
    """

    reason: str
    crossed: bool = False
    cause: RejectionCause = "rejected"
    joined: bool = False
    """The one who was dialled is in a cluster, which the other one therefore should not found anew."""
    proof: bytes = b""
    """The proof that it knows the secret, where both sides have proven it."""
    without_secret: bool = False
    """It refuses those that have a secret, since it has none: it cannot prove anything."""


HELLO = msgspec.msgpack.Decoder(HandshakeHello)
PROOF = msgspec.msgpack.Decoder(Proof)
ANSWER: msgspec.msgpack.Decoder[Welcome | HandshakeRejection | Challenge] = msgspec.msgpack.Decoder(
    Welcome | HandshakeRejection | Challenge
)

QUOTED_CHARACTERS = 100
"""The number of letters of an unidentified peer's words that are repeated to people."""


def hello_of(cluster: str, address: Address, uuid: str) -> HandshakeHello:
    """Return what a member of this version says."""
    return HandshakeHello(OLDEST_VERSION, cluster, address, uuid, newest=PROTOCOL_VERSION)


def refusal_of(hello: HandshakeHello, ours: HandshakeHello) -> tuple[RefusalCause, str] | None:
    """Why a peer that says `hello` is refused by the member that would say `ours`, or None when it is welcome."""
    if hello.protocol > _newest(ours) or _newest(hello) < ours.protocol:
        return "other-version", f"speaks protocol version {_versions(hello)}, not {_versions(ours)}"
    if hello.cluster != ours.cluster:
        named = hello.cluster[:QUOTED_CHARACTERS]
        return "other-cluster", f"belongs to the cluster {named!r}, not {ours.cluster!r}"
    try:
        canonical = parse_address(hello.address)
    except BadAddress as problem:
        return "no-member", f"gives an address that is none: {str(problem)[: 2 * QUOTED_CHARACTERS]}"
    if canonical != hello.address:
        return "no-member", f"gives the address {hello.address[:QUOTED_CHARACTERS]!r} instead of {canonical!r}"
    if hello.address == ours.address:
        return "itself", f"claims to be {ours.address} itself"
    if not hello.uuid:
        return "no-member", "has no uuid"
    if bool(hello.nonce) != bool(ours.nonce):
        return "secret", NO_SECRET_THERE if ours.nonce else NO_SECRET_AT_CALLED
    return None


def common_version(newest: int) -> int:
    """Return the newest version that this member has in common with one whose `newest` is known; 0 is that of version 2."""
    return min(max(newest, OLDEST_VERSION), PROTOCOL_VERSION)


def _newest(hello: HandshakeHello) -> int:
    return max(hello.protocol, hello.newest)


def _versions(hello: HandshakeHello) -> str:
    newest = _newest(hello)
    return str(newest) if newest == hello.protocol else f"{hello.protocol} to {newest}"


def rejection_of(refusal: RefusalCause, reason: str) -> HandshakeRejection:
    """Return what a refused peer gets as an answer: it knows best what to make of two of the causes."""
    shown_cause: RejectionCause = refusal if refusal in ("other-cluster", "itself") else "rejected"
    return HandshakeRejection(reason, cause=shown_cause, without_secret=reason == NO_SECRET_AT_CALLED)


def impostor_reason(welcome: Welcome | Challenge, dialled: Address) -> str | None:
    """Why the one who answered at `dialled` is not the member that was looked for, or None when it is."""
    if welcome.address != dialled:
        return f"{welcome.address[:QUOTED_CHARACTERS]} answered instead"
    return None if welcome.uuid else "answered without a uuid"


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
        is_itself = isinstance(answer, Challenge) and answer.address == self.hello.address
        if impostor is not None and not is_itself:
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
        if answer.crossed:
            return HandshakeRefused(reason, crossed=True)
        if not self._is_credible(answer):
            return HandshakeRefused(f"no member answers there, as far as it proves: {reason}", cause="no-member")
        if answer.cause != "rejected":
            return HandshakeRefused(reason, cause=answer.cause)
        return HandshakeRefused(reason, cause="rejected-by-cluster" if answer.joined else "rejected")

    def _is_credible(self, answer: HandshakeRejection) -> bool:
        """Return whether a member refuses. Only one with another secret, or without any, cannot prove that it is one.

        A cause by which this member might found a cluster needs a proof, since any process can answer at a listed address.
        """
        if self._secret is None or self._certified:
            return True
        if self._exchange is not None and self._secret.proven("refuses", self._exchange, answer.proof):
            return True
        proves_nothing = answer.without_secret or (self._exchange is not None and not answer.proof)
        return answer.cause == "rejected" and proves_nothing

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
    """The side that was dialled. `agreement` is set as soon as what `take` returns is a welcome.

    `admission_check` returns what else speaks against a peer whose hello is right, or None.
    """

    def __init__(
        self,
        ours: Callable[[], HandshakeHello],
        keyring: ClusterKeyring | None,
        admission_check: Callable[[HandshakeHello], HandshakeRejection | None],
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
            if self._keyring is None or not hello.nonce or cause not in ("other-version", "itself"):
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
