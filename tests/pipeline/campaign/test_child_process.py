"""Runs that do anything at all, and what the parent learns of them."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from quarterdeck.backend.pipeline.campaign.attempt import LostRun, OutOfTime, at_most, run_in_child

LONG = 1_000.0


def told(planned_runs: list[Callable[[], bytes]], wall_seconds: float = LONG) -> list[bytes]:
    return list(
        run_in_child(
            planned_runs,
            lambda planned_run: planned_run(),
            lambda _, loss: f"{loss.verdict}: {loss.how}".encode(),
            wall_seconds,
        )
    )


def fine() -> bytes:
    return b"fine"


def raising() -> bytes:
    raise ValueError("planted")


def leaving() -> bytes:
    os._exit(7)


def crashing() -> bytes:
    faulthandler.disable()  # it would tell the whole story on stderr
    os.kill(os.getpid(), signal.SIGSEGV)
    return b"never"


def sleeping() -> bytes:
    time.sleep(LONG)
    return b"never"


def test_answers_come_in_order_and_whole() -> None:
    big = bytes(3_000_000)
    assert told([fine, lambda: big, lambda: b"", fine]) == [b"fine", big, b"", b"fine"]


def test_nothing_to_do_needs_no_child() -> None:
    assert told([]) == []


@pytest.mark.parametrize(
    ("loss", "how"),
    [
        (raising, b"died: exit code 1"),
        (leaving, b"died: exit code 7"),
        (crashing, b"died: killed by SIGSEGV"),
    ],
)
def test_a_run_that_ends_its_process_costs_only_itself(loss: Callable[[], bytes], how: bytes) -> None:
    assert told([fine, loss, loss, fine]) == [b"fine", how, how, b"fine"]


def test_a_run_that_does_nothing_for_ever_is_given_up() -> None:
    assert told([fine, sleeping, fine], wall_seconds=1.0) == [b"fine", b"timeout: no answer within 1 s", b"fine"]


def test_no_child_is_left_behind_when_nobody_wants_more() -> None:
    before = children()
    answers = run_in_child(
        [fine, sleeping], lambda planned_run: planned_run(), lambda _planned_run, _loss: b"lost", LONG
    )
    assert next(answers) == b"fine"
    assert len(children()) == len(before) + 1
    answers.close()  # type: ignore[attr-defined]
    assert children() == before


def children() -> list[str]:
    """The processes that this one has begun, Spark's Java perhaps among them."""
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        pytest.skip("no /proc to find children in")
    return sorted(pid for task in tasks.glob("*/children") for pid in task.read_text().split())


def test_cpu_time_is_limited_and_no_handler_of_errors_gets_in_the_way() -> None:
    def stubborn() -> None:
        while True:
            try:
                sum(range(1000))
            except Exception:  # noqa: BLE001 - what the test is about
                pass

    with pytest.raises(OutOfTime, match=r"0\.2 s of CPU time"), at_most(0.2):
        stubborn()
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_what_is_done_in_time_is_left_alone() -> None:
    with at_most(60):
        found = sum(range(1000))
    assert found == 499_500
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_a_loss_says_what_and_how() -> None:
    loss = LostRun("died", "exit code 3")
    assert (loss.verdict, loss.how) == ("died", "exit code 3")
