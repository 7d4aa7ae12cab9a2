"""Expectations against a picture: met or not, and if not, a sentence that says what is missing."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, ProcessKilled, Record
from quarterdeck.backend.core.membership.events import ListInstalled, MemberStarted, SuspicionRaised
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.scenarios.event_patterns import forbidden_event
from quarterdeck.backend.scenarios.expectations import members_missing
from quarterdeck.backend.scenarios.format.scenario import Expect

LABELS = ("athens", "byzantium", "cyrene")
ADDRESSES = {label: Address(f"127.0.0.1:{5701 + place}") for place, label in enumerate(LABELS)}


def record(label: str, event: Event) -> Record:
    return Record("run", label, f"uuid-{label}", 1, 2_500_000, 0, event)


def list_of(*labels: str, version: int = 3, lineage: str = "L") -> ListInstalled:
    members = tuple(Member(ADDRESSES[label], f"uuid-{label}", 1) for label in labels)
    return ListInstalled(version, lineage, members[0].address, members, members[0].address, "unknown", "test")


@pytest.fixture
def records() -> list[Record]:
    """One cluster of three in which byzantium suspects cyrene."""
    started = [record(label, MemberStarted(ADDRESSES[label], False, ())) for label in LABELS]
    lists = [record(label, list_of(*LABELS)) for label in LABELS]
    suspicion = SuspicionRaised(ADDRESSES["cyrene"], "uuid-cyrene", "no heartbeat")
    return [*started, *lists, record("byzantium", suspicion)]


def fold(records: list[Record]) -> Picture:
    picture = Picture()
    for entry in records:
        picture.apply(entry)
    return picture


def expect(**fields: object) -> Expect:
    return Expect.model_validate({name.replace("_", "-"): value for name, value in fields.items()})


def event(**fields: object) -> Expect:
    return Expect.model_validate({"event": fields})


MET = [
    expect(views={"athens": ["cyrene", "athens", "byzantium"]}, masters={"cyrene": "athens"}, versions={"athens": 3}),
    expect(version_at_least=3, one_cluster=True),
    expect(suspects={"byzantium": ["cyrene"], "athens": []}),
    event(kind="suspicion-raised", suspect="cyrene"),
    event(kind="suspicion-raised", member="byzantium", reason="no heartbeat"),
    event(kind="list-installed", version=3, members=["athens", "cyrene", "byzantium"]),
    expect(never=["claim-started"]),
]


@pytest.mark.parametrize("wanted", MET, ids=Expect.text)
def test_met(wanted: Expect, records: list[Record]) -> None:
    assert members_missing(wanted, fold(records), records) == ""


UNMET = [
    (
        expect(views={"athens": ["athens", "byzantium"]}),
        "athens's list is v3 athens, byzantium, cyrene; expected athens, byzantium",
    ),
    (expect(masters={"cyrene": "cyrene"}), "cyrene follows athens; expected: cyrene is master"),
    (
        expect(versions={"athens": 4}),
        "athens's list is v3 athens, byzantium, cyrene; expected version 4",
    ),
    (expect(views={"troy": ["troy"]}), "troy was never started; expected troy"),
    (expect(suspects={"byzantium": []}), "byzantium suspects cyrene; expected nobody"),
    (expect(one_cluster=False), "all running members are one cluster; expected several"),
    (expect(never="suspicion-raised"), "suspicion-raised happened to byzantium at 2.500 s; expected never"),
    (event(kind="claim-started"), "no event claim-started since the last action"),
    (
        event(kind="suspicion-raised", suspect="athens"),
        "no event suspicion-raised (suspect athens) since the last action",
    ),
    (
        event(kind="suspicion-raised", member="athens"),
        "no event suspicion-raised (member athens) since the last action",
    ),
]


@pytest.mark.parametrize(("wanted", "missing"), UNMET, ids=[wanted.text() for wanted, _ in UNMET])
def test_what_is_missing_is_said(wanted: Expect, missing: str, records: list[Record]) -> None:
    assert members_missing(wanted, fold(records), records) == missing


def test_a_member_is_removed_when_no_other_running_member_lists_it(records: list[Record]) -> None:
    wanted = expect(removed=["cyrene"])
    gone = [*records, record("athens", list_of("athens", "byzantium", version=4))]
    assert members_missing(wanted, fold(gone), ()) == "byzantium still has cyrene on its list; expected removed"
    gone.append(record("byzantium", list_of("athens", "byzantium", version=4)))
    assert not members_missing(wanted, fold(gone), ())


def test_one_cluster_counts_only_the_running(records: list[Record]) -> None:
    wanted = expect(one_cluster=True)
    killed = [*records, record("dev", ProcessKilled("cyrene"))]
    assert "expected one cluster" in members_missing(wanted, fold(killed), ())
    shorter = [record(label, list_of("athens", "byzantium", version=4)) for label in ("athens", "byzantium")]
    assert not members_missing(wanted, fold([*killed, *shorter]), ())


def test_one_cluster_needs_one_lineage(records: list[Record]) -> None:
    other = record("cyrene", list_of(*LABELS, version=4, lineage="M"))
    assert "of another version or lineage" in members_missing(expect(one_cluster=True), fold([*records, other]), ())


def test_nobody_running_is_no_cluster() -> None:
    assert members_missing(expect(one_cluster=True), Picture(), ()) == "no member is running; expected one cluster"


def test_forbidden_is_empty_without_never(records: list[Record]) -> None:
    assert forbidden_event((), fold(records), records) == ""
