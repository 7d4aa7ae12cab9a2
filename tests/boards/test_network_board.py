"""Links and suspicions side by side: cells, sentences, drawings."""

from __future__ import annotations

from quarterdeck.backend.boards.network_board import (
    PLANNED_GLYPH,
    by_age,
    drawing,
    link_sentence,
    link_word,
    network_sentence,
    planned_links,
    zones_of,
)
from quarterdeck.backend.boards.suspicion_board import (
    summarize_suspicions,
    suspicion_cell,
    suspicion_facts,
    suspicion_sentence,
)
from quarterdeck.backend.commands.links import LinkConditions
from quarterdeck.backend.core.commands import CutLink, DelayLink, DropMessages, LoseOnLink, Partition
from quarterdeck.backend.core.events import ProcessKilled, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.network.faults import FaultLedger
from tests.app.fakes.fake_cluster import formed
from tests.picture.simulated_picture import SimulatedPicture

FOUR = ("n1", "n2", "n3", "n4")


def wronged(*commands: Partition | CutLink | DelayLink | LoseOnLink | DropMessages) -> tuple[Picture, FaultLedger]:
    cluster = formed(FOUR)
    conditions, ledger, picture = LinkConditions(), FaultLedger(FOUR), Picture()
    for command in commands:
        for change in conditions.apply(command):
            cluster.happen("", change)
    for record in cluster.drain():
        picture.apply(record)
        ledger.take(record)
    return picture, ledger


def test_each_link_has_a_word_for_what_is_worst_about_it() -> None:
    picture, ledger = wronged(
        CutLink(("n1",), ("n2",)),
        CutLink(("n1",), ("n3",), one_way=True),
        DelayLink(("n2",), ("n3",), 50_000),
        LoseOnLink(("n2",), ("n4",), 0.5, one_way=True),
        DropMessages(("n4",), ("n2",), ("heartbeat",)),
        DelayLink(("n1",), ("n2",), 50_000),
    )
    expected = {("n1", "n2"): "cut", ("n2", "n1"): "cut", ("n1", "n3"): "one-way", ("n3", "n1"): "up"}
    expected |= {("n2", "n3"): "slow", ("n2", "n4"): "lossy", ("n4", "n2"): "dropping", ("n3", "n4"): "up"}
    assert {pair: link_word(picture, *pair) for pair in expected} == expected
    counts = ledger.link_counts()
    assert counts == {"cut": 2, "one-way": 1, "slow": 2, "lossy": 1, "dropping": 1}
    assert network_sentence(picture, ledger).endswith("● up 5")
    assert link_sentence(picture, "n1") == "n1: cut, slow by 50 ms both ways with n2; cut to n3"
    assert link_sentence(picture, "n2").endswith("loses 50% to n4; drops every heartbeat from n4")
    assert link_sentence(Picture(), "n1") == "n1: all its links are up"


def test_links_of_who_is_gone_are_down() -> None:
    picture, ledger = wronged()
    picture.apply(Record("r", "", "u", 1, 0, 0, ProcessKilled("n2")))
    assert link_word(picture, "n1", "n2") == "down" == link_word(picture, "n2", "n3")
    assert network_sentence(picture, ledger) == "one-way links: ● up 6"
    assert by_age(picture) == ("n1", "n3", "n4")
    assert link_sentence(picture, "n2") == "n2: killed"
    assert link_sentence(picture, "n1") == "n1: its links to running members are up"


def test_in_a_drawing_a_glyph_stands_where_it_is_noticed() -> None:
    picture, _ = wronged(CutLink(("n1",), ("n3",), one_way=True))
    plan = planned_links((CutLink(("n2",), ("n4",)),))
    shown = drawing(picture, FOUR, sides={"n2": 1, "n4": 2}, selected=("n2",), planned=plan)
    assert [node.text for node in shown.nodes] == ["A n1 ▲", "B[1] n2", "C n3", "D[2] n4"]
    assert [node.ringed for node in shown.nodes] == [False, True, False, False]
    edges = {(edge.one, edge.other): (edge.glyph_at_one, edge.glyph_at_other) for edge in shown.edges}
    assert edges[0, 2] == ("", "✕") and edges[1, 3] == (PLANNED_GLYPH, PLANNED_GLYPH) and edges[0, 1] == ("", "")


def test_of_many_members_only_what_is_wrong_is_drawn() -> None:
    labels = tuple(f"n{place}" for place in range(12))
    cluster = formed(labels)
    picture = Picture()
    for record in cluster.drain():
        picture.apply(record)
    picture.links["n1", "n2"] = LinkChanged("n1", "n2", delay=5)
    shown = drawing(picture, labels, sides={}, selected=(), planned=frozenset())
    assert [(edge.one, edge.other, edge.glyph_at_one, edge.glyph_at_other) for edge in shown.edges] == [(1, 2, "", "~")]


def test_zones_come_from_lists() -> None:
    assert zones_of(SimulatedPicture(3, zones={"A": "z1", "C": "z2"}).picture) == {"A": "z1", "C": "z2"}


def suspicious() -> Picture:
    cluster = formed(FOUR)
    cluster.suspect("n2", "n3")
    cluster.suspect("n2", "n4", "no connection (10.0.0.4:5701 refused)")
    cluster.suspect("n3", "n2")
    picture = Picture()
    for record in cluster.drain():
        picture.apply(record)
    return picture


def test_suspicions_side_by_side() -> None:
    picture = suspicious()
    now_us = picture.at + 12 * SECOND_US
    assert suspicion_cell(picture, "n2", "n3", now_us).text == "⇄ 12 s"
    assert suspicion_cell(picture, "n2", "n4", now_us).text == "? 12 s"
    assert suspicion_cell(picture, "n4", "n2", now_us).text == "·"
    assert suspicion_cell(picture, "n4", "n4", now_us).text == "—"
    assert suspicion_cell(picture, "n4", "stranger", now_us).text == ""
    assert suspicion_cell(picture, "stranger", "n4", now_us).text == ""
    some = summarize_suspicions(ListAgreement(picture), all_members=False)
    assert (some.observers, some.suspects) == (("n2", "n3"), ("n2", "n3", "n4"))
    assert (some.raised, ListAgreement(picture).suspicions.mutual) == (3, 1)
    assert some.sentence == "2 members suspect 3 members: 3 suspicions, 1 pair of them mutual"
    assert summarize_suspicions(ListAgreement(picture), all_members=True).observers == FOUR
    assert summarize_suspicions(ListAgreement(Picture()), all_members=True).sentence == "no member suspects another"


def test_reasons_are_spelt_out_with_names() -> None:
    picture = suspicious()
    sentence = suspicion_sentence(picture, "n2", picture.at)
    assert sentence.startswith(
        "n2 suspects ⇄ n3 for 0 s (no heartbeat for 4 s); n4 for 0 s (no connection (n4 refused))"
    )
    texts = [f"{fact.heading}: {fact.text}" for fact in suspicion_facts(picture, "n2", picture.at)]
    assert texts[0] == "suspects: ⇄ n3 for 0 s: no heartbeat for 4 s" and texts[-1] == "suspected by: n3"
    assert suspicion_sentence(picture, "n1", picture.at) == "n1 suspects no member"
    assert "a master removes a member that it does not hear" in suspicion_facts(picture, "n1", picture.at)[0].text
    assert suspicion_facts(picture, "stranger", 0) == ()
