"""What the console says of a cluster that is reached over the net: where it is, what may be done, whose news are old."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.app.console import Console
from quarterdeck.app.screen.header import ConnectionSummary
from quarterdeck.backend.clusters.cluster import ConnectionStatus
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import JournalChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionChanged
from tests.app.fakes.fake_cluster import FakeCluster
from tests.app.fakes.screen_text import screen_text, settle


class FakeRemote(FakeCluster):
    """One whose members are reached as a test says."""

    environment = "PROD"

    def __init__(self, labels: tuple[str, ...], *, writable: bool) -> None:
        super().__init__(labels, name="orders", source="remote", writable=writable)
        self.reached = {label: ConnectionStatus(f"http://{label}:5701", "connected", 0) for label in labels}

    def connection_status(self) -> Mapping[str, ConnectionStatus]:
        return dict(self.reached)

    def pass_time(self, seconds: int) -> None:
        self._at += seconds * SECOND_US


def cities(*, writable: bool = False) -> FakeRemote:
    cluster = FakeRemote(("athens", "byzantium"), writable=writable)
    cluster.form()
    return cluster


async def test_the_header_has_the_badge_and_the_right_in_words() -> None:
    for writable, words in ((False, "RO read-only"), (True, "RW read and write")):
        app = Console(cities(writable=writable))
        async with app.run_test(size=(120, 24)) as pilot:
            await settle(pilot)
            line = screen_text(app).splitlines()[0]
            assert line[:80].startswith(" healthy · 2 members agree · no data yet  PROD  members 2/2  master athens")
            assert f"orders  {words}" in line


async def test_the_header_says_whose_journal_cannot_be_written_as_long_as_that_lasts() -> None:
    cluster = cities()
    app = Console(cluster)
    async with app.run_test(size=(160, 24)) as pilot:
        cluster.happen("orders", JournalChanged("byzantium", "No space left on device", 0))
        await settle(pilot)
        assert "✕ no journal of byzantium: No space left on device" in screen_text(app).splitlines()[0]
        cluster.happen("orders", JournalChanged("byzantium", "", 0))
        await settle(pilot)
        assert "journal" not in screen_text(app).splitlines()[0]


async def test_beliefs_of_a_silent_member_stay_and_grow_older_without_any_record() -> None:
    cluster = cities()
    app = Console(cluster)
    async with app.run_test(size=(120, 24)) as pilot:
        await settle(pilot)
        cluster.reached["byzantium"] = ConnectionStatus("http://b:5701", "stale", cluster.now_us(), "no answer in time")
        cluster.pass_time(12)
        await settle(pilot)
        text = screen_text(app)
        row = next(line for line in text.splitlines() if "byzantium" in line and "stale" in line)
        assert "stale 12 s v2" in row
        assert "● member" in row
        assert text.startswith((" degraded · byzantium not reached", " degraded · byzantium gone"))
        cluster.pass_time(1)
        await settle(pilot)
        assert "stale 13 s v2" in screen_text(app)
        await pilot.press("j", "i")
        await settle(pilot)
        text = screen_text(app)
        assert "http://b:5701, last heard 13 s ago: no answer in time" in text
        assert "its last known belief:" in text


async def test_who_was_never_reached_has_a_row_and_a_torn_history_is_named() -> None:
    cluster = cities()
    cluster.labels = (*cluster.labels, "10.0.0.9:5701")
    cluster.reached["10.0.0.9:5701"] = ConnectionStatus("http://10.0.0.9:5701", "connecting", 0, "refused")
    cluster.reached["athens"] = ConnectionStatus("http://a:5701", "connected", 0, incomplete="its beginning")
    app = Console(cluster)
    async with app.run_test(size=(160, 24)) as pilot:
        await settle(pilot)
        text = screen_text(app)
        assert "history incomplete: athens" in text
        row = next(line for line in text.splitlines() if "10.0.0.9:5701  " in line and "not reached" in line)
        assert "not up" not in row
        who = Address("10.0.0.9:5701")
        listed = (cluster.member("athens"), Member(who, "elsewhere", 2))
        cluster.happen("athens", events.ListInstalled(3, "L1", who, listed, who, "unknown", "a member joined"))
        await settle(pilot)
        assert "▲ master" in screen_text(app)
        await pilot.press("i")
        await settle(pilot)
        assert "incomplete: its beginning is lost" in screen_text(app)


async def test_a_stale_row_says_once_that_its_member_is_not_heard() -> None:
    cluster = cities()
    app = Console(cluster)
    async with app.run_test(size=(120, 24)) as pilot:
        await settle(pilot)
        cluster.happen("byzantium", ConnectionChanged("silent", ""))
        cluster.reached["byzantium"] = ConnectionStatus("http://byzantium:5701", "stale", 0, "silence")
        cluster.pass_time(7)
        await settle(pilot)
        row = next(line for line in screen_text(app).splitlines() if "  byzantium" in line and "stale" in line)
        assert "stale 7 s v" in row and "not reached" not in row


def test_the_first_line_calls_no_member_gone_that_was_never_met() -> None:
    """A join list may name places where there never was a member."""
    cluster = cities()
    cluster.reached["10.0.0.9:5701"] = ConnectionStatus("", "connecting", 0, "refused", state="gone")
    cluster.reached["byzantium"] = ConnectionStatus("", "stale", 0, "refused", state="gone")
    (problem,) = ConnectionSummary(cluster).problems()
    assert problem.text == "⊘ 1 of 3 answer; byzantium gone, 10.0.0.9:5701 not reached"
