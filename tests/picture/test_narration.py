"""Every kind of event has its sentence."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from backend.core import events
from backend.core.address import Address
from backend.core.events import Event, LinkChanged, Record
from backend.core.membership.identity import Member
from backend.picture.narration import narrate, tell

A, B = Address("[fe80::1]:5701"), Address("10.0.0.2:5701")

SAMPLES: list[Event] = [
    events.MemberStarted(A, True, (A, B)),
    events.JoinRequested(A, 2),
    events.JoinFailed({A: "no route"}),
    events.MemberStopped("asked to"),
    events.ListInstalled(3, "L", A, (Member(A, "u", 1), Member(B, "v", 2)), A, "B joined"),
    events.ListRejected(3, B, "not from the master"),
    events.MasterChanged(B, "its claim was accepted"),
    events.MemberAdmitted(B, "v", 4, 1, 2),
    events.MemberRemoved(B, "v", "suspected"),
    events.SuspicionRaised(B, "v", "no heartbeat"),
    events.SuspicionCleared(B, "v", "a heartbeat"),
    events.ExplicitSuspicionSent(B, "stranger"),
    events.ExplicitSuspicionReceived(B, True, "all matches"),
    events.ComplaintSent(A, B),
    events.ObserverPaused(2_500_000),
    events.ClaimStarted(3, (A,), (B,)),
    events.ClaimAnswered(B, "retry", 3, "does not suspect A"),
    events.ClaimFinished(5, "L2", (B,), ()),
    events.ClaimAbandoned("refused"),
    events.ProcessKilled("n1"),
    events.ProcessPaused("n1"),
    events.ProcessResumed("n1"),
    LinkChanged("n1", "n2", "blackhole", 1_500, 0.25),
    events.StrangerRefused("1.2.3.4:9", "no handshake"),
]


def test_samples_cover_every_kind() -> None:
    assert {type(sample) for sample in SAMPLES} == set(get_args(Event))


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.__struct_config__.tag)
def test_every_kind_is_told_in_words(event: Event) -> None:
    line = narrate(Record("r", "n1", "u", 1, 12_345_678, 0, event))
    assert line.startswith("   12.346  n1  ")
    assert "\n" not in line and type(event).__name__ not in line
    for value in msgspec.structs.asdict(event).values():
        if isinstance(value, str) and value not in ("L", "L2", "u", "v"):
            assert value in line


def test_addresses_go_by_the_names_people_know() -> None:
    assert tell(events.SuspicionRaised(B, "v", "no heartbeat"), {B: "n2"}.__getitem__) == "suspects n2: no heartbeat"


def test_conditions_of_a_link() -> None:
    assert tell(LinkChanged("n1", "n2", "blackhole", 1_500, 0.25)) == (
        "link n1 to n2 is cut (blackhole) and is slower by 1.5 ms and loses 25%"
    )
    assert tell(LinkChanged("n1", "n2")) == "link n1 to n2 is plain again"


def test_nothing_in_a_line_steers_a_terminal() -> None:
    line = narrate(Record("r", "n\n1", "u", 1, 0, 0, events.MemberStopped("\x1b]0;owned\x07\r\u202e")))
    assert line.isprintable()
