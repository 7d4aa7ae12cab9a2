"""What all rooms' tests share: which of them may not run beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all of Spark on one process: a Java machine for each would not fit a small build server."""
    for item in items:
        if item.path.is_relative_to(ROOT / "pipeline"):
            item.add_marker(pytest.mark.xdist_group("spark"))
