"""The view of join lists: pairs that do not merge, what helps, and the editor."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from quarterdeck.app.commands.confirmation import ConfirmScreen
from quarterdeck.app.console import Console
from quarterdeck.app.views.join_lists import JoinListEditor, JoinListsScreen
from quarterdeck.backend.core.commands import ChangeState, Command, HealLink, SetJoinList
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.witnessed.events import MemberWitnessed
from tests.app.fakes.fake_cluster import FIVE, FakeCluster, formed
from tests.app.fakes.screen_text import screen_text, settle, until_shown
from tests.thoroughness import long_after

WIDE = (160, 50)


def apart(**how: object) -> FakeCluster:
    """Two clusters of which neither knows the other."""
    cluster = FakeCluster(FIVE, **how)  # type: ignore[arg-type]
    for half in (FIVE[:3], FIVE[3:]):
        for label in half:
            listed = tuple(cluster.address(label) for label in half)
            cluster.happen(label, events.MemberStarted(cluster.address(label), False, listed))
    cluster.split(FIVE[:3], FIVE[3:])
    return cluster


Talk = Callable[[Pilot[None], Console], Awaitable[None]]


def show(cluster: FakeCluster, talk: Talk, size: tuple[int, int] = WIDE) -> None:
    async def scenario() -> None:
        app = Console(cluster)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await pilot.press("7")
            await settle(pilot)
            assert isinstance(app.screen, JoinListsScreen)
            await talk(pilot, app)

    asyncio.run(scenario())


def test_one_cluster_shows_lists_only() -> None:
    async def talk(pilot: Pilot[None], app: Console) -> None:
        text = screen_text(app)
        assert "1 cluster: n1 with 5 members" in text
        assert "n1,n2,n3,n4,n5" in text and "as configured" in text
        assert "n1 looks at n1, n2, n3, n4, n5 (as configured)" in text
        assert "into that of" not in text
        await pilot.press("u")
        await settle(pilot)
        assert "there is only one cluster" in screen_text(app)

    show(formed(), talk)


@pytest.mark.parametrize("size", long_after(2, [(80, 24), WIDE, (300, 80)]))
def test_a_pair_is_explained_in_every_size(size: tuple[int, int]) -> None:
    async def talk(pilot: Pilot[None], app: Console) -> None:
        text = screen_text(app)
        assert "2 clusters: n1 with 3 members, n4 with 2 members" in text
        assert "∦ blocked" in text and "nobody-looks" in text
        assert "add n1 (10.0.0.1:5701) to the join list of n4's cluster" in text
        assert "n5" in text.split("no answer at")[1]

    show(apart(), talk, size)


def asked(cluster: FakeCluster) -> list[Command]:
    return cluster.commands


def test_one_key_unblocks_after_showing_the_diff() -> None:
    cluster = apart()

    async def talk(pilot: Pilot[None], app: Console) -> None:
        await pilot.press("u")
        await settle(pilot)
        assert isinstance(app.screen, ConfirmScreen)
        text = " ".join(screen_text(app).split())
        assert "+ n1" in text and "Edit the join list of n4's cluster?" in text
        await pilot.press("enter")  # leans towards no
        await settle(pilot)
        assert cluster.commands == []
        await pilot.press("u")
        await settle(pilot)
        await pilot.press("right", "enter")
        await settle(pilot)
        wanted = tuple(str(cluster.address(label)) for label in ("n4", "n5", "n1"))
        assert cluster.commands == [SetJoinList("n4", wanted)]

    show(cluster, talk)


class HalvesOfHazelcast(FakeCluster):
    """Two halves that another command reaches by an address of each."""

    def connect_options(self) -> tuple[str, ...]:
        return ("--connect", f"hazelcast://{self.address('n1')},{self.address('n4')}")


def test_what_helps_real_members_is_a_line_to_copy() -> None:
    async def talk(pilot: Pilot[None], app: Console) -> None:
        text = screen_text(app)
        assert "$ quarterdeck cluster join-list set --member=n4 --connect" in text
        assert "hazelcast://10.0.0.1:5701,10.0.0.4:5701 10.0.0.4:5701" in text

    cluster = HalvesOfHazelcast(FIVE)
    for half in (FIVE[:3], FIVE[3:]):
        for label in half:
            listed = tuple(cluster.address(label) for label in half)
            cluster.happen(label, events.MemberStarted(cluster.address(label), False, listed))
            cluster.happen(label, MemberWitnessed(("client-protocol",), ("join-list",)))
    cluster.split(FIVE[:3], FIVE[3:])
    show(cluster, talk)


def test_everything_in_the_way_is_asked_about_at_once() -> None:
    cluster = apart()
    cluster.happen("n4", events.ClusterStateChanged("FROZEN", "asked"))
    cluster.happen("dev", LinkChanged("n4", "n1", "blackhole"))

    async def talk(pilot: Pilot[None], app: Console) -> None:
        await pilot.press(*"u")
        await settle(pilot)
        assert "Do all of this?" in screen_text(app)
        await pilot.press("right", "enter")
        await settle(pilot)
        assert [type(command) for command in cluster.commands] == [ChangeState, HealLink, SetJoinList]

    show(cluster, talk)


def test_what_cannot_be_helped_is_said() -> None:
    cluster = apart()
    why = f"the cluster names differ: 'a' at {cluster.address('n4')}"
    cluster.happen("n4", events.MergeVerdict(cluster.address("n1"), "cannot-merge", "cluster-name", why))

    async def talk(pilot: Pilot[None], app: Console) -> None:
        assert "nothing that can be done here" in screen_text(app)
        await pilot.press("u")
        await settle(pilot)
        assert app.screen.is_current and "nothing can be done here: the cluster names differ" in screen_text(app)

    show(cluster, talk)


def test_pairs_have_a_cursor_and_their_loser_is_the_target() -> None:
    cluster = apart()
    cluster.install("n3", 9, ["n3"], lineage="L3")

    async def talk(pilot: Pilot[None], app: Console) -> None:
        screen = app.screen
        assert isinstance(screen, JoinListsScreen)
        assert screen.targets() == ("n1",)
        screen.pairs.focus()
        await pilot.pause()
        before = screen.targets()
        await pilot.press("j", "j")
        await settle(pilot)
        assert screen.targets() != before and screen.targets()[0] in FIVE

    show(cluster, talk)


def test_a_list_is_edited_for_one_cluster() -> None:
    cluster = apart()

    async def talk(pilot: Pilot[None], app: Console) -> None:
        await pilot.press("G", "e")
        await settle(pilot)
        editor = app.screen
        assert isinstance(editor, JoinListEditor)
        text = screen_text(app)
        assert "Join list of n4's cluster: 2 addresses" in text and "10.0.0.4:5701  # n4" in text
        assert "nothing new" in text
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert isinstance(app.screen, JoinListEditor), "there is nothing to apply"
        editor.area.text = "n4\nn4\n10.9.9.9:5701\nbad:port"
        text = await until_shown(pilot, lambda text: "line 2" in text)  # the list is judged when typing has rested
        assert "n4 stands on line 1 already" in text
        assert "no member was ever seen on this host" in text
        assert "✕ 'bad:port' has the port 'port'" in text
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert app.screen is editor and cluster.commands == []
        editor.area.text = "n4\n10.9.9.9:5701"
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert cluster.commands == [SetJoinList("n4", ("10.0.0.4:5701", "10.9.9.9:5701"))]
        assert isinstance(app.screen, JoinListsScreen)

    show(cluster, talk)


async def test_keys_before_the_editor_is_shown_find_nothing_to_apply() -> None:
    cluster = apart()
    app = Console(cluster)
    async with app.run_test():
        editor = JoinListEditor(lambda: app.session.picture, ("n4",), ("n4",), "")
        editor.action_others()
        editor.action_apply()
        assert editor.apply_button.disabled and cluster.commands == []


def test_a_list_is_edited_for_all_clusters() -> None:
    cluster = apart()

    async def talk(pilot: Pilot[None], app: Console) -> None:
        await pilot.press("A")
        await settle(pilot)
        text = screen_text(app)
        assert "Join list of n1's, n4's clusters: 5 addresses" in text
        assert "n1's cluster of 3 members: +2" in text and "n4's cluster of 2 members: +3" in text
        await pilot.press("ctrl+t")
        await settle(pilot)
        assert "Join list of n1's cluster: 5 addresses" in screen_text(app)
        await pilot.press("ctrl+t", "ctrl+s")
        await settle(pilot)
        assert [command.member for command in cluster.commands if isinstance(command, SetJoinList)] == ["n1", "n4"]
        await pilot.press("A", "escape")
        await settle(pilot)
        assert "cancelled" in screen_text(app) and len(cluster.commands) == 2

    show(cluster, talk)


def test_how_far_an_edit_has_come_is_told_for_each_cluster() -> None:
    cluster = apart()

    async def talk(pilot: Pilot[None], app: Console) -> None:
        wanted = tuple(cluster.address(label) for label in FIVE)
        for author, holders in (("n1", ("n1", "n2")), ("n4", ("n4", "n5"))):
            for label in holders:
                cluster.happen(label, events.JoinListChanged(wanted, 1, cluster.address(author)))
        await settle(pilot)
        text = screen_text(app)
        assert "… n1: 2 of 3 members have it" in text and "✓ n4: 2 of 2 members have it" in text
        assert "edition 1, given to n1" in text
        cluster.happen("n4", events.MemberMerging(cluster.address("n1"), "n4-life-2"))
        merged = events.MemberStarted(cluster.address("n4"), False, wanted, "n4-life-1")
        cluster.happen("n4", merged, life=2)
        await settle(pilot)
        assert "n4: 2 of 2" not in screen_text(app), "the cluster that was edited is none any more"

    show(cluster, talk)


def test_whoever_does_not_run_cannot_be_edited() -> None:
    cluster = formed()
    cluster.happen("dev", ProcessKilled("n1"))

    async def talk(pilot: Pilot[None], app: Console) -> None:
        await pilot.press("e")
        await settle(pilot)
        assert "n1 does not run, so it cannot be asked" in screen_text(app)
        assert "✕ n1" in screen_text(app)

    show(cluster, talk)


def test_a_read_only_cluster_has_no_keys_for_it() -> None:
    cluster = apart(writable=False)

    async def talk(pilot: Pilot[None], app: Console) -> None:
        await pilot.press("u", "e", "A")
        await settle(pilot)
        assert isinstance(app.screen, JoinListsScreen) and cluster.commands == []

    show(cluster, talk)


def test_filter_is_for_the_lists() -> None:
    async def talk(pilot: Pilot[None], app: Console) -> None:
        screen = app.screen
        assert isinstance(screen, JoinListsScreen)
        await pilot.press("slash", "n", "4", "enter")
        await settle(pilot)
        assert screen.sort_filter is not None and "n4" in screen.sort_filter.keys

    show(apart(), talk)
