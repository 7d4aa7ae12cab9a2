"""What each client is told, whatever its pace: every record once and in order, or a gap that says what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.backend.core.events import ProcessPaused
from quarterdeck.backend.service.console_api import event_stream
from quarterdeck.backend.service.console_api.event_stream import (
    BATCHES_KEPT,
    MOST_BYTES,
    MOST_RECORDS,
    EventFeed,
    StreamPosition,
)
from quarterdeck.backend.service.record_buffer import BEGINNING
from tests.service.single_member import SingleMemberFace
from tests.thoroughness import examples


@pytest.fixture(autouse=True, scope="module")
def looks_often() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_stream, "POLL_SECONDS", 0.001)
        yield


async def next_messages(feed: EventFeed, place: StreamPosition) -> list[dict[str, Any]]:
    async with asyncio.timeout(20):
        return [msgspec.json.decode(message) for message in await feed.messages(place)]


def told(messages: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [
        (record["uuid"], record["seq"])
        for message in messages
        if message["type"] == "records"
        for record in message["records"]
    ]


def gaps(messages: list[dict[str, Any]]) -> list[tuple[str, int, int | None]]:
    return [
        (message["uuid"], message["from_seq"], message["to_seq"]) for message in messages if message["type"] == "gap"
    ]


def silent_face(buffer_records: int = 20_000) -> SingleMemberFace:
    """A face whose member never began: it records only what tests note."""
    return SingleMemberFace(joined=False, buffer_records=buffer_records)


def note(face: SingleMemberFace, times: int, target: str = "n1") -> None:
    for _ in range(times):
        face.note(ProcessPaused(target))


async def test_who_comes_first_gets_all_there_is_and_then_what_happens() -> None:
    face = silent_face()
    note(face, 3)
    feed = EventFeed(face)
    place = feed.subscribe(BEGINNING)
    assert told(await next_messages(feed, place)) == [("dev", 1), ("dev", 2), ("dev", 3)]
    waiting = asyncio.create_task(next_messages(feed, place))
    await asyncio.sleep(0)
    note(face, 2)
    assert told(await waiting) == [("dev", 4), ("dev", 5)]
    feed.unsubscribe()


async def test_who_comes_back_gets_what_it_missed() -> None:
    face = silent_face()
    note(face, 5)
    feed = EventFeed(face)
    messages = await next_messages(feed, feed.subscribe(("dev", 3)))
    assert told(messages) == [("dev", 4), ("dev", 5)] and not gaps(messages)
    feed.unsubscribe()


async def test_what_the_buffer_has_lost_is_a_gap() -> None:
    face = silent_face(buffer_records=10)
    note(face, 50)
    feed = EventFeed(face)
    messages = await next_messages(feed, feed.subscribe(("dev", 3)))
    assert gaps(messages) == [("dev", 4, 40)] and told(messages)[0] == ("dev", 41)
    assert gaps(await next_messages(feed, feed.subscribe(BEGINNING))) == [("dev", 1, 40)]
    stranger = feed.subscribe(("gone", 7))
    assert gaps(await next_messages(feed, stranger)) == [("gone", 8, None)]
    assert gaps(await next_messages(feed, stranger)) == [("dev", 1, 40)]


async def test_a_client_that_sleeps_too_long_is_told_what_it_missed() -> None:
    face = silent_face(buffer_records=10)
    feed = EventFeed(face)
    quick, slow = feed.subscribe(BEGINNING), feed.subscribe(BEGINNING)
    note(face, 2)
    assert len(told(await next_messages(feed, slow))) == 2
    seen = told(await next_messages(feed, quick))
    for _ in range(2 * BATCHES_KEPT):
        note(face, 4)
        messages = await next_messages(feed, quick)
        assert not gaps(messages)
        seen += told(messages)
    assert seen == [("dev", seq) for seq in range(1, face.noted + 1)]
    late = await next_messages(feed, slow)
    assert gaps(late) == [("dev", 3, face.noted - 10)]
    _all_accounted_for(late, first=3)
    feed.unsubscribe()
    feed.unsubscribe()


def _all_accounted_for(messages: list[dict[str, Any]], first: int) -> None:
    """Every number from `first` on was told or is in a gap, once and in order."""
    expected = first
    for message in messages:
        if message["type"] == "gap":
            assert message["from_seq"] == expected
            expected = message["to_seq"] + 1
        else:
            for record in message["records"]:
                assert record["seq"] == expected
                expected += 1


@given(st.data())
@settings(max_examples=examples(60))
def test_whatever_the_pace_every_record_is_told_or_in_a_gap(data: st.DataObject) -> None:
    async def story() -> None:
        face = silent_face(buffer_records=data.draw(st.integers(1, 30), label="kept"))
        feed = EventFeed(face)
        places = [feed.subscribe(BEGINNING) for _ in range(3)]
        heard: list[list[dict[str, Any]]] = [[], [], []]
        for _ in range(data.draw(st.integers(1, 25), label="turns")):
            note(face, data.draw(st.integers(1, 20)))
            if data.draw(st.booleans()):
                await asyncio.sleep(0.002)  # the feed looks for new records
            who = data.draw(st.integers(0, 2))
            heard[who] += await next_messages(feed, places[who])
            note(face, 1)
        for who, place in enumerate(places):
            while not heard[who] or told(heard[who])[-1] != ("dev", face.noted):
                heard[who] += await next_messages(feed, place)
            _all_accounted_for(heard[who], first=1)

    asyncio.run(story())


async def test_clients_that_keep_up_share_one_text() -> None:
    face = silent_face()
    note(face, 1)
    feed = EventFeed(face)
    places = [feed.subscribe(BEGINNING) for _ in range(3)]
    for place in places:
        await feed.messages(place)
    note(face, 5)
    texts = [(await feed.messages(place))[-1] for place in places]
    assert texts[0] is texts[1] is texts[2]


async def test_messages_are_bounded() -> None:
    face = silent_face()
    note(face, 3 * MOST_RECORDS)
    note(face, 8, target="n" * (MOST_BYTES // 3))
    note(face, 1, target="n" * MOST_BYTES)
    feed = EventFeed(face)
    place = feed.subscribe(BEGINNING)
    texts: list[str] = []
    while place.last != ("dev", face.noted):
        texts += await feed.messages(place)
    feed.unsubscribe()
    assert told([msgspec.json.decode(text) for text in texts]) == [("dev", seq + 1) for seq in range(face.noted)]
    assert all(len(text) < MOST_BYTES + 2_000 for text in texts[:-1])
    assert len(msgspec.json.decode(texts[-1])["records"]) == 1


async def test_a_client_of_a_member_that_has_recorded_nothing_waits() -> None:
    face = silent_face()
    feed = EventFeed(face)
    waiting = asyncio.create_task(next_messages(feed, feed.subscribe(("gone", 7))))
    await asyncio.sleep(0.01)
    note(face, 1)
    assert gaps(await waiting) == [("gone", 8, None)]
    feed.unsubscribe()


async def test_the_feed_looks_at_nothing_while_nobody_listens() -> None:
    feed = EventFeed(silent_face())
    feed.subscribe(BEGINNING)
    feed.unsubscribe()
    await asyncio.sleep(0)
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
