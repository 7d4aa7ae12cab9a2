"""What is written is read again, cut anywhere; what later versions add is skipped; what is no message is refused."""

from __future__ import annotations

import zlib
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.hazelcast.wire import messages, requests
from quarterdeck.backend.hazelcast.wire.codec import answer_codec
from quarterdeck.backend.hazelcast.wire.codec.answer_codec import decode_message, decode_metric_set
from quarterdeck.backend.hazelcast.wire.codec.fields import NULL, structure_frames, text_frame
from quarterdeck.backend.hazelcast.wire.codec.frames import (
    HEAD,
    UNFRAGMENTED,
    BadBytes,
    Frame,
    FrameLimits,
    MessageReader,
    encode_frames,
)
from quarterdeck.backend.hazelcast.wire.codec.request_codec import encode_request, number_of
from quarterdeck.backend.hazelcast.wire.messages import MOST_MILLISECONDS
from tests.hazelcast.wire.member_codec import (
    answer_frames,
    decode_request,
    encode_fragments,
    encode_metric_set,
    event_frames,
)

INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
UUIDS = st.uuids().map(str)
HOSTS = st.one_of(st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map(str), st.just("member-0.hz.svc"))
ADDRESSES = st.builds(
    lambda host, port: Address(f"[{host}]:{port}" if ":" in host else f"{host}:{port}"), HOSTS, st.integers(1, 65535)
)
VERSIONS = st.sampled_from(["4.2.8", "5.3.8", "5.5.0"])
STATES = st.builds(messages.MigrationState, INT, INT)

REQUESTS = st.one_of(
    st.builds(
        requests.Authenticate,
        TEXT,
        st.one_of(
            st.just(requests.NameOnly()),
            st.builds(requests.UserAndPassword, TEXT, TEXT),
            st.builds(requests.RequestToken, st.binary(max_size=40)),
        ),
        UUIDS,
        TEXT,
        TEXT,
    ),
    st.sampled_from(
        [
            requests.Ping(),
            requests.AddClusterViewListener(),
            requests.AddMigrationListener(),
            requests.AddPartitionLostListener(),
            requests.GetClusterMetadata(),
            requests.GetMemberConfig(),
            requests.GetSystemProperties(),
            requests.ShutDownMember(),
            requests.PromoteLiteMember(),
            requests.ShutDownCluster(),
            requests.SetDiagnostics(10, {"hazelcast.diagnostics.systemlog.enabled": "true"}),
        ]
    ),
    st.builds(requests.RemoveMigrationListener, UUIDS),
    st.builds(requests.ReadMetrics, UUIDS, LONG),
    st.builds(requests.ChangeClusterState, st.sampled_from(CLUSTER_STATES)),
)


def owned_partitions(owners: list[int], uuids: list[UUID]) -> messages.PartitionsView:
    """A view in which the last partition has an owner: more cannot be told apart from fewer."""
    used = sorted({str(uuids[owner]) for owner in owners if owner >= 0})
    places = [used.index(str(uuids[owner])) if owner >= 0 else -1 for owner in owners]
    while places and places[-1] < 0:
        places.pop()
    return messages.PartitionsView(tuple(used), tuple(places))


EVENTS = st.one_of(
    st.builds(
        messages.MembersView,
        INT,
        st.lists(st.builds(messages.ViewMember, UUIDS, ADDRESSES, st.booleans(), VERSIONS), max_size=4).map(tuple),
    ),
    st.builds(
        owned_partitions,
        st.lists(st.integers(-1, 2), max_size=30),
        st.lists(st.uuids(), min_size=3, max_size=3, unique=True),
    ),
    st.builds(messages.MigrationProcessEvent, st.sampled_from(["started", "finished"]), STATES),
    st.builds(
        messages.ReplicaMigrationEvent, INT, INT, st.none() | UUIDS, st.none() | UUIDS, st.booleans(), LONG, STATES
    ),
    st.builds(messages.PartitionLostEvent, INT, INT),
)

MEANT = MOST_MILLISECONDS - 1
WORD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="."), min_size=1, max_size=12)
SAMPLES = st.builds(
    messages.MetricSample,
    st.one_of(WORD, st.tuples(WORD, WORD, WORD).map(".".join)),
    LONG | st.floats(-MEANT, MEANT),
    st.none() | st.tuples(WORD, WORD),
)
SETS = st.builds(messages.MetricSet, LONG, st.lists(SAMPLES, max_size=6).map(tuple))

