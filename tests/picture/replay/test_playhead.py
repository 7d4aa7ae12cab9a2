"""The playhead: it never leaves the tape, follows when asked or when it catches up, and says when it jumped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.replay.tape import SPEEDS, BadSpeed, Playhead, Tape, beside
from tests.picture.replay.random_records import EVENTS, records_of


def tape_of(*seconds: float, capacity: int = 1_000) -> Tape:
    tape = Tape(capacity, spacing=1)
    tape.append(records_of([("n1", 1, EVENTS[0])] * len(seconds), [round(second * SECOND_US) for second in seconds]))
    return tape


def playhead(tape: Tape, now_s: float) -> Playhead:
    head = Playhead(tape)
    head.tick(0, round(now_s * SECOND_US))
    return head


def state(head: Playhead) -> tuple[str, float]:
    return head.mode, head.shown_us / SECOND_US


def test_it_follows_stands_and_plays_until_it_has_caught_up() -> None:
    head = playhead(tape_of(1, 2, 3, 8), 10)
    assert state(head) == ("following", 10)
    head.tick(SECOND_US, 11 * SECOND_US)
    assert state(head) == ("following", 11)
    head.toggle()
    head.tick(2 * SECOND_US, 12 * SECOND_US)
    assert state(head) == ("paused", 11) and head.now_us == 12 * SECOND_US
    head.go(2 * SECOND_US)
    head.set_speed(4)
    head.toggle()
    head.tick(3 * SECOND_US, 13 * SECOND_US)
    assert state(head) == ("playing", 6)
    head.tick(5 * SECOND_US, 14 * SECOND_US)
    assert state(head) == ("following", 14) and head.jumps == 1


def test_it_steps_by_event_and_stops_at_the_ends() -> None:
    head = playhead(tape_of(1, 2, 2, 3), 10)
    assert head.step(forward=False) and state(head) == ("paused", 3)
    assert head.step(forward=False) and head.shown_us == 2 * SECOND_US
    assert head.step(forward=False) and not head.step(forward=False) and head.shown_us == SECOND_US
    jumps = head.jumps
    assert head.step(forward=True) and head.step(forward=True) and not head.step(forward=True)
    assert head.shown_us == 3 * SECOND_US and head.jumps == jumps
    head.follow()
    assert state(head) == ("following", 10) and head.jumps == jumps + 1
    head.follow()
    assert head.jumps == jumps + 1


def test_it_goes_among_moments() -> None:
    head = playhead(tape_of(1, 2, 3), 5)
    moments = [SECOND_US, 2 * SECOND_US]
    assert head.go_among(moments, forward=True) is None
    assert head.go_among(moments, forward=False) == 2 * SECOND_US
    assert head.go_among(moments, forward=False) == SECOND_US
    assert head.go_among(moments, forward=False) is None
    assert head.go_among(moments, forward=True) == 2 * SECOND_US == head.shown_us


def test_a_moment_that_is_forgotten_is_left_for_the_oldest_there_is() -> None:
    tape = tape_of(1, 2, 3, capacity=3)
    head = playhead(tape, 3)
    head.go(0)
    assert head.shown_us == SECOND_US
    tape.append(records_of([("n1", 1, EVENTS[0])] * 2, [4 * SECOND_US, 5 * SECOND_US]))
    head.tick(1, 5 * SECOND_US)
    assert head.shown_us == tape.start_us == 2 * SECOND_US


def test_it_waits_for_a_moment_unless_somebody_moves_it() -> None:
    head = playhead(tape_of(1, 2, 3), 4)
    head.wait_for(6 * SECOND_US)
    head.tick(1, 5 * SECOND_US)
    assert state(head) == ("following", 5)
    head.tick(2, 7 * SECOND_US)
    assert state(head) == ("paused", 6)
    head.follow()
    head.wait_for(9 * SECOND_US)
    head.go(2 * SECOND_US)
    head.follow()
    head.tick(3, 10 * SECOND_US)
    assert state(head) == ("following", 10)


def test_speeds() -> None:
    assert [beside(SPEEDS, speed, forward=True) for speed in (1, 3, SPEEDS[-1])] == [2, 4, None]
    assert [beside(SPEEDS, speed, forward=False) for speed in (1, 3, SPEEDS[0])] == [0.5, 2, None]
    head = playhead(tape_of(1), 1)
    for speed in (0, -1, 1e9, float("nan")):
        with pytest.raises(BadSpeed, match="more than 0"):
            head.set_speed(speed)


MOVES = st.one_of(
    st.tuples(st.just("go"), st.integers(-5, 30)),
    st.tuples(st.just("go_by"), st.integers(-9, 9)),
    st.tuples(st.sampled_from(("follow", "pause", "play", "toggle", "forward", "back")), st.just(0)),
    st.tuples(st.just("tick"), st.integers(0, 5)),
)


@given(st.lists(MOVES, max_size=30))
def test_it_never_leaves_the_run(moves: list[tuple[str, int]]) -> None:
    head = playhead(tape_of(3, 4, 4, 9, 15), 16)
    steady_us, now_us = 0, 16 * SECOND_US
    for move, amount in moves:
        before = head.shown_us, head.jumps
        match move:
            case "go":
                head.go(amount * SECOND_US)
            case "go_by":
                head.go_by(amount * SECOND_US)
            case "forward" | "back":
                head.step(forward=move == "forward")
            case "tick":
                steady_us, now_us = steady_us + amount * SECOND_US, now_us + amount * SECOND_US
                head.tick(steady_us, now_us)
            case _:
                getattr(head, move)()
        assert 3 * SECOND_US <= head.shown_us <= head.now_us
        assert head.shown_us >= before[0] or head.jumps > before[1]
