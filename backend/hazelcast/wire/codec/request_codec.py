"""Requests as bytes, both ways: what is sent to members, and what a member in a test reads.

The first frame holds the request's type, the correlation that its answer and its events will carry, the partition (none), and
the fields of fixed size. Strings and lists follow as frames of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Layout
from typing import Any

from msgspec import Struct

from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES, ClusterState
from quarterdeck.backend.hazelcast.wire import requests
from quarterdeck.backend.hazelcast.wire.codec.fields import (
    BOOL,
    BYTE,
    INT,
    LONG,
    FixedReader,
    FrameReader,
    pack_uuid,
    structure_frames,
    text_frame,
)
from quarterdeck.backend.hazelcast.wire.codec.frames import BadBytes, Frame, Frames, encode_frames
from quarterdeck.backend.hazelcast.wire.requests import Authenticate, NameOnly, Request, RequestToken, UserAndPassword

REQUEST_HEAD = Layout("<iqi")
"""Type, correlation, partition."""

CLIENT_TYPE = "QDK"
"""No type that members know. They count it among the others, and answer management calls to clients of any type."""

SERIALIZATION_VERSION = 1

AUTHENTICATE, AUTHENTICATE_WITH_TOKEN = 0x000100, 0x000200


class RequestForm(Struct, frozen=True):
    """How one type of request lies in bytes: the fields of fixed size. None of these has others."""

    number: int
    write: Callable[[Any], bytes]
    read: Callable[[FixedReader], Request]


def _bare(number: int, request: type[Any]) -> tuple[type[Any], RequestForm]:
    """A request without fields."""
    return request, RequestForm(number, lambda _: b"", lambda _: request())


def _state(number: int) -> ClusterState:
    if not 0 <= number < len(CLUSTER_STATES):
        raise BadBytes(f"{number} is no state of a cluster")
    return CLUSTER_STATES[number]


FORMS: dict[type[Any], RequestForm] = dict(
    (
        _bare(0x000300, requests.AddClusterViewListener),
        _bare(0x000B00, requests.Ping),
        _bare(0x200500, requests.GetMemberConfig),
        _bare(0x200800, requests.ShutDownMember),
        _bare(0x200900, requests.PromoteLiteMember),
        _bare(0x200A00, requests.GetSystemProperties),
        _bare(0x200B00, requests.GetTimedMemberState),
        _bare(0x200E00, requests.GetClusterMetadata),
        _bare(0x200F00, requests.ShutDownCluster),
        (
            requests.AddPartitionLostListener,
            RequestForm(
                0x000600,
                lambda request: BOOL.pack(request.local_only),
                lambda fixed: requests.AddPartitionLostListener(fixed.boolean()),
            ),
        ),
        (
            requests.AddMigrationListener,
            RequestForm(
                0x001100,
                lambda request: BOOL.pack(request.local_only),
                lambda fixed: requests.AddMigrationListener(fixed.boolean()),
            ),
        ),
        (
            requests.RemoveMigrationListener,
            RequestForm(
                0x001200,
                lambda request: pack_uuid(request.registration_uuid),
                lambda fixed: requests.RemoveMigrationListener(fixed.known_uuid()),
            ),
        ),
        (
            requests.ReadMetrics,
            RequestForm(
                0x200100,
                lambda request: pack_uuid(request.member_uuid) + LONG.pack(request.from_sequence),
                lambda fixed: requests.ReadMetrics(fixed.known_uuid(), fixed.int64()),
            ),
        ),
        (
            requests.ChangeClusterState,
            RequestForm(
                0x200200,
                lambda request: INT.pack(CLUSTER_STATES.index(request.state)),
                lambda fixed: requests.ChangeClusterState(_state(fixed.int32())),
            ),
        ),
    )
)

FORM_OF_NUMBER = {form.number: form for form in FORMS.values()}


def number_of(request: Request) -> int:
    """The number that stands for the type of `request`. Its answer's is one more."""
    if isinstance(request, Authenticate):
        return AUTHENTICATE_WITH_TOKEN if isinstance(request.credentials, RequestToken) else AUTHENTICATE
    return FORMS[type(request)].number


def encode_request(request: Request, correlation: int) -> bytes:
    """The bytes of one request."""
    head = REQUEST_HEAD.pack(number_of(request), correlation, -1)
    if isinstance(request, Authenticate):
        return encode_frames(_authenticate_frames(request, head))
    return encode_frames([Frame(0, head + FORMS[type(request)].write(request))])


def decode_request(frames: Frames) -> tuple[int, Request | int]:
    """The correlation and the request; of a request of unknown type its number alone."""
    first = frames[0].payload
    if len(first) < REQUEST_HEAD.size:
        raise BadBytes("a request is shorter than its head")
    number, correlation, _partition = REQUEST_HEAD.unpack_from(first)
    fixed = FixedReader(first, REQUEST_HEAD.size)
    if number in (AUTHENTICATE, AUTHENTICATE_WITH_TOKEN):
        return correlation, _read_authenticate(number, fixed, FrameReader(frames[1:]))
    form = FORM_OF_NUMBER.get(number)
    return correlation, number if form is None else form.read(fixed)


def _authenticate_frames(request: Authenticate, head: bytes) -> list[Frame]:
    match request.credentials:
        case NameOnly():
            proof = [text_frame(None), text_frame(None)]
        case UserAndPassword(user, password):
            proof = [text_frame(user), text_frame(password)]
        case RequestToken(token):
            proof = [Frame(0, token)]
    return [
        Frame(0, head + pack_uuid(request.client_uuid) + BYTE.pack(SERIALIZATION_VERSION)),
        text_frame(request.cluster_name),
        *proof,
        text_frame(CLIENT_TYPE),
        text_frame(request.client_version),
        text_frame(request.client_name),
        *structure_frames(),  # no labels
    ]


def _read_authenticate(number: int, fixed: FixedReader, frames: FrameReader) -> Authenticate:
    client_uuid = fixed.known_uuid()
    cluster_name = frames.text()
    credentials: requests.Credentials
    if number == AUTHENTICATE_WITH_TOKEN:
        credentials = RequestToken(frames.next().payload)
    else:
        user, password = frames.optional_text(), frames.optional_text()
        credentials = NameOnly() if user is None else UserAndPassword(user, password or "")
    _client_type, client_version, client_name = frames.text(), frames.text(), frames.text()
    return Authenticate(cluster_name, credentials, client_uuid, client_name, client_version)
