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
    events.MemberStarted(A, False, (B,), "u"),
    events.DisconnectionReported(A, (B,)),
    events.DisconnectionReported(A, ()),
    events.DisconnectionResolved((A,), (B,), False, "the largest that reach one another"),
    events.MemberHeldBack(B, (A,)),
    events.JoinDelayed(A, (B,), 1_500_000),
    events.MergeVerdict(B, "cannot-merge", "cluster-name", "the names differ"),
    events.NotMerging("nobody answers"),
    events.MergeStarted(A, (B,)),
    events.MergeAbandoned(A, "it fell silent"),
    events.MemberMerging(A, "v"),
    events.JoinListChanged((A, B), 3, B),
    events.ClusterStateChanged("FROZEN", "the master decided it"),
    events.ClusterStateRefused("PASSIVE", "no answer"),
    events.ProtectionChanged(2, 3, False),
    events.ProcessKilled("n1"),
    events.ProcessPaused("n1"),
    events.ProcessResumed("n1"),
    LinkChanged("n1", "n2", "blackhole", 1_500, 0.25, 0.5, ("heartbeat",)),
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
        if isinstance(value, str) and value not in ("L", "L2", "u", "v", "cannot-merge"):
            assert value in line


def test_addresses_go_by_the_names_people_know() -> None:
    assert tell(events.SuspicionRaised(B, "v", "no heartbeat"), {B: "n2"}.__getitem__) == "suspects n2: no heartbeat"


def test_addresses_within_reasons_go_by_name_too() -> None:
    names = {B: "n2", A: "n1"}
    event = events.NotMerging(
        f"{A} has 3 data members and {B} has 2, so {B} merges into {A}; (nobody at 10.0.0.2:57010)"
    )
    line = narrate(Record("r", "n1", "u", 1, 0, 0, event), lambda address: names.get(address, address))
    assert line.endswith("n1 has 3 data members and n2 has 2, so n2 merges into n1; (nobody at 10.0.0.2:57010)")


def test_conditions_of_a_link() -> None:
    assert tell(LinkChanged("n1", "n2", "blackhole", 1_500, 0.25)) == (
        "link n1 to n2 is cut (blackhole) and is slower by 1.5 ms and loses 25%"
    )
    assert tell(LinkChanged("n1", "n2", duplicate=0.5, dropped_kinds=("heartbeat", "join-request"))) == (
        "link n1 to n2 doubles 50% and drops every heartbeat, join-request"
    )
    assert tell(LinkChanged("n1", "n2")) == "link n1 to n2 is plain again"


def test_nothing_in_a_line_steers_a_terminal() -> None:
    line = narrate(Record("r", "n\n1", "u", 1, 0, 0, events.MemberStopped("\x1b]0;owned\x07\r\u202e")))
    assert line.isprintable()
