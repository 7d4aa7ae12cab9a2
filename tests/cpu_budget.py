"""The CPU that all quick tests may take together: a suite that grows past it fails, and says by how much.

Only a run of everything is judged, and only on a machine that has nothing else to do: beside other work every process takes more
CPU for the same. A slower machine has more time: a loop of known length shows how slow it is.
"""

from __future__ import annotations

import os
import resource
import time

import pytest

BUDGET_SECONDS = 360
"""CPU of user and system for the whole quick suite, of all its processes, on the machine of `LOOP_SECONDS`."""

TOLERANCE = 1.2

LOOP_COUNT = 5_000_000
LOOP_SECONDS = 0.1
"""What `LOOP_COUNT` additions take where the budget was measured."""

GREATEST_LOAD = 4.5
"""The load of a quarter of an hour that the tests alone make is less."""

FEWEST_TESTS = 5_000
"""Fewer are a part of the suite."""


class CpuBudget:
    """A plugin of pytest for the process that shares the tests out: the others are its children, and have ended by then."""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.config.option.markexpr != "not long" or session.testscollected < FEWEST_TESTS:
            return
        used = cpu_seconds()
        slowness = max(loop_seconds() / LOOP_SECONDS, 1.0)
        allowed = BUDGET_SECONDS * TOLERANCE * slowness
        reporter: pytest.TerminalReporter = session.config.pluginmanager.getplugin("terminalreporter")
        reporter.write_line("")
        is_busy = os.getloadavg()[2] > GREATEST_LOAD
        beside = ", beside other work" if is_busy else ""
        reporter.write_line(f"the tests took {used:.0f} s of CPU{beside}, of {allowed:.0f} s allowed here")
        if used > allowed and not is_busy:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def cpu_seconds() -> float:
    """Return the CPU that this process and its ended children have used."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def loop_seconds() -> float:
    """Return the CPU that a loop of known length takes here, the quickest of three times."""
    return min(_timed_loop() for _ in range(3))


def _timed_loop() -> float:
    began = time.process_time()
    total = 0
    for number in range(LOOP_COUNT):
        total += number
    return time.process_time() - began
