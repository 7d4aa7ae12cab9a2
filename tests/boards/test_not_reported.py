"""What is not reported of real members shows as such on every board: never as none, never as all is well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quarterdeck.app.views.network.model import LinkModel
from quarterdeck.backend.boards.belief_matrix import observer_facts, summarize_beliefs
from quarterdeck.backend.boards.join_list_board import JoinListBoard
from quarterdeck.backend.boards.member_board import (
    ListOrder,
    MemberBoardEntry,
    board_facts,
    heartbeat_observers,
    member_row,
    member_sentence,
)
from quarterdeck.backend.boards.member_detail import member_detail
from quarterdeck.backend.boards.migration_board import migration_board
from quarterdeck.backend.boards.network_board import drawing, link_sentence, link_word, network_sentence
from quarterdeck.backend.boards.replicas.replica_map import ReplicaMap
from quarterdeck.backend.boards.replicas.replica_text import (
    ReplicaCensus,
    census_facts,
    holder_row,
    map_facts,
    partition_sentence,
)
from quarterdeck.backend.boards.suspicion_board import (
    summarize_suspicions,
    suspicion_cell,
    suspicion_facts,
    suspicion_sentence,
)
from quarterdeck.backend.core.commands import KillMember
from quarterdeck.backend.core.witnessed.events import LinkMeasured, MemberMeasured, MemberWitnessed, OwnersTold
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.merging.why_not_merging import why_not_merging
from quarterdeck.backend.judgement.observations.run_reader import RecordsRead, read_run
from quarterdeck.backend.judgement.what_if.blast_radius import blast_radius, loss_facts, loss_of
from quarterdeck.backend.judgement.what_if.disconnection_decision import Timing, decision_facts
from quarterdeck.backend.judgement.what_if.prediction import FaultPrediction, PredictedCluster, with_present_table
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.network.faults import FaultLedger
from quarterdeck.backend.picture.text.fact import Fact
from tests.app.fakes.fake_cluster import FakeCluster, fold

DATA = Path(__file__).parents[1] / "hazelcast" / "logs" / "data"
H1, H2, H4 = "10.77.0.1:5701", "10.77.0.2:5701", "10.77.0.4:5701"
WITH_LOGS = "give logs with --logs"
NOBODY_KNOWS = "only the members themselves know"


@pytest.fixture(scope="module")
def split() -> Picture:
    """Real members, known from their logs, while two clusters lead themselves apart."""
    picture = Picture()
    for news in read_run(DATA / "split-and-merge"):
        for record in news.records if isinstance(news, RecordsRead) else ():
            if len(picture.masters()) == 2 and record.event.__struct_config__.tag == "merge-verdict":
                return picture
            picture.apply(record)
    raise AssertionError("there is no split in the recording")


class Watched:
    """Two members that are known from what they tell clients: who owns what, and no more."""

    def __init__(self) -> None:
        self.cluster, self._picture = FakeCluster(("n1", "n2")), Picture()
        for label in ("n1", "n2"):
            self.cluster.start(label)
            self.cluster.happen(label, MemberWitnessed(("client-protocol",), ("owners", "migration-ends")))
            self.cluster.install(label, 2, ("n1", "n2"))
        for label in ("n1", "n2"):
            self.tell_owners(label, 77)

    @property
    def picture(self) -> Picture:
        for record in self.cluster.drain():
            self._picture.apply(record)
        return self._picture

    def tell_owners(self, label: str, stamp: int) -> None:
        holders = (self.cluster.holder("n1"), self.cluster.holder("n2"))
        self.cluster.happen(label, OwnersTold(holders, (0, 0, 1), "0123456789", stamp))


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def attached(watched: Watched) -> Picture:
    return watched.picture


def texts(facts: Iterator[Fact] | tuple[Fact, ...]) -> str:
    return "\n".join(f"{fact.heading}: {fact.text}" for fact in facts)


def row_of(picture: Picture, label: str) -> MemberBoardEntry:
    return member_row(picture, label, heartbeat_observers(picture), ListOrder(), picture.at)


def test_nobody_is_said_to_be_in_time_whose_heartbeats_are_not_told(split: Picture) -> None:
    row = row_of(split, H1)
    assert (row.heartbeat.text, row.heartbeat.tone) == ("not reported", "faint")
    assert NOBODY_KNOWS in row.heartbeat.sentence
    assert (row.table_version, row.owned, row.backups) == ("not reported", None, None)
    assert observer_facts(split, H1).table_version == "not reported"


def test_logs_tell_suspicions_and_the_state_of_lives_that_they_show_from_the_start(split: Picture) -> None:
    assert "not reported" not in summarize_suspicions(ListAgreement(split), all_members=True).sentence
    assert suspicion_cell(split, H1, H2, split.at).text == "·"
    assert "not reported" not in summarize_beliefs(ListAgreement(split)).sentence
    assert "cluster: ACTIVE" in texts(member_detail(split, H1, split.at))


def test_what_clients_are_told_has_no_suspicions_and_no_state(attached: Picture) -> None:
    assert f"not reported: {WITH_LOGS}" in texts(board_facts(attached, attached.at))
    assert WITH_LOGS in summarize_suspicions(ListAgreement(attached), all_members=True).sentence
    assert suspicion_cell(attached, "n1", "n2", attached.at).text == "not reported"
    assert WITH_LOGS in suspicion_sentence(attached, "n1", attached.at)
    assert f"suspects: not reported: {WITH_LOGS}" in texts(suspicion_facts(attached, "n1", attached.at))
    assert "suspects (not reported)" in member_sentence(attached, "n1", row_of(attached, "n1"))
    assert "state not reported" in summarize_beliefs(ListAgreement(attached)).sentence


def test_what_a_master_was_reported_is_not_told_without_its_log(attached: Picture, split: Picture) -> None:
    for picture, label, told in ((attached, "n1", f"not reported: {WITH_LOGS}"), (split, H1, "none: there is nothing")):
        facts = texts(decision_facts(picture, picture.members[label], None, Timing(), picture.at, None))
        assert f"reports: {told}" in facts


def test_members_that_have_told_no_owners_yet_hold_no_data_yet() -> None:
    cluster, picture, shown = FakeCluster(("n1",)), Picture(), ReplicaMap()
    cluster.start("n1")
    cluster.happen("n1", MemberWitnessed(("client-protocol",), ("owners",)))
    fold(cluster, picture)
    shown.follow(picture)
    said = ": no owners are reported yet; they are arranged when a client uses data for the first time"
    assert texts(map_facts(picture, shown, picture.at)) == said


def test_a_suspicion_that_is_told_shows_though_others_are_not(watched: Watched) -> None:
    watched.cluster.suspect("n1", "n2")
    sentence = summarize_suspicions(ListAgreement(watched.picture), all_members=True).sentence
    assert sentence.endswith(f"1 suspicion; of 2 members: not reported: {WITH_LOGS}")


def test_a_member_at_length_says_what_is_not_told(split: Picture) -> None:
    told = texts(member_detail(split, H1, split.at))
    for heading in ("heartbeat", "operations", "table", "join list", "links"):
        assert f"{heading}: not reported" in told, told
    assert "suspects: none" in told
    for claim in ("in time", "served", "up, to", "as configured", "no answer"):
        assert claim not in told, told


def test_partitions_of_logs_are_not_told(split: Picture) -> None:
    shown = ReplicaMap()
    shown.follow(split)
    assert texts(map_facts(split, shown, split.at)) == ": partitions are not reported: logs do not show it"
    (head,) = migration_board(Judge(split), split.at).heads
    assert head.text == "migrations are not reported: logs do not show it"


def test_where_only_owners_are_told_backups_are_not_told(attached: Picture) -> None:
    shown = ReplicaMap()
    shown.follow(attached)
    census = ReplicaCensus(shown)
    census.count()
    head = texts(map_facts(attached, shown, attached.at))
    assert f"3 partitions, owners only: backups not reported: {NOBODY_KNOWS}" in head
    assert "v0" not in head and "= the table of" not in head.replace("= the table of n1", "")
    assert texts(census_facts(census, attached.members["n1"])) == ": every partition has an owner; backups not reported"
    assert partition_sentence(attached, shown, 2, 0, attached.at) == "p2: owner n2, backups not reported"
    row = holder_row(attached, shown, "n1", 0, attached.at)
    assert (row.owned, row.backups, row.table, row.digest, row.differs) == (
        2,
        None,
        "#012345",
        "01234567/00000000",
        False,
    )


def test_tables_are_compared_by_what_is_told_of_them(watched: Watched) -> None:
    watched.tell_owners("n2", 78)
    assert row_of(watched.picture, "n2").table_version == "#012345"  # owners are equal
    assert "state stamp 78" in texts(member_detail(watched.picture, "n2", watched.picture.at))


def test_what_would_be_lost_is_not_told_where_backups_are_not(attached: Picture, split: Picture) -> None:
    table = attached.members["n1"].table
    assert table is not None
    told = texts(loss_facts(attached, loss_of(attached, table, ["n2"]), ["n2"]))
    assert f"who holds their backups is not reported: {NOBODY_KNOWS}" in told
    assert "lost:" not in told.replace("what is lost:", "") and "nothing" not in told
    for picture, label in ((attached, "n2"), (split, H4)):
        said = blast_radius(picture, [KillMember(label)])
        assert "What would be lost is not reported" in said and "No partition" not in said
    apart = FaultPrediction((PredictedCluster(("n1",), True),), (), (), (), 0, True, 1, 1, ())
    assert with_present_table(apart, attached).clusters[0].untold


def test_links_are_not_held_to_be_up(split: Picture) -> None:
    assert link_word(split, H1, H2) == "not reported"
    assert link_sentence(split, H1) == f"{H1}: its links are not reported: {NOBODY_KNOWS}"
    assert network_sentence(split, FaultLedger()) == f"one-way links: not reported: {NOBODY_KNOWS}"
    assert drawing(split, [H1, H2], sides={}, selected=(), planned=frozenset()).edges == ()


def test_links_are_shown_as_members_write_on_them(watched: Watched) -> None:
    """A link is never said to be up: what arrives is not reported. One that was never seen stays unknown."""
    other = watched.picture.members["n2"].address
    assert link_word(watched.picture, "n1", "n2") == "not reported", "no metrics have come"
    kinds = ((), None, "not reported"), ((), (other,), "not reported"), ((), (), "writes")
    bad = (
        (LinkMeasured(other, 0), "closed"),
        (LinkMeasured(other, 1, 7_000_000, 40), "idle"),
        (LinkMeasured(other, 2, 0, 40), "queued"),
    )
    for strained, unlinked, word in (*kinds, *(((link,), (), word) for link, word in bad)):
        watched.cluster.happen("n1", MemberMeasured(strained_links=strained, unlinked=unlinked))
        assert (link_word(watched.picture, "n1", "n2"), link_word(watched.picture, "n2", "n1")) == (
            word,
            "not reported",
        )
    picture = watched.picture
    assert link_sentence(picture, "n1") == "n1: packets wait to be written to n2; what arrives is not reported"
    assert "≡ queued 1; what arrives is not reported" in network_sentence(picture, FaultLedger())
    assert drawing(picture, ["n1", "n2"], sides={}, selected=(), planned=frozenset()).edges[0].glyph_at_other == "≡"
    links = LinkModel()
    links.update(picture, ("n1", "n2"), (), {}, 80)
    shown = [[cell.text for cell in links.cells(it, links.fixed_columns, len(links.columns))] for it in ("n1", "n2")]
    assert shown == [["—", "≡ queued"], ["· not reported", "—"]]


def test_join_lists_and_why_halves_do_not_merge(split: Picture) -> None:
    row = JoinListBoard(split).row(H1)
    assert (row.entries, row.silent, row.missing, row.differs) == ("not reported",) * 3 + (False,)
    assert "not reported" in JoinListBoard(split).sentence(H1)
    (pair,) = why_not_merging(split, split.at)
    assert pair.rule == "not-told" and pair.unblock is None
    assert pair.sentence.startswith(
        "neither says that it met the other, and where they look for others is not reported"
    )
