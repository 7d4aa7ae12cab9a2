"""What all rooms' tests share: which of them may not run beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent

ONE_AT_A_TIME = {
    "pipeline": "spark",  # a Java machine for each process would not fit a small build server
    "live": "ports",  # two clusters that look for free ports at the same moment may find the same
    "training": "ports",
    "cli": "ports",
}
"""Room to the group of tests that share one process, and so run one after another."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        group = ONE_AT_A_TIME.get(item.path.relative_to(ROOT).parts[0])
        if group is not None and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))
