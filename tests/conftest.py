"""What all rooms' tests share: which of them may not run beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent

ONE_AT_A_TIME = {
    "spark": ("pipeline",),
    "live": ("live", "training", "cli/test_runs.py", "cli/test_terminal.py", "house/test_make.py"),
}
"""Groups that keep to one process: a Java machine for each would not fit a small build server, and two clusters that
look for free ports at the same moment may both find the same ones."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for group, places in ONE_AT_A_TIME.items():
            if any(item.path.is_relative_to(ROOT / place) for place in places):
                item.add_marker(pytest.mark.xdist_group(group))
