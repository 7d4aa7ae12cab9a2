"""How much of a test that could go on for ever is done: a part in `make test`, all of it in `make test-long`.

What belongs to `make test-long` alone is marked `long`. Tests of properties run in both, under a profile each.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, settings

QUICK, LONG = "quick", "long"

FEWER = 8
"""A property is looked at so many times less often in `make test`."""

# How long an example takes says more of what else the machine does than of the code.
_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile(QUICK, _UNTIMED, max_examples=100 // FEWER)
settings.register_profile(LONG, _UNTIMED, max_examples=100)


def examples(count: int) -> int:
    """`count` under the profile `long`, which `make test-long` chooses, else a part of it."""
    return count if settings.get_current_profile_name() == LONG else max(count // FEWER, 1)


def long_after(count: int, values: Iterable[object]) -> list[object]:
    """Values of a parameter: a test is long for all but the first `count` of them."""
    return [
        value if place < count else pytest.param(value, marks=pytest.mark.long) for place, value in enumerate(values)
    ]
