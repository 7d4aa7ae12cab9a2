"""The view of the audit: what is watched live, the stream's findings, and an audit in a process of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from quarterdeck.app.console import Console
from quarterdeck.app.views.audit.findings import AUDIT, AuditFailed, AuditRunner, audited_path, findings_places
from quarterdeck.app.views.audit.screen import AuditScreen
from quarterdeck.backend.core.events import ProcessPaused, ProcessResumed
from quarterdeck.backend.core.membership import events
from tests import waiting
from tests.app.fakes.fake_cluster import FakeCluster
from tests.app.fakes.finding_line import line
from tests.app.fakes.screen_text import screen_text, settle

REPORT = {
    "findings": [
        {
            "rule": "version", "severity": "violation", "run": run, "member": "n2", "uuid": "n2-life-1", "seq": 2,
            "at": 2_500_000, "detail": "10.0.0.2:5701 installed version 1 after version 2",
            "witnesses": [{"uuid": "n2-life-1", "seq": 1}],
        }
        for run in ("run-1", "other")
    ],
    "counts": {"records": 12, "runs": 2, "quarantined": 3},
    "problems": [],
}  # fmt: skip

Talk = Callable[[Pilot[None], Console, AuditScreen], Awaitable[None]]


class JournalledCluster(FakeCluster):
    """A fake cluster that says where its journal is."""

    journal_path: Path | None = None


def pretending(script: str) -> AuditRunner:
    """A runner that runs this Python in place of the audit."""
    return AuditRunner((sys.executable, "-c", script))


def formed(journal: Path | None, source: str = "simulated") -> JournalledCluster:
    cluster = JournalledCluster(["n1", "n2"], source=source)  # type: ignore[arg-type]
    cluster.journal_path = journal
    cluster.form()
    return cluster


def show(cluster: FakeCluster, talk: Talk, size: tuple[int, int] = (110, 24)) -> None:
    async def scenario() -> None:
        app = Console(cluster)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await pilot.press("0")
            await settle(pilot)
            assert isinstance(app.screen, AuditScreen)
            await talk(pilot, app, app.screen)

    asyncio.run(scenario())


async def until(pilot: Pilot[None], app: Console, text: str) -> str:
    for _ in range(100):
        await settle(pilot)
        if text in screen_text(app):
            break
    shown = screen_text(app)
    assert text in shown, shown
    return shown


def test_an_audit_shows_its_findings_of_this_run_and_each_opens_its_moment(tmp_path: Path) -> None:
    (tmp_path / "run=run-1").mkdir()
    script = (
        f"import sys; print('reading', sys.argv[1], file=sys.stderr); print('''{json.dumps(REPORT)}'''); sys.exit(1)"
    )

    async def talk(pilot: Pilot[None], app: Console, screen: AuditScreen) -> None:
        screen.runner = pretending(script)
        assert "r checks " in screen_text(app)
        await pilot.press("r")
        shown = await until(pilot, app, "✕ 1 violation: 12 records of 2 runs")
        assert "3 lines unreadable; 1 more in other runs" in shown
        assert "n2 installed version 1 after version 2" in shown
        assert screen.runner.last_line.endswith("run=run-1")
        await pilot.press("G")
        assert screen.targets() == ("n2",)
        jumps: list[int | None] = []
        screen.console.goto = lambda view, *, member="", at_us=None: jumps.append(at_us)  # type: ignore[method-assign]
        await pilot.press("enter")
        assert jumps == [2_500_000]

    show(formed(tmp_path), talk)


def test_an_audit_that_fails_says_why_and_one_that_runs_can_be_stopped(tmp_path: Path) -> None:
    async def talk(pilot: Pilot[None], app: Console, screen: AuditScreen) -> None:
        screen.runner = pretending("import sys; sys.exit('the pipeline needs its packages: run `make pipeline`')")
        await pilot.press("r")
        await until(pilot, app, "✕ failed after")
        assert "needs its packages: run `make pipeline`" in screen_text(app)
        screen.runner = pretending("import sys, time; print('slow', file=sys.stderr, flush=True); time.sleep(600)")
        await pilot.press("r")
        await until(pilot, app, "slow (r stops it)")
        await pilot.press("r")
        await until(pilot, app, "stopped after")

    show(formed(tmp_path), talk)


def test_without_a_journal_one_can_be_named(tmp_path: Path) -> None:
    async def talk(pilot: Pilot[None], app: Console, screen: AuditScreen) -> None:
        screen.runner = pretending(
            "import sys, json; print(json.dumps({'findings': [], 'counts': {'records': 1, 'runs': 1}}))"
        )
        await pilot.press("r")
        await settle(pilot)
        assert "no journal of this run is known here" in screen_text(app)
        await pilot.press("colon", *"audit", "minus", *"run", "space", "x", "enter")
        assert "in 0 s" not in await until(pilot, app, "✓ nothing violated: 1 record of 1 run")

    show(formed(None), talk)


def test_violations_are_there_at_once_and_the_stream_as_it_comes(tmp_path: Path) -> None:
    cluster = formed(tmp_path)
    cluster.happen("n1", events.MemberStopped("asked to stop"))
    cluster.install("n2", 1, ["n1", "n2"])
    cluster.happen("n2", ProcessPaused("n1"))
    cluster._at += 10_000_000

    async def talk(pilot: Pilot[None], app: Console, screen: AuditScreen) -> None:
        shown = await until(pilot, app, "online")
        assert any(" online " in line and "✕ violation" in line for line in shown.splitlines())
        (tmp_path / "findings.jsonl").write_bytes(line(4) + line(5, run="another") + b"{torn")
        cluster.happen("n2", ProcessResumed("n1"))
        shown = await until(pilot, app, "went back")
        assert sum("went back" in line for line in shown.splitlines()) == 1

    show(cluster, talk)


def test_members_elsewhere_are_not_watched() -> None:
    async def talk(pilot: Pilot[None], app: Console, screen: AuditScreen) -> None:
        assert "not watched for members elsewhere" in screen_text(app)
        await pilot.press("enter")
        await settle(pilot)
        assert "there is no finding to go to" in screen_text(app)

    show(formed(None, "remote"), talk)


def test_the_process_ends_with_the_one_that_waits_for_it(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    script = f"import os, time; os.symlink(str(os.getpid()), {str(begun)!r}); time.sleep(600)"

    async def scenario() -> None:
        task = asyncio.create_task(pretending(script).run(Path("x")))
        await waiting.until(begun.is_symlink)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert not Path("/proc", begun.readlink()).exists()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("import sys; sys.exit(7)", "ended with code 7"),
        ("print('no json')", "cannot be read"),
        ('print(\'{"findings": 5, "counts": {}}\')', "cannot be read"),
    ],
)
def test_whatever_the_process_does_is_one_clear_error(script: str, why: str) -> None:
    with pytest.raises(AuditFailed, match=why):
        asyncio.run(pretending(script).run(Path("x")))
    with pytest.raises(AuditFailed, match="cannot be started"):
        asyncio.run(AuditRunner(("/nowhere/at/all",)).run(Path("x")))


def test_the_real_command_line_refuses_what_is_no_journal(tmp_path: Path) -> None:
    with pytest.raises(AuditFailed, match=r"holds no journal|needs"):
        asyncio.run(AuditRunner(AUDIT).run(tmp_path))


def test_only_the_directory_of_the_run_is_audited_where_there_is_one(tmp_path: Path) -> None:
    run = tmp_path / "run=a"
    run.mkdir()
    assert audited_path(tmp_path, "a") == run and audited_path(tmp_path, "b") == tmp_path
    assert findings_places(tmp_path, "a") == (tmp_path, run)
    assert findings_places(run, "a") == (tmp_path, run)
