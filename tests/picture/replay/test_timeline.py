"""The strip of time: what stands out, how much happened when, and the names that moments go by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, MemberWitnessed
from quarterdeck.backend.picture.replay.tape import Playhead, Tape
from quarterdeck.backend.picture.replay.timeline import (
    LANES,
    LEVELS,
    BadMoment,
    Landmark,
    Landmarks,
    draw_timeline,
    greatest_zoom,
    moment_of,
    seconds_text,
    window,
)
from quarterdeck.backend.picture.text.fact import Tone
from tests.app.fakes.fake_cluster import FakeCluster, formed
from tests.picture.replay.random_records import EVENTS, records_of

THREE = ("n1", "n2", "n3")

SHORT_SPLIT: tuple[tuple[int, str, Tone], ...] = ((500_000, "S", "bad"), (501_000, "M", "good"))


def landmarks_of(cluster: FakeCluster, capacity: int = 1_000) -> tuple[Landmarks, Tape]:
    tape, landmarks = Tape(capacity, spacing=1), Landmarks()
    tape.append(cluster.drain())
    landmarks.follow(tape)
    return landmarks, tape


def letters(landmarks: Landmarks) -> str:
    return "".join(mark.letter for mark in landmarks.marks)


def test_a_split_after_a_freeze_ends_whatever_order_its_records_come_in() -> None:
    cluster = formed(THREE)
    cluster.happen("dev", ProcessPaused("n1"))
    for label in ("n2", "n3"):
        cluster.install(label, 4, ["n2", "n3"], lineage="L2")
    cluster.happen("n1", events.MasterChanged(cluster.address("n2"), "it leads"))  # before the resume that it follows
    cluster.happen("dev", ProcessResumed("n1"))
    landmarks, _ = landmarks_of(cluster)
    assert letters(landmarks) == "PR"


def test_the_end_of_a_short_split_stands_beside_its_beginning() -> None:
    tape = Tape(10)
    marks = [Landmark(at_us, "splits", letter, tone, "") for at_us, letter, tone in SHORT_SPLIT]
    lanes = dict(draw_timeline(tape, marks, (0, SECOND_US), 0, 10).lanes)
    assert [(signal.column, signal.letter) for signal in lanes["splits"]] == [(5, "S"), (6, "M")]


def test_splits_merges_claims_and_faults_stand_out() -> None:
    cluster = formed(THREE)
    cluster.happen("dev", LinkChanged("n1", "n3", blocked="blackhole"))
    cluster.happen("dev", LinkChanged("n3", "n1", blocked="blackhole"), after_us=0)
    cluster.happen("n3", events.ClaimStarted(5, (), ()))
    cluster.split(("n1", "n2"), ("n3",))
    cluster.happen("n3", events.ClaimFinished(5, "L2", (), ()))
    cluster.happen("dev", LinkChanged("n1", "n3"))
    cluster.happen("n3", events.MemberMerging(cluster.address("n1"), ""))
    cluster.happen("dev", ProcessPaused("n1"))
    cluster.happen("dev", ProcessResumed("n1"))
    cluster.happen("dev", ProcessKilled("n1"))
    landmarks, _ = landmarks_of(cluster)
    assert letters(landmarks) == "LCSDHMPRK"
    cut = landmarks.marks[0]
    assert cut == Landmark(cut.at_us, "faults", "L", "warning", "the link from n1 to n3 is cut", 2)
    assert landmarks.marks[2].text == "two masters: n1, n3"


def test_a_paused_master_leads_nobody_until_it_is_resumed() -> None:
    cluster = formed(THREE)
    cluster.happen("dev", ProcessPaused("n1"))
    cluster.install("n2", 5, ["n2", "n3"], lineage="L2")
    cluster.happen("dev", ProcessResumed("n1"))
    assert letters(landmarks_of(cluster)[0]) == "PRS"


def watched() -> FakeCluster:
    """Members of which a console hears over connections; each tells the list of all."""
    cluster = FakeCluster(THREE)
    for label in THREE:
        cluster.happen(label, MemberWitnessed(("client-protocol",), ("owners",)))
        cluster.happen(label, ConnectionChanged("connected"))
        cluster.install(label, 3, THREE)
    return cluster


def restart(cluster: FakeCluster, label: str, merged_from: str = "") -> None:
    """The next incarnation at an address joins the others."""
    cluster.happen(label, MemberWitnessed(("client-protocol",), ("owners",)), life=2)
    cluster.happen(label, events.MemberStarted(cluster.address(label), False, (), merged_from), life=2)
    cluster.happen(label, ConnectionChanged("connected"), life=2)
    cluster.install(label, 9, ("n2", "n3", label), lineage="L2", life=2)


def test_a_kill_and_a_restart_of_a_witnessed_master_are_no_split_and_no_merge() -> None:
    cluster = watched()
    cluster.happen("n1", ConnectionChanged("gone", "connection refused"))
    for label in ("n2", "n3"):
        cluster.install(label, 4, ("n2", "n3"), lineage="L2")
    restart(cluster, "n1")
    assert letters(landmarks_of(cluster)[0]) == ""


def test_a_new_incarnation_of_a_master_out_of_reach_shows_no_merge_before_it_is_heard() -> None:
    cluster = watched()
    for label in ("n2", "n3"):
        cluster.install(label, 4, ("n2", "n3"), lineage="L2")
    cluster.happen("n1", ConnectionChanged("gone", "closed"), after_us=5 * SECOND_US)
    cluster.happen("n1", MemberWitnessed(("client-protocol",), ("owners",)), life=2)
    cluster.happen("n1", ConnectionChanged("gone", "closed"), life=2)
    cluster.install("n3", 5, ("n2", "n3"), lineage="L2")
    assert letters(landmarks_of(cluster)[0]) == "S"


def test_a_master_that_leaves_while_the_next_one_leads_already_is_no_split() -> None:
    cluster = watched()
    cluster.install("n2", 4, ("n2", "n3"), lineage="L2")
    cluster.happen("n1", ConnectionChanged("gone", "closed"), after_us=50_000)
    restart(cluster, "n1")
    assert letters(landmarks_of(cluster)[0]) == ""


def test_a_split_of_witnessed_members_ends_when_one_of_its_masters_merges() -> None:
    cluster = watched()
    cluster.install("n2", 4, ("n2", "n3"), lineage="L2")
    cluster.happen("n1", ConnectionChanged("gone", "closed"), after_us=5 * SECOND_US)
    cluster.happen("n1", events.MemberMerging(cluster.address("n2"), "n1-life-2"))
    restart(cluster, "n1", merged_from="n1-life-1")
    assert letters(landmarks_of(cluster)[0]) == "SM"


def test_a_frozen_master_that_goes_on_leads_a_cluster_of_its_own_until_it_starts_anew() -> None:
    cluster = watched()
    cluster.happen("n1", ConnectionChanged("silent", "nothing has come"))
    cluster.install("n2", 4, ("n2", "n3"), lineage="L2")
    cluster.happen("n1", ConnectionChanged("connected"))
    cluster.install("n1", 4, ("n1",))
    cluster.happen("n1", ConnectionChanged("gone", "closed"), after_us=5 * SECOND_US)
    restart(cluster, "n1")
    assert letters(landmarks_of(cluster)[0]) == "S", "whether it merged is not known"


def test_landmarks_begin_in_the_middle_of_a_run_and_are_forgotten_with_it() -> None:
    cluster = formed(THREE)
    cluster.happen("dev", ProcessKilled("n2"))
    for _ in range(40):
        cluster.suspect("n1", "n2")
    tape, landmarks = Tape(20, spacing=5), Landmarks()
    tape.append(cluster.drain())
    landmarks.follow(tape)
    assert tape.forgotten and not landmarks.marks
    cluster.install("n3", 7, ["n3"], lineage="L2")
    tape.append(cluster.drain())
    landmarks.follow(tape)
    assert letters(landmarks) == "S", "n1 led before anything that is remembered"
    for _ in range(40):
        cluster.suspect("n1", "n2")
    tape.append(cluster.drain())
    landmarks.follow(tape)
    assert not landmarks.marks


@given(
    st.lists(st.integers(0, 90_000_000), min_size=1, max_size=60).map(sorted),
    st.integers(0, 90_000_000),
    st.integers(0, 40),
    st.integers(1, 300),
)
def test_the_strip_counts_what_is_in_sight(times: list[int], shown_us: int, zoom: int, width: int) -> None:
    tape = Tape()
    tape.append(records_of([("n1", 1, EVENTS[5])] * len(times), times))
    start_us, end_us = tape.start_us, max(tape.end_us, shown_us)
    shown_us = min(max(shown_us, start_us), end_us)
    from_us, to_us = in_sight = window(start_us, end_us, shown_us, min(zoom, greatest_zoom(start_us, end_us)))
    assert start_us <= from_us <= shown_us <= to_us
    marks = [Landmark(at_us, "faults", "K", "bad", "") for at_us in times]
    strip = draw_timeline(tape, marks, in_sight, shown_us, width)
    assert strip.width == width and strip.playhead is not None and 0 <= strip.playhead < width
    seen = [at_us for at_us in times if from_us <= at_us <= to_us]
    assert any(strip.levels) == bool(seen) and all(0 <= level <= LEVELS for level in strip.levels)
    assert bool(strip.lanes[LANES.index("faults")][1]) == bool(seen)
    full = {column for column, level in enumerate(strip.levels) if level}
    assert {signal.column for signal in strip.lanes[LANES.index("faults")][1]} == full
    assert strip.moment_of(width - 1) == to_us
    for column in range(width):
        assert draw_timeline(tape, (), in_sight, strip.moment_of(column), width).playhead == column
    assert all(0 <= column < width for column, _ in strip.ticks)


def test_the_gravest_mark_of_a_column_is_seen_and_ticks_are_round() -> None:
    tape = Tape()
    tape.append(records_of([("n1", 1, EVENTS[5])] * 2, [0, 60 * SECOND_US]))
    marks = [Landmark(5, "faults", "K", "bad", ""), Landmark(6, "faults", "R", "good", "")]
    strip = draw_timeline(tape, marks, (0, 60 * SECOND_US), 0, 60)
    assert [signal.letter for signal in strip.lanes[LANES.index("faults")][1]] == ["K"]
    assert strip.ticks == ((0, "0 s"), (20, "20 s"), (40, "40 s"), (59, "60 s"))
    assert seconds_text(1_500) == "0.0015 s" and seconds_text(2 * SECOND_US) == "2 s"


def test_moments_go_by_many_names() -> None:
    tape = Tape()
    tape.append(
        [
            Record("r", "n1", "life-1", 3, 4 * SECOND_US, 0, EVENTS[5]),
            Record("r", "n1", "life-2", 3, 7 * SECOND_US, 0, EVENTS[6]),
            Record("r", "n2", "u2", 1, 9 * SECOND_US, 0, EVENTS[6]),
        ]
    )
    head = Playhead(tape)
    head.tick(0, 10 * SECOND_US)
    head.go(5 * SECOND_US)
    tape.bookmark(6 * SECOND_US, "the split")
    for text, seconds in {
        "8": 8, "2.5 s": 2.5, "1:30": 90, "500ms": 0.5, "+2": 7, "-500ms": 4.5, "start": 4, "end": 10, "the split": 6, "n1#3": 7,
        "life-1#3": 4, "2m": 120,
    }.items():  # fmt: skip
        assert moment_of(text, tape, head) == round(seconds * SECOND_US), text
    for text in ("", "soon", "n1#4", "1e9", "-", "+-3", "nan"):
        with pytest.raises(BadMoment, match="a bookmark, start or end"):
            moment_of(text, tape, head)
