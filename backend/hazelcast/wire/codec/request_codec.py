"""Requests as bytes.

The first frame holds the request's type, the correlation that its answer and its events will carry, the partition (none), and
the fields of fixed size. Strings and lists follow as frames of their own.
"""

from __future__ import annotations

from struct import Struct as Layout

from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.hazelcast.wire import requests
from quarterdeck.backend.hazelcast.wire.codec import fields
from quarterdeck.backend.hazelcast.wire.codec.frames import Frame, encode_frames

DIAGNOSTICS = Layout("<??fii")
"""Whether it is on, whether times since 1970 are written; the greatest size and number of files, which are not used; minutes."""
REQUEST_HEAD = Layout("<iqi")
"""Type, correlation, partition."""
CLIENT_TYPE = "QDK"
"""No type that members know. They count it among the others, and answer management calls to clients of any type."""
SERIALIZATION_VERSION = 1
AUTHENTICATE, AUTHENTICATE_WITH_TOKEN = 0x000100, 0x000200
NUMBERS: dict[type[requests.Request], int] = {
    requests.AddClusterViewListener: 0x000300,
    requests.AddPartitionLostListener: 0x000600,
    requests.Ping: 0x000B00,
    requests.AddMigrationListener: 0x001100,
    requests.RemoveMigrationListener: 0x001200,
    requests.ReadMetrics: 0x200100,
    requests.ChangeClusterState: 0x200200,
    requests.GetMemberConfig: 0x200500,
    requests.ShutDownMember: 0x200800,
    requests.PromoteLiteMember: 0x200900,
    requests.GetSystemProperties: 0x200A00,
    requests.GetClusterMetadata: 0x200E00,
    requests.ShutDownCluster: 0x200F00,
    requests.SetDiagnostics: 0x202700,
}


def number_of(request: requests.Request) -> int:
    """Return the number of the type of `request`. Its answer has the next one."""
    if isinstance(request, requests.Authenticate):
        return AUTHENTICATE_WITH_TOKEN if isinstance(request.credentials, requests.RequestToken) else AUTHENTICATE
    return NUMBERS[type(request)]


def encode_request(request: requests.Request, correlation: int) -> bytes:
    """Return the bytes of a request."""
    head = REQUEST_HEAD.pack(number_of(request), correlation, -1)
    match request:
        case requests.Authenticate():
            return encode_frames(_authenticate_frames(request, head))
        case requests.AddPartitionLostListener() | requests.AddMigrationListener():
            head += fields.BOOL.pack(False)  # not only those of this member
        case requests.RemoveMigrationListener(registration_uuid):
            head += fields.pack_uuid(registration_uuid)
        case requests.ReadMetrics(member_uuid, from_sequence):
            head += fields.pack_uuid(member_uuid) + fields.LONG.pack(from_sequence)
        case requests.ChangeClusterState(state):
            head += fields.INT.pack(CLUSTER_STATES.index(state))
        case requests.SetDiagnostics(minutes, plugins):
            head += DIAGNOSTICS.pack(minutes > 0, True, 10.0, 1, minutes or -1)
            texts = map(fields.text_frame, ("STDOUT", ".", None))
            pairs = (fields.text_frame(text) for pair in plugins.items() for text in pair)
            return encode_frames([Frame(0, head), *texts, *fields.structure_frames(*pairs)])
    return encode_frames([Frame(0, head)])


def _authenticate_frames(request: requests.Authenticate, head: bytes) -> list[Frame]:
    match request.credentials:
        case requests.NameOnly():
            proof = [fields.NULL, fields.NULL]
        case requests.UserAndPassword(user, password):
            proof = [fields.text_frame(user), fields.text_frame(password)]
        case requests.RequestToken(token):
            proof = [Frame(0, token)]
    return [
        Frame(0, head + fields.pack_uuid(request.client_uuid) + fields.BYTE.pack(SERIALIZATION_VERSION)),
        fields.text_frame(request.cluster_name),
        *proof,
        *map(fields.text_frame, (CLIENT_TYPE, request.client_version, request.client_name)),
        *fields.structure_frames(),  # no labels
    ]
