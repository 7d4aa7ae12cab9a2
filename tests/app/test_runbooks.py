"""Help begins with the runbook of what is wrong now."""

from __future__ import annotations

from typing import get_args

from quarterdeck.app.console import Console
from quarterdeck.app.help_screen import PAGE, runbook_of
from quarterdeck.backend.judgement.health.cluster_health import Condition
from quarterdeck.backend.judgement.observations.observation import ObservationKind
from tests.app.fakes.fake_cluster import formed
from tests.app.fakes.screen_text import screen_text, settle


def test_each_condition_and_each_observation_has_one() -> None:
    for name in (*get_args(Condition), *get_args(ObservationKind)):
        assert runbook_of(name), name
    assert runbook_of("no-such") == []
    assert [label for label, _ in runbook_of("split")] == ["", "See", "Costs", "Now", "For good"]
    assert PAGE.name == "runbooks.md" and PAGE.stat().st_size > 1_000


async def test_help_begins_with_what_to_do_about_the_condition_in_the_first_line() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        assert app.top.runbooks() == ()
        half = [*cluster.labels][:2]
        cluster.split(half, [*cluster.labels][2:])
        await settle(pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        text = screen_text(app)
        assert "Runbook: split" in text and "keep writers on one side" in text.replace("\n", " ")
