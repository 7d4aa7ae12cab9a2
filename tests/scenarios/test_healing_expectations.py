"""Expectations about healing: states, who is held back, why nobody merges, what was refused."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership.events import (
    ClusterStateChanged,
    ListInstalled,
    MemberHeldBack,
    MemberStarted,
    NotMerging,
)
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.scenarios.expectations import members_missing
from quarterdeck.backend.scenarios.format.scenario import Expect

ATHENS, CYRENE = Address("127.0.0.1:5701"), Address("127.0.0.1:5702")
STARTS = (("athens", MemberStarted(ATHENS, False, (CYRENE,))), ("cyrene", MemberStarted(CYRENE, False, (ATHENS,))))


def missing(expect: dict[str, object], *happened: tuple[str, Event], refusal: str | None = None) -> str:
    picture = Picture()
    for label, event in (*STARTS, *happened):
        uuid = f"{label}-{len(happened)}" if event in happened and isinstance(event, MemberStarted) else label
        picture.apply(Record("run", label, uuid, 1, 0, 0, event))
    return members_missing(Expect.model_validate(expect), picture, (), refusal)


FROZEN = ("athens", ClusterStateChanged("FROZEN", "asked"))
HELD = ("athens", MemberHeldBack(CYRENE, (ATHENS,)))
IN = (
    "athens",
    ListInstalled(3, "a/1", ATHENS, (Member(ATHENS, "athens", 1), Member(CYRENE, "cyrene", 3)), ATHENS, "join"),
)
QUIET = ("athens", NotMerging("the other cluster is FROZEN"))


@pytest.mark.parametrize(
    ("expect", "happened", "said"),
    [
        ({"state": {"athens": "ACTIVE"}}, (), ""),
        ({"state": {"athens": "FROZEN"}}, (FROZEN,), ""),
        (
            {"state": {"athens": "FROZEN"}},
            (FROZEN, STARTS[0]),
            "athens believes that the cluster is ACTIVE; expected FROZEN",
        ),
        ({"state": {"delphi": "FROZEN"}}, (), "delphi believes that the cluster is in no state yet; expected FROZEN"),
        ({"held-back": ["cyrene"]}, (HELD,), ""),
        ({"held-back": []}, (HELD, IN), ""),
        ({"held-back": []}, (HELD,), "held back: cyrene; expected nobody"),
        ({"not-merging": {"athens": "FROZEN"}}, (QUIET,), ""),
        ({"not-merging": {"athens": "PASSIVE"}}, (QUIET,), "athens does not merge for another reason"),
        ({"not-merging": {"athens": "FROZEN"}}, (), "athens gave no reason for not merging"),
    ],
)
def test_expectations_about_states_and_merging(
    expect: dict[str, object], happened: tuple[tuple[str, Event], ...], said: str
) -> None:
    found = missing(expect, *happened)
    assert found.startswith(said) and bool(found) == bool(said)


def test_refusals_are_told_apart_by_their_reason() -> None:
    assert missing({"refused": "paused"}, refusal="athens is paused already") == ""
    assert "for another reason" in missing({"refused": "unknown"}, refusal="athens is paused already")
    assert missing({"refused": ""}) == "the last command was not refused"
