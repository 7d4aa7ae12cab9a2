"""How many random examples a test of a property looks at: few in `make test`, all in `make test-long`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

QUICK, LONG = "quick", "long"

FEWER = 5
"""A property is looked at so many times less often in `make test`."""

# How long an example takes says more of what else the machine does than of the code.
_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile(QUICK, _UNTIMED, max_examples=100 // FEWER)
settings.register_profile(LONG, _UNTIMED, max_examples=100)


def examples(count: int) -> int:
    """`count` under the profile `long`, which `make test-long` chooses, else a part of it."""
    return count if settings.get_current_profile_name() == LONG else max(count // FEWER, 1)
