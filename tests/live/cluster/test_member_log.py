"""The log of a live cluster shows lists as the documents print them."""

from __future__ import annotations

import logging

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled, MemberStarted, SuspicionRaised
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.live.cluster.run_recorder import log_record

A, B = Address("127.0.0.1:5701"), Address("127.0.0.1:5702")
LIST = ListInstalled(3, "a/1", A, (Member(A, "aaa", 1), Member(B, "bbb", 2)), A, "join")


def record(event: ListInstalled | MemberStarted | SuspicionRaised) -> Record:
    return Record("run", "athens", "aaa", 1, 0, 0, event)


@pytest.mark.parametrize(
    ("legacy", "opening"), [(False, "Members {size:2, ver:3} ["), (True, "Members [2] {")], ids=["new", "legacy"]
)
def test_a_list_is_logged_in_either_format(caplog: pytest.LogCaptureFixture, legacy: bool, opening: str) -> None:
    caplog.set_level(logging.INFO)
    log_record(record(LIST), legacy=legacy)
    assert opening in caplog.text
    assert "\tMember [127.0.0.1]:5701 - aaa this\n" in caplog.text


def test_suspicions_are_logged_and_everything_else_is_left_to_the_journal(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log_record(record(MemberStarted(A, False, ())), legacy=False)
    assert not caplog.text
    log_record(record(SuspicionRaised(B, "bbb", "no heartbeat for 4.2 s")), legacy=False)
    assert "is suspected to be dead for reason: no heartbeat for 4.2 s" in caplog.text


def test_nothing_is_made_when_nobody_reads_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    log_record(record(LIST), legacy=False)
    assert not caplog.text
