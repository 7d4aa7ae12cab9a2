"""Whether a member that was restarted is back, by the lists before and after."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.cli.commands.cluster.restarts import has_come_back


def at(**incarnations: int) -> dict[str, Address]:
    return {uuid: Address(f"10.0.0.{host}:5701") for uuid, host in incarnations.items()}


@pytest.mark.parametrize(
    ("now", "is_back"),
    [
        (at(a=1, b=2, c=3), False),
        (at(a=1, b=2), False),
        (at(a=1, b=2, d=3), True),
        (at(a=1, b=2, d=9), True),
        (at(a=1, b=2, c=3, d=9), False),
        (at(a=1, e=2), False),
        (at(a=1, e=2, d=3), True),
        ({}, False),
    ],
    ids=[
        "not stopped yet", "stopped", "at its address", "at another address", "the old one is still listed",
        "another one has merged", "another one has merged, and it is back", "no list",
    ],
)  # fmt: skip
def test_whether_c_is_back(now: dict[str, Address], is_back: bool) -> None:
    assert has_come_back("c", at(a=1, b=2, c=3), now) is is_back