NUMBER_OF_ANSWER = {
    messages.Authenticated: 0x000100,
    messages.ClusterMetadata: 0x200E00,
    messages.MemberConfig: 0x200500,
    messages.SystemProperties: 0x200A00,
    messages.Metrics: 0x200100,
    messages.ListenerAdded: 0x001100,
    messages.ListenerRemoved: 0x001200,
    messages.RequestDone: 0x000B00,
    messages.ErrorAnswer: 0x000B00,
}

ANSWERS = st.one_of(
    st.builds(
        messages.Authenticated,
        st.sampled_from(messages.AUTHENTICATION_STATUSES),
        st.none() | ADDRESSES,
        st.none() | UUIDS,
        VERSIONS,
    ),
    st.builds(messages.ClusterMetadata, st.sampled_from((*CLUSTER_STATES, "IN_TRANSITION"))),
    st.builds(messages.MemberConfig, TEXT),
    st.builds(messages.SystemProperties, st.dictionaries(TEXT, TEXT, max_size=3)),
    st.builds(messages.Metrics, LONG, st.lists(SETS, max_size=2).map(tuple)),
    st.builds(messages.ListenerAdded, UUIDS),
    st.builds(messages.ListenerRemoved, st.booleans()),
    st.just(messages.RequestDone()),
    st.builds(messages.ErrorAnswer, INT, TEXT, TEXT),
)


@given(REQUESTS, LONG)
def test_a_request_that_is_written_is_read_again(request: requests.Request, correlation: int) -> None:
    (frames,) = MessageReader().feed(encode_request(request, correlation))
    assert decode_request(frames) == (correlation, request)


@given(EVENTS, LONG)
def test_an_event_that_is_written_is_read_again(event: messages.Event, correlation: int) -> None:
    (frames,) = MessageReader().feed(encode_frames(event_frames(event, correlation)))
    assert decode_message(frames) == (correlation, event)


@given(ANSWERS, LONG)
def test_an_answer_that_is_written_is_read_again(answer: messages.Answer, correlation: int) -> None:
    (frames,) = MessageReader().feed(encode_frames(answer_frames(answer, NUMBER_OF_ANSWER[type(answer)], correlation)))
    assert decode_message(frames) == (correlation, answer)


