"""The simulator's invariant checker counts time from the records that it has: a run whose records begin late was not
calm before.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from quarterdeck.backend.core.properties import SECOND_US
from tests.pipeline.rules.oracle import told, watched
from tests.pipeline.rules.planted import PLANTED

LATER_US = 1_000_000 * SECOND_US


@pytest.mark.parametrize("what", PLANTED)
def test_a_fragment_is_judged_alike_whenever_it_begins(what: str) -> None:
    records = PLANTED[what].records
    for first in range(len(records)):
        fragment = [replace(record, at=record.at - records[first].at) for record in records[first:]]
        later = [replace(record, at=record.at + LATER_US) for record in fragment]
        of_later = told(watched(later))
        assert [(rule, uuid, seq, at - LATER_US) for rule, uuid, seq, at, _ in of_later] == [
            (rule, uuid, seq, at) for rule, uuid, seq, at, _ in told(watched(fragment))
        ]
