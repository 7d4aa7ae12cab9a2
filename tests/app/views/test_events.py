"""The view of events: the tail with its cursor and filter, why something happened, stories, and the diagram."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import cast

from textual.pilot import Pilot

from quarterdeck.app.console import Console
from quarterdeck.app.event_lines import LEVELS, EpisodeLine, Level
from quarterdeck.app.views.events.screen import EventsScreen
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.membership import events
from tests.app.fakes.fake_cluster import FakeCluster, formed
from tests.app.fakes.scenario_cluster import ScenarioCluster
from tests.app.fakes.screen_text import screen_text, settle, until_shown

NARROW = (80, 24)
WIDE = (160, 50)

Talk = Callable[[Pilot[None], Console, EventsScreen], Awaitable[None]]


def show(cluster: FakeCluster, talk: Talk, size: tuple[int, int] = NARROW, *, level: Level = "everything") -> None:
    async def scenario() -> None:
        app = Console(cluster)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await pilot.press("8")
            await settle(pilot)
            assert isinstance(app.screen, EventsScreen)
            for _ in range(LEVELS.index(level)):
                await pilot.press("l")
            await settle(pilot)
            await talk(pilot, app, app.screen)

    asyncio.run(scenario())


async def type_filter(pilot: Pilot[None], text: str) -> None:
    keys = {" ": "space", ":": "colon", "*": "asterisk", "!": "exclamation_mark", "-": "minus", '"': "quotation_mark"}
    await pilot.press("slash", *(keys.get(letter, letter) for letter in text), "enter")
    await settle(pilot)


async def point(pilot: Pilot[None], screen: EventsScreen, kind: type, member: str) -> None:
    """Put the cursor on the last event of this kind of this member."""
    assert screen.tail.point_at(lambda one: isinstance(one.record.event, kind) and one.record.member == member)
    await settle(pilot)


def test_the_tail_follows_pauses_with_a_cursor_and_says_what_it_is_on() -> None:
    cluster = ScenarioCluster("master-crash")

    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        assert "▼ follow" in screen_text(app)
        assert screen.targets() == ()
        await pilot.press("up", "up")
        cluster.start("athens", life=2)
        await settle(pilot)
        text = screen_text(app)
        assert "‖ paused +1 new" in text and "▸" in text
        assert any("member-admitted" in line for line in text.splitlines()[-4:])
        assert screen.targets() == ("byzantium",)
        await pilot.press("f")
        await settle(pilot)
        assert "▼ follow" in screen_text(app) and screen.sentence() == ()

    show(cluster, talk)


def test_a_filter_hides_or_marks_and_n_goes_from_match_to_match() -> None:
    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        await type_filter(pilot, "kind:suspicion* member:c1")
        assert {line.record.member for line in screen.tail.shown} == {"c1"}
        counted = re.search(r"4 of (\d+)", screen_text(app))
        assert counted is not None
        await pilot.press("H")
        await settle(pilot)
        assert len(screen.tail.shown) == int(counted[1]) > 100 and "• marks /kind:suspicion*" in screen_text(app)
        await pilot.press("N", "N")
        await settle(pilot)
        pointed = screen.tail.pointed
        assert pointed is not None and isinstance(pointed.record.event, events.SuspicionRaised)
        await until_shown(pilot, lambda text: any(line.startswith("▸•") for line in text.splitlines()))
        await pilot.press("n", "n", "n")
        await settle(pilot)
        assert "no further match below" in screen_text(app)
        await pilot.press("H", "escape")
        await settle(pilot)
        assert screen.tail.filter_text == "" and app.screen is screen

    show(ScenarioCluster("cut-racks"), talk)


def test_why_the_list_after_the_kill_is_as_it_is() -> None:
    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        await type_filter(pilot, "v5 published")
        await point(pilot, screen, events.ListInstalled, "delphi")
        await pilot.press("b")
        await settle(pilot)
        text = screen_text(app)
        assert "⇠ because byzantium published it:" in text
        assert "← because athens was killed:" in text
        assert "athens is killed" in text
        await pilot.press("G", "enter")
        await settle(pilot)
        assert "every field that says anything" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "because" not in screen_text(app).splitlines()[10]
        assert app.screen is screen

    show(ScenarioCluster("master-crash"), talk, WIDE)


def test_a_second_reason_is_no_cause_of_the_first_one() -> None:
    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        raised = next(record for record in screen._trail.records if isinstance(record.event, events.SuspicionRaised))
        await point(pilot, screen, events.SuspicionRaised, raised.member)
        await pilot.press("b")
        await settle(pilot)
        lines = [line for line in screen_text(app).splitlines() if "because" in line or "->" in line or "→" in line]
        first, second = (next(line for line in lines if words in line) for words in ("did not arrive", "late already"))
        assert "and because" in second and first.index("←") == second.index("←"), lines

    show(ScenarioCluster("cut-racks"), talk, WIDE)


def test_stories_of_an_event_one_after_the_other() -> None:
    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        await point(pilot, screen, events.ClaimFinished, "byzantium")
        await pilot.press("u")
        await settle(pilot)
        assert "kill athens: " in screen_text(app)
        assert screen.pane.story.cursor_key != "0"
        await point(pilot, screen, events.ClaimFinished, "byzantium")
        await pilot.press("escape", "colon", *"story", "space", *"athens", "enter")
        await settle(pilot)
        assert "athens in 2 incarnations" in screen_text(app)
        await pilot.press("colon", *"story", "space", *"nobody", "enter")
        await settle(pilot)
        assert "there is no member 'nobody'" in screen_text(app)

    show(ScenarioCluster("master-crash"), talk, WIDE)


def test_the_diagram_has_the_cursor_of_the_tail_and_gives_it_back() -> None:
    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        await point(pilot, screen, events.ClaimStarted, "byzantium")
        await pilot.press("z")
        await settle(pilot)
        text = screen_text(app)
        assert "A athens" in text and "◇ claim" in text and "├" in text and "▶" in text
        assert any(line.startswith("▸") and "◇ claim" in line for line in text.splitlines())
        await pilot.press("down")
        await settle(pilot)
        assert "master-changed" in screen_text(app)
        await pilot.press("plus")
        await settle(pilot)
        assert "a row is at most 1 ms" in screen_text(app)
        await pilot.press("minus", "minus")
        await settle(pilot)
        assert "a row is an event" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        pointed = screen.tail.pointed
        assert pointed is not None and isinstance(pointed.record.event, events.MasterChanged)

    show(ScenarioCluster("master-crash"), talk)


def test_the_diagram_follows_what_comes_and_heeds_the_filter() -> None:
    cluster = formed(["n1", "n2", "n3"])

    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        await pilot.press("z")
        await settle(pilot)
        cluster.suspect("n2", "n3")
        await settle(pilot)
        assert "⊘ C" in screen_text(app) and "▼ follow" in screen_text(app)
        await type_filter(pilot, "kind:suspicion*")
        assert len([line for line in screen_text(app).splitlines() if "●" in line or "▲" in line]) == 0
        assert "⊘ C" in screen_text(app)

    show(cluster, talk)


def test_an_event_opens_time_at_its_moment() -> None:
    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        jumps: list[tuple[str, int | None]] = []
        screen.console = cast("object", Jumps(jumps))  # type: ignore[assignment]
        await point(pilot, screen, events.ClaimStarted, "byzantium")
        await pilot.press("T")
        await settle(pilot)
        pointed = screen.tail.pointed
        assert pointed is not None and jumps == [("time", pointed.record.at)]

    show(ScenarioCluster("master-crash"), talk)


class Jumps:
    """A console that records where it is sent."""

    def __init__(self, jumps: list[tuple[str, int | None]]) -> None:
        self._jumps = jumps
        self.tabs = ()
        self.has_way_back = True

    def goto(self, view: str, *, member: str = "", at_us: int | None = None, **how: object) -> None:
        self._jumps.append((view, at_us))


def test_times_in_utc_and_an_export_of_what_is_in_sight() -> None:
    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        await pilot.press("t")
        await settle(pilot)
        assert "00:00:00.545  athens" in screen_text(app) and "events  UTC  ▼ follow" in screen_text(app)
        await pilot.press("z")
        await settle(pilot)
        assert "00:00:00.545" in screen_text(app)
        await pilot.press("z")
        await type_filter(pilot, "kind:claim-*")
        rows = list(screen.rows())
        assert {row["kind"] for row in rows} == {"claim-started", "claim-answered", "claim-finished"}
        assert '"kind":"claim-' in rows[0]["event"]
        await pilot.press("up")
        assert len(screen.copied_rows()) == 1

    show(ScenarioCluster("master-crash"), talk)


def test_hostile_names_and_reasons_are_only_text() -> None:
    cluster = formed(["[b]n1[/]", "n2\x1b[31m"])
    cluster.suspect("[b]n1[/]", "n2\x1b[31m", "[/]x [@click=quit]\n[fe80::1]:5701")

    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        for keys in ("up", "b", "escape", "u", "escape", "enter", "escape", "z", "down", "up"):
            await pilot.press(keys)
            await settle(pilot)
        text = screen_text(app)
        assert "[b]n1" in text and "\x1b" not in text

    show(cluster, talk)


def test_an_empty_view_answers_every_key() -> None:
    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        for keys in (
            "b",
            "u",
            "enter",
            "T",
            "n",
            "N",
            "H",
            "H",
            "up",
            "down",
            "z",
            "plus",
            "minus",
            "G",
            "g",
            "b",
            "escape",
        ):
            await pilot.press(keys)
            await pilot.pause()
        assert app.screen is screen

    show(FakeCluster(["n1"]), talk)


def test_episodes_grow_unfold_and_give_way_to_decisions_and_events() -> None:
    cluster = formed(("a", "b", "c"))

    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        cluster.happen("dev", ProcessKilled("c"))
        await settle(pilot)
        line = screen.tail.shown[-1]
        assert isinstance(line, EpisodeLine) and line.sentence().text == "kill c"
        assert "episodes" in screen.tail.title_text
        gone = events.MemberRemoved(cluster.address("c"), "u", "no connection", "no-connection")
        cluster.happen("a", gone)
        await settle(pilot)
        assert screen.tail.shown[-1] is line and "a removes it" in line.sentence().text
        await pilot.press("enter")
        await settle(pilot)
        assert screen.pane.content is screen.pane.story
        assert [row["kind"] for row in screen.rows()] == ["process-killed", "member-removed"]
        await pilot.press("escape")
        assert screen.targets() == ("c",)
        await type_filter(pilot, "kind:member-removed")
        assert list(screen.tail.shown) == [line]
        await pilot.press("escape")
        await pilot.press("l")
        await settle(pilot)
        assert "decisions" in screen.tail.title_text
        assert screen.tail.shown[-1].record.event == gone
        await pilot.press("l")
        await settle(pilot)
        assert len(screen.tail.shown) == len(app.session.tape)

    show(cluster, talk, level="episode")


UNLIKE = ("a", "athens", "a-member-with-a-name-of-more-letters-than-a-column", "192.168.100.101:65535")
"""Names of unlike length, the last of them an address as long as can be."""


def columns_of_kinds(app: Console) -> dict[str, int]:
    """Where the kind begins, by line of the tail that is in sight."""
    lines = (line for line in screen_text(app).splitlines() if re.search(r"\d\.\d{3}  ", line))
    return {line: found.start() for line in lines if (found := re.search(r"(member-started|process-killed) ", line))}


def test_kinds_stand_in_one_column_whatever_the_lengths_of_names_from_the_first_picture_on() -> None:
    cluster = FakeCluster(UNLIKE, name="a-cluster")
    for label in UNLIKE:
        cluster.start(label)

    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        found = columns_of_kinds(app)
        assert len(found) == len(UNLIKE) and len(set(found.values())) == 1, screen_text(app)
        assert any("  192.168.100.101:65535 " in line for line in found), "an address is told with its port"
        assert any("  a-member-with-a-name… " in line for line in found)

    show(cluster, talk, WIDE)


def test_a_longer_name_that_comes_later_moves_every_line_in_sight() -> None:
    """Also that of the cluster itself, which is no member; and also while the tail is paused."""
    cluster = formed(("a", "b"))

    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        cluster.happen("a-cluster", ProcessKilled("b"))
        await settle(pilot)
        found = columns_of_kinds(app)
        assert len(found) == 3 and len(set(found.values())) == 1, screen_text(app)
        await pilot.press("up", "up")
        cluster.happen("a-cluster-of-many", ProcessKilled("a"))
        await settle(pilot)
        paused = set(columns_of_kinds(app).values())
        await pilot.press("f")
        await settle(pilot)
        found = columns_of_kinds(app)
        assert len(found) == 4 and set(found.values()) == paused and len(paused) == 1, screen_text(app)

    show(cluster, talk, WIDE)


def test_where_there_is_little_room_names_take_less_of_it_and_words_stay_in_one_column() -> None:
    cluster = FakeCluster(UNLIKE)
    for label in UNLIKE:
        cluster.start(label)

    async def talk(pilot: Pilot[None], app: Console, screen: EventsScreen) -> None:
        lines = [line for line in screen_text(app).splitlines() if re.search(r"\d\.\d{3}  ", line)]
        words = {line.index("starts") for line in lines if "starts" in line}
        assert len(words) == 1, screen_text(app)

    show(cluster, talk, NARROW)