@given(st.lists(EVENTS, min_size=1, max_size=4), st.data())
def test_where_the_bytes_are_cut_does_not_matter(events: list[messages.Event], data: st.DataObject) -> None:
    stream = b"".join(encode_frames(event_frames(event, 7)) for event in events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    reader = MessageReader()
    read = [
        decode_message(frames)[1]
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for frames in reader.feed(stream[start:end])
    ]
    assert read == events
    assert not reader.unfinished


@given(EVENTS, EVENTS, st.data())
def test_fragments_are_put_together_with_others_between_them(
    event: messages.Event, other: messages.Event, data: st.DataObject
) -> None:
    frames = event_frames(event, 7)
    assume(len(frames) > 1)
    cut = data.draw(st.integers(1, len(frames) - 1))
    first, *rest = encode_fragments(99, [frames[:cut], frames[cut:]])
    stream = b"".join((first, encode_frames(event_frames(other, 8)), *rest))
    read = [decode_message(whole) for whole in MessageReader().feed(stream)]
    assert sorted(correlation for correlation, _ in read) == [7, 8]
    assert dict(read) == {7: event, 8: other}


@given(st.binary(max_size=200))
def test_whatever_comes_is_read_or_refused(data: bytes) -> None:
    try:
        for frames in MessageReader().feed(data):
            decode_message(frames)
    except BadBytes:
        pass


@given(EVENTS | ANSWERS, st.data())
def test_a_message_with_a_broken_byte_is_read_or_refused(
    message: messages.Event | messages.Answer, data: st.DataObject
) -> None:
    if isinstance(message, messages.Event):
        whole = encode_frames(event_frames(message, 7))
    else:
        whole = encode_frames(answer_frames(message, NUMBER_OF_ANSWER[type(message)], 7))
    place = data.draw(st.integers(0, len(whole) - 1))
    broken = whole[:place] + bytes((data.draw(st.integers(0, 255)),)) + whole[place + 1 :]
    try:
        for frames in MessageReader().feed(broken):
            decode_message(frames)
    except BadBytes:
        pass


def test_a_frame_of_two_gigabytes_is_refused_at_its_head() -> None:
    with pytest.raises(BadBytes, match="2147483647 bytes long"):
        MessageReader(FrameLimits()).feed(HEAD.pack(2**31 - 1, UNFRAGMENTED))


@pytest.mark.parametrize("length", [-1, 0, 5])
def test_a_frame_shorter_than_its_head_is_refused(length: int) -> None:
    with pytest.raises(BadBytes, match="less than its own head"):
        MessageReader().feed(HEAD.pack(length, 0))


def test_frames_without_an_end_are_refused_in_time() -> None:
    reader = MessageReader(FrameLimits(message_bytes=1_000, message_frames=50))
    frame = HEAD.pack(HEAD.size, 0)
    with pytest.raises(BadBytes, match="more than 50 frames"):
        reader.feed(frame * 60)
    with pytest.raises(BadBytes, match="more than 1000"):
        MessageReader(FrameLimits(message_bytes=1_000)).feed((HEAD.pack(106, 0) + bytes(100)) * 10)


def test_fragments_without_an_end_are_refused_in_time() -> None:
    reader = MessageReader(FrameLimits(message_bytes=2_000, message_frames=1_000))
    (fragment, _) = encode_fragments(1, [[Frame(0, bytes(300))], [Frame(0)]])
    others = [fragment.replace((1).to_bytes(8, "little"), number.to_bytes(8, "little")) for number in range(2, 20)]
    with pytest.raises(BadBytes, match="more than 2000"):
        reader.feed(b"".join((fragment, *others)))


def test_more_behind_what_is_known_is_skipped() -> None:
    """A later version adds fixed fields, frames at the end of a structure, and frames at the end of the message."""
    view = messages.MembersView(
        4, (messages.ViewMember("00000000-0000-0000-0000-000000000001", Address("a:1"), False, "5.3.8"),)
    )
    head, begin, *member, end = event_frames(view, 1)
    added = structure_frames(text_frame("what"), *structure_frames(NULL))
    later = (Frame(head.flags, head.payload + b"12345"), begin, *member[:-1], *added, member[-1], end, *added)
    assert decode_message(later) == (1, view)


def test_a_message_of_unknown_type_is_told_as_such() -> None:
    frames = answer_frames(messages.RequestDone(), 0x777700, 12)
    assert decode_message(frames) == (12, messages.UnknownMessage(0x777701))


def test_values_that_no_member_can_mean_are_passed_over() -> None:
    values = (float("nan"), float("inf"), -1e300, 7.0)
    samples = tuple(messages.MetricSample(f"a{number}", value) for number, value in enumerate(values))
    found = decode_metric_set(5, encode_metric_set(messages.MetricSet(5, samples)))
    assert found == messages.MetricSet(5, samples[-1:])


def test_metrics_that_unpack_to_gigabytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_codec, "MOST_UNPACKED", 100_000)
    with pytest.raises(BadBytes, match="more than 100000"):
        answer_codec.unpack(zlib.compress(bytes(10_000_000)))


def test_a_partition_that_cannot_be_is_refused() -> None:
    view = messages.PartitionsView(("00000000-0000-0000-0000-000000000001",), (0,))
    head, begin, _, *rest = event_frames(view, 1)
    for number in (2**31 - 1, -1):
        with pytest.raises(BadBytes, match="no such partition"):
            decode_message((head, begin, Frame(0, number.to_bytes(4, "little", signed=True)), *rest))


def test_secrets_are_in_no_text_of_the_request() -> None:
    for credentials in (requests.UserAndPassword("ann", "hunter2"), requests.RequestToken(b"hunter2")):
        assert "hunter2" not in repr(requests.Authenticate("dev", credentials, "x", "y", "z"))


def test_a_token_is_shown_with_another_request() -> None:
    request = requests.Authenticate(
        "dev", requests.RequestToken(b"t"), "00000000-0000-0000-0000-000000000001", "y", "z"
    )
    assert number_of(request) == 0x000200
