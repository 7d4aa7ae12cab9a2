"""What all rooms' tests share: which of them may not run beside each other, and that nothing is left of them."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import Generator
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import settings

from tests import thoroughness  # registers the profiles
from tests.cpu_budget import CpuBudget
from tests.leftovers import Leftovers

settings.load_profile(thoroughness.QUICK)

ONE_AT_A_TIME = {
    "spark": ("tests/pipeline", "tests/cli/commands/spark"),
    "live": (
        *("tests/live", "tests/training", "tests/cli/commands/web", "tests/cli/commands/map"),
        *("tests/cli/commands/test_runs.py", "tests/cli/commands/test_terminal.py", "tests/project/test_make.py"),
        "tests/clusters/remote/test_remote_snapshot.py",
    ),
}
"""Groups that keep to one process: a Java machine for each would not fit a small build server, and live members that share
two cores with others are late with their heartbeats."""


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.pluginmanager.register(Leftovers(config.rootpath))
        config.pluginmanager.register(CpuBudget())
    if getattr(config.option, "maxworkerrestart", "no xdist") is None:
        # A run whose worker has died ends at once: with another worker in its place it may wait for ever after the last test.
        config.option.maxworkerrestart = "0"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector pass over modules and thousands of tests, which stay: each pass would look at all of them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine to its end, on an event loop of its own."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    asyncio.run(test(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}))
    return True


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Groups by place instead of by marks: xdist hides a mark in a private field of the test, which newer pytest lacks."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByPlace(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return group_of(file) or file  # what a file's tests share is made once

    return ByPlace(config, log)


def group_of(file: str) -> str | None:
    """The group to which the tests in `file` belong, or None when they may run anywhere."""
    path = PurePosixPath(file)
    return next(
        (group for group, places in ONE_AT_A_TIME.items() if any(path.is_relative_to(place) for place in places)),
        None,
    )
