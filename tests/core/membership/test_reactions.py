"""Facts reach the chapters in order and to completion, and every kind of fact and message has its place."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from quarterdeck.backend.core import member
from quarterdeck.backend.core.commands import Heal, KillMember, Partition, StartMember
from quarterdeck.backend.core.membership import handlers
from quarterdeck.backend.core.membership.facts import (
    AdmissionEnded,
    BecameMaster,
    Fact,
    HeldLinksProven,
    Installed,
    Joined,
    Removed,
)
from quarterdeck.backend.core.membership.handlers import MESSAGE_RULES
from quarterdeck.backend.core.membership.messages import JoinRequest
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Doing
from quarterdeck.backend.core.membership.views import publishing
from quarterdeck.backend.core.messages import MESSAGE_KINDS
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.simulation.virtual_time.world import World
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SteppedCluster


def test_every_fact_has_its_chapters() -> None:
    assert set(handlers.REACTIONS) == set(get_args(Fact))


def test_every_message_has_a_rule_for_all_that_a_member_may_do_or_a_handler_that_does_not_care() -> None:
    assert set(member.RULES) == set(MESSAGE_KINDS.values())
    assert not MESSAGE_RULES.keys() & member.MESSAGE_HANDLERS.keys()
    assert all(set(rules) == set(get_args(Doing)) for rules in MESSAGE_RULES.values())


def test_what_follows_from_a_fact_comes_before_what_was_told_earlier_and_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def chapter(name: str, *follows: Fact) -> Any:
        def react(state: Membership, now: int, fact: Fact) -> None:
            told.append(name)
            for follow in follows:
                state.report(follow)

        return react

    fakes = {
        Joined: (chapter("joined, first", BecameMaster(), HeldLinksProven()), chapter("joined, second")),
        BecameMaster: (chapter("master"),),
        HeldLinksProven: (chapter("links"),),
        AdmissionEnded: (chapter("admission"),),
    }
    for kind, fake in fakes.items():
        monkeypatch.setitem(handlers.REACTIONS, kind, fake)
    world = SteppedCluster().settled("AB")
    state = state_of(world.machines["A"])
    state.report(Joined())
    state.report(AdmissionEnded())
    handlers.settle(state, world.now)
    assert told == ["joined, first", "joined, second", "master", "links", "admission"]
    assert not state.context.facts


def test_no_list_is_installed_before_all_have_reacted_to_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members come while others go, clusters fall apart and merge: one list often brings the next about."""
    reacting: set[int] = set()
    installs = 0

    def install(state: Membership, *arguments: Any, **more: Any) -> Any:
        nonlocal installs
        assert id(state) not in reacting
        assert not any(isinstance(fact, Installed) for fact in state.context.facts)
        installs += 1
        reacting.add(id(state))
        return sound(state, *arguments, **more)

    def last(state: Membership, now: int, fact: Installed) -> None:
        reacting.discard(id(state))

    sound = publishing.install
    monkeypatch.setattr(publishing, "install", install)
    monkeypatch.setitem(handlers.REACTIONS, Installed, (*handlers.REACTIONS[Installed], last))
    labels = [f"n{place}" for place in range(1, 8)]
    world = World(labels, seed=3, settings=Settings.of(preset="training"))
    for label in labels[:5]:
        world.execute(StartMember(label))
    world.run_until(8 * SECOND_US)
    world.execute(Partition((("n1", "n2", "n6"), ("n3", "n4", "n5", "n7"))))
    world.run_until(20 * SECOND_US)
    for label in labels[5:]:
        world.execute(StartMember(label))
    world.execute(KillMember("n2"))
    world.run_until(40 * SECOND_US)
    world.execute(Heal())
    world.run_until(120 * SECOND_US)
    assert installs > 15 and not reacting


def test_those_who_asked_meanwhile_come_in_when_all_have_reacted_to_the_removal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last who had to acknowledge an admission is removed: that ends the admission, and another one begins."""
    order: list[str] = []

    def install(*arguments: Any, **more: Any) -> Any:
        order.append("installed")
        return sound(*arguments, **more)

    def last(state: Membership, now: int, fact: Removed) -> None:
        order.append("all have reacted")

    world = SteppedCluster().settled("AB")
    for joiner in "XY":
        world.born(joiner, "A")
        world.receive("A", joiner, JoinRequest(world.machines[joiner].uuid, False))
    sound = publishing.install
    monkeypatch.setattr(publishing, "install", install)
    monkeypatch.setitem(handlers.REACTIONS, Removed, (*handlers.REACTIONS[Removed], last))
    world.suspect("A", "B")
    assert order == ["installed", "all have reacted", "installed"]
    assert len(world.inspect("A").view or ()) == 3
