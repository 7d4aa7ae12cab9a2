"""The CPU that all quick tests may take together: a suite that grows past it fails, and says by how much.

Only a run of everything is judged, and only on a machine that has nothing else to do: beside other work every process takes more
CPU for the same. A slower machine has more time: how slow it is shows what Python takes to read a fixed text, again and again
while the tests run. Afterwards would be too late: a virtual machine whose neighbours are busy is quick again when nothing runs.
"""

from __future__ import annotations

import ast
import gc
import os
import resource
import statistics
import time

import pytest

BUDGET_SECONDS = 540
"""CPU of user and system for the whole quick suite, of all its processes, on the machine of `YARDSTICK_SECONDS`."""

TOLERANCE = 1.2

YARDSTICK = (
    "found = {name: [one.value for one in row if one.name != name] for name, row in rows.items() if row}\n" * 1_000
)
YARDSTICK_SECONDS = 0.0362
"""The CPU that it takes to parse this text beside the tests, where the budget was measured."""

LOOK_SECONDS = 10.0
"""How often the yardstick is laid on."""

GREATEST_LOAD = 4.5
"""The load of a quarter of an hour that the tests alone make is less."""

FEWEST_TESTS = 5_000
"""Fewer are a part of the suite."""


class CpuBudget:
    """A plugin of pytest for the process that shares the tests out: the others are its children, and have ended by then."""

    def __init__(self) -> None:
        self._yardsticks: list[float] = []
        self._next_look = 0.0

    def pytest_runtest_logfinish(self) -> None:
        if time.monotonic() >= self._next_look:
            self._yardsticks.append(yardstick_seconds())
            self._next_look = time.monotonic() + LOOK_SECONDS

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.config.option.markexpr != "not long" or session.testscollected < FEWEST_TESTS:
            return
        used = cpu_seconds()
        slowness = max(statistics.fmean(self._yardsticks) / YARDSTICK_SECONDS, 1.0)
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


def yardstick_seconds() -> float:
    """Return the CPU that Python takes now to parse the text of known length."""
    gc.disable()  # it would look at all reports of the tests so far
    began = time.process_time()
    ast.parse(YARDSTICK)
    used = time.process_time() - began
    gc.enable()
    return used
