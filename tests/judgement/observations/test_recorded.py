"""A recording of real members is observed as their logs are: the same troubles, by the same code."""

import pickle
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership.events import (
    ClaimFinished,
    JoinListChanged,
    ListInstalled,
    MemberMerging,
    MemberRemoved,
    MemberStarted,
    MergeVerdict,
    ObserverPaused,
    SuspicionRaised,
)
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.core.witnessed.events import (
    ConnectionChanged,
    MemberWitnessed,
    ReplicaMigrated,
)
from quarterdeck.backend.judgement.losses.loss import Loss
from quarterdeck.backend.judgement.observations import story
from quarterdeck.backend.judgement.observations.observation import Observation
from quarterdeck.backend.judgement.observations.reader import read_logs
from quarterdeck.backend.judgement.observations.story import RecordObservers

DATA = Path(__file__).parents[2] / "hazelcast" / "logs" / "data"
A, B, C, D, E, F, G = (f"10.0.0.{host}:5701" for host in range(1, 8))
ONLY_IN_LOGS = ("claim-not-accepted", "migration-storm")
"""What refuses a claim, and what a master plans, makes no record."""


class Recording:
    """What a recorder hears of members that it follows over the network."""

    def __init__(self) -> None:
        self.observers = RecordObservers("r")
        self._seqs: dict[str, int] = {}

    def happens(self, second: float, host: int, event: Event, life: str = "a") -> None:
        uuid = f"{host}{life}"
        seq = self._seqs[uuid] = self._seqs.get(uuid, 0) + 1
        at_us = round(second * 1e6)
        self.observers.add(Record("r", f"10.0.0.{host}:5701", uuid, seq, at_us, 10**15 + at_us, event), "r.jsonl", seq)

    def follows(self, members: str) -> None:
        for host, life in zip(members[::2], members[1::2], strict=True):
            self.happens(0, int(host), MemberWitnessed(("client-protocol",), ("owners",)), life)
            self.happens(0, int(host), ConnectionChanged("connected"), life)

    def lists(self, second: float, version: int, members: str, readers: str = "") -> None:
        lives = dict(zip(members[::2], members[1::2], strict=True))
        listed = tuple(
            Member(Address(f"10.0.0.{host}:5701"), f"{host}{life}", 0, False) for host, life in lives.items()
        )
        master = listed[0]
        event = ListInstalled(version, master.uuid, master.address, listed, master.address, "unknown", "reported")
        for host in readers or lives:
            self.happens(second, int(host), event, lives[host])

    def divides(self, greater: str, smaller: str) -> None:
        """Lists of all; a minute later each side has a list of its own."""
        members = len(greater + smaller) // 2
        self.follows(greater + smaller)
        self.lists(0, members, greater + smaller)
        self.lists(60, members + 1, greater)
        self.lists(61, members + 1, smaller)

    def observed(self) -> list[Observation]:
        story = self.observers.story()
        assert story is not None
        return list(story.observations)


@pytest.mark.parametrize(
    "run",
    ["flapping", "formation-and-crash", "halves-apart", "master-alone", "migrations", "paused-master",
     "restarts", "split-and-merge"],
)  # fmt: skip
def test_a_journal_made_of_logs_has_the_observations_of_the_logs(run: str) -> None:
    """How long a member was there whose later lines make no record, only the logs themselves know."""
    reading = read_logs([DATA / run])
    observers = RecordObservers(run)
    for record in sorted(reading.records, key=lambda record: record.at):
        observers.add(record)
    ((of_logs,), of_journal) = reading.stories, observers.story()
    assert of_journal is not None

    def said(found: tuple[Observation, ...]) -> list[tuple[str, tuple[str, ...], str]]:
        return [
            (
                observation.kind,
                observation.members,
                observation.headline.partition(":5701 (")[0].partition(" for ")[0].partition(": ")[0],
            )
            for observation in found
            if observation.kind not in ONLY_IN_LOGS
        ]

    assert said(of_journal.observations) == said(of_logs.observations)


def test_a_split_that_a_recorder_heard_on_both_sides() -> None:
    recording = Recording()
    recording.follows("1a2a3a4a5a6a7a")
    recording.lists(0, 7, "1a2a3a4a5a6a7a")
    recording.lists(60, 10, "1a2a3a4a", "1234")
    recording.lists(61, 8, "5a6a7a")
    recording.happens(140, 1, ConnectionChanged("connected"))
    (apart,) = recording.observed()
    assert (apart.kind, apart.is_open) == ("halves-apart", True)
    assert apart.headline == f"{A} (4 members) and {E} (3 members) were apart: 79 s, until the recording ends"
    assert (apart.evidence[0].file, apart.evidence[0].member) == ("r.jsonl", E)
    assert "made no record of merging, which its logs may show" in apart.detail and "said nothing" not in apart.detail
    assert "logs alone" in apart.cause


def test_what_ended_a_split_is_not_known_until_its_members_are_heard_again() -> None:
    """The greater side lists the others again before they are reached: that they merged shows a second later."""
    recording = Recording()
    recording.divides("1a2a", "3a")
    recording.happens(100, 3, ConnectionChanged("merging", "it starts, or merges"))
    recording.lists(102, 6, "1a2a3b", "12")
    (apart,) = recording.observed()
    assert apart.headline.endswith("41 s") and "is not known yet" in apart.remedy
    recording.happens(103, 3, MemberMerging(Address(A), "3b"))
    recording.happens(103, 3, MemberStarted(Address(C), False, (), "3a"), "b")
    recording.lists(103, 6, "1a2a3b", "3")
    (apart,) = recording.observed()
    assert "They have merged" in apart.remedy


def test_a_side_whose_members_merge_one_after_the_other_is_there_until_its_master_merges() -> None:
    """Its master may send a last list when it has left already, which makes no cluster."""
    recording = Recording()
    recording.divides("1a2a3a", "4a5a")
    recording.happens(100, 5, ConnectionChanged("merging", "it starts, or merges"))
    recording.lists(101, 7, "1a2a3a5b", "123")
    (apart,) = recording.observed()
    assert apart.is_open and apart.headline.startswith(f"{A} (3 members) and {D} (2 members) were apart: 40 s")
    recording.happens(101.5, 5, MemberMerging(Address(A), "5b"))
    recording.happens(102, 4, MemberMerging(Address(A), "4b"))
    recording.lists(102.1, 7, "4a")
    recording.happens(102.2, 4, ConnectionChanged("merging", "it merges, for its process goes on"))
    recording.lists(103, 8, "1a2a3a5b4b", "123")
    for host in (4, 5):
        recording.happens(103, host, MemberStarted(Address(f"10.0.0.{host}:5701"), False, (), f"{host}a"), "b")
        recording.lists(103, 8, "1a2a3a5b4b", str(host))
    (apart,) = recording.observed()
    assert not apart.is_open and apart.headline.endswith("were apart: 41 s") and "They have merged" in apart.remedy


def test_a_side_that_merges_was_there_until_its_connections_closed() -> None:
    recording = Recording()
    recording.follows("1a2a3a")
    recording.lists(0, 3, "1a2a3a")
    recording.lists(60, 4, "1a2a", "12")
    recording.lists(61, 4, "3a")
    recording.happens(100, 3, ConnectionChanged("merging", "it starts, or merges"))
    (apart,) = recording.observed()
    assert apart.headline == f"{C} led itself alone against 2 others: 39 s, until the recording ends"


def test_the_edit_of_a_join_list_that_ended_a_split_is_named() -> None:
    recording = Recording()
    for host in (1, 2, 3):
        recording.happens(0, host, MemberWitnessed(("client-protocol", "logs"), ("owners", "merge-verdicts")))
    recording.lists(0, 3, "1a2a3a")
    recording.lists(60, 4, "1a2a", "12")
    recording.lists(60, 4, "3a", "3")
    verdict = MergeVerdict(Address(A), "local-merges", "data-members", "We should merge to [10.0.0.1]:5701")
    recording.happens(66, 3, verdict)
    recording.happens(106, 3, JoinListChanged((Address(A),), 1, Address(C)))
    recording.happens(123, 3, MemberMerging(Address(A), "3b"))
    recording.happens(125, 3, MemberStarted(Address(C), False, (), "3a"), "b")
    recording.lists(126, 5, "1a2a3b")
    (alone,) = recording.observed()
    assert alone.headline == (
        f"{C} led itself alone against 2 others: 63 s; they met after 6.0 s, and did not merge for 57 s"
    )
    assert f"The join list of {C} was edited 17 s before they merged." in alone.detail


def test_rounds_of_migrations_are_counted_from_their_ends() -> None:
    recording = Recording()
    recording.follows("1a2a")
    for start, planned in ((10, 200), (20, 300), (30, 250)):
        for at, done in enumerate((2, 1, planned)):  # those that run side by side are not counted in order
            recording.happens(start + at / 10, 1, ReplicaMigrated(1, 1, None, None, True, 5, planned, done))
    story = recording.observers.story()
    assert story is not None
    assert [(migration.planned, migration.completed) for migration in story.migrations] == [
        (200, 200),
        (300, 300),
        (250, 250),
    ]
    assert [observation.headline for observation in story.observations] == ["750 migrations in 3 rounds within 20 s"]


def test_backups_that_become_the_copies_of_owners_are_no_rounds_of_migrations() -> None:
    """One member is killed and started again: a master plans two rounds, and reports promotions for each destination."""
    recording = Recording()
    recording.follows("1a2a3a")
    for start, planned in ((10.0, 190), (10.2, 290), (10.4, 200)):
        for at, done in enumerate((1, planned)):
            recording.happens(start + at / 10, 1, ReplicaMigrated(1, 0, None, Address(A), True, 5, planned, done))
    for start, planned in ((11, 204), (53, 271)):
        for at, (index, done) in enumerate(((1, 1), (0, planned))):
            recording.happens(start + at / 10, 1, ReplicaMigrated(1, index, None, Address(A), True, 5, planned, done))
    story = recording.observers.story()
    assert story is not None
    assert [(migration.planned, migration.completed) for migration in story.migrations] == [(204, 204), (271, 271)]
    assert story.observations == ()


def test_a_killed_member_has_ended_where_the_recorder_finds_no_process() -> None:
    recording = Recording()
    recording.follows("1a2a3a")
    recording.lists(0, 3, "1a2a3a")
    recording.happens(60, 3, ConnectionChanged("gone", "connection refused"))
    assert recording.observed() == []
    recording.lists(60.2, 4, "1a2a")
    (lost,) = recording.observed()
    assert lost.headline == f"{C} was removed and did not come back"
    assert "No process listens" in lost.cause and "what was read does not show which" in lost.cause


def test_members_that_only_the_recorder_does_not_reach_are_not_lost() -> None:
    """It stands at the side of the isolated master, which removed all others."""
    recording = Recording()
    recording.follows("1a2a3a4a5a")
    recording.lists(0, 5, "1a2a3a4a5a")
    for host in (2, 3, 4, 5):
        recording.happens(55, host, ConnectionChanged("silent", "no answer"))
    for place in range(4):
        recording.lists(60, 6 + place, "1a" + "2a3a4a5a"[2 + 2 * place :], "1")
    recording.happens(120, 1, ConnectionChanged("connected"))
    silent, removed = recording.observed()
    assert silent.headline == f"{B}, {C}, {D} and {E} sent the witness nothing for 65 s, until the recording ends"
    assert removed.headline == f"{A} removed 4 of 5 members, and they were not seen again"
    assert f"{A} was cut off from them" in removed.cause and "log" not in removed.detail


def test_a_frozen_member_said_nothing_and_went_on() -> None:
    recording = Recording()
    recording.follows("1a2a")
    recording.lists(0, 2, "1a2a")
    recording.happens(10, 1, ConnectionChanged("silent"))
    assert recording.observed() == []
    recording.happens(40, 1, ConnectionChanged("connected"))
    (silent,) = recording.observed()
    assert (silent.kind, silent.headline) == ("unresponsive", f"{A} sent its witness nothing for 30 s, and went on")


def test_a_member_that_starts_again_and_says_nothing_yet_does_not_stand_still() -> None:
    recording = Recording()
    recording.follows("1a2a")
    recording.lists(0, 2, "1a2a")
    recording.happens(60, 2, ConnectionChanged("gone", "no process listens there"))
    recording.happens(70, 2, ConnectionChanged("silent", "it accepts the connection and says nothing"))
    recording.happens(90, 1, ConnectionChanged("connected"))
    assert "unresponsive" not in [observation.kind for observation in recording.observed()]


def test_lost_data_is_observed_and_a_lost_replica_is_not() -> None:
    recording = Recording()
    recording.follows("1a2a3a")
    recording.lists(0, 3, "1a2a3a")
    recording.happens(10, 1, PartitionLost(4, 0, False))
    assert recording.observed() == []
    recording.happens(10, 1, PartitionLost(5, 1, True, ("orders",)))
    (loss,) = recording.observed()
    assert (loss.kind, loss.headline) == ("partition-lost", "1 partition for maps with at most 1 backup lost")
    assert "maps with more backups lost nothing" in loss.detail and "More backups" in loss.remedy
    recording.happens(11, 1, PartitionLost(6, 1, True))
    (loss,) = recording.observed()
    assert loss.headline == "2 partitions for maps with at most 1 backup lost"


def test_a_loss_is_observed_as_the_ledger_has_it() -> None:
    recording = Recording()
    recording.follows("1a2a")
    recording.lists(0, 2, "1a2a")
    recording.happens(10, 1, PartitionLost(5, 1, True, ("orders", "spare*")))
    loss = Loss(A, "feared", frozenset((5,)), 1, ("orders",), 9_000_000, None, "unknown", (B,), "not-reached", (B,))
    observed = recording.observers.story(losses=(loss,))
    assert observed is not None
    (seen,) = observed.observations
    assert seen.headline == f"{A} maybe lost 1 partition of orders after {B} went: lost if {B} does not come back"
    assert (seen.members, seen.evidence_lines) == ((A, B), 1)
    recording.happens(11, 1, PartitionLost(6, 1, True))
    refuted = structs.replace(loss, state="refuted", lost=frozenset((6,)), at_us=11_000_000)
    observed = recording.observers.story(losses=(loss, refuted))
    assert observed is not None
    assert len(observed.observations) == 1, "a map that never had entries loses none"


def test_a_clock_that_goes_back_as_far_as_it_went_forward_was_set() -> None:
    recording = Recording()
    recording.follows("1a2a")
    recording.happens(60, 2, ObserverPaused(90_000_000, is_by_clock=True))
    (jump,) = recording.observed()
    assert jump.headline == f"{B} stood still, or its clock was set forward, for 90 s"
    recording.happens(110, 2, ObserverPaused(89_500_000, is_backwards=True, is_by_clock=True))
    (jump,) = recording.observed()
    assert jump.headline == f"{B} had its clock set forward and back, at most for 90 s"


def test_all_members_that_are_gone_and_start_anew_are_a_full_stop() -> None:
    recording = Recording()
    recording.follows("1a2a")
    recording.lists(0, 2, "1a2a")
    for host in (1, 2):
        recording.happens(60 + host, host, ConnectionChanged("gone", "connection refused"))
    (stop,) = recording.observed()
    assert (stop.kind, stop.is_open) == ("full-stop", True)
    assert stop.headline == "all 2 members ended within 1.0 s"
    recording.happens(85, 1, ConnectionChanged("merging", "it starts, or merges"))  # the next process listens
    for host in (1, 2):
        recording.happens(90, host, MemberWitnessed(("client-protocol",), ("owners",)), "b")
        recording.happens(90, host, MemberStarted(Address(f"10.0.0.{host}:5701"), False, ()), "b")
        recording.happens(90, host, ConnectionChanged("connected"), "b")
    recording.lists(91, 2, "1b2b")
    (stop,) = recording.observed()
    assert stop.headline == "all 2 members ended within 1.0 s, and were started again 28 s later as a new cluster"


def test_the_list_of_a_process_that_has_ended_is_apart_from_no_other() -> None:
    """The last member to stop was alone for a moment; the first one to start again is alone, too."""
    recording = Recording()
    recording.follows("1a2a3a")
    recording.lists(0, 3, "1a2a3a")
    for host in (1, 2):
        recording.happens(60, host, ConnectionChanged("gone", "no process listens there"))
    recording.lists(60.3, 4, "3a")
    recording.happens(61, 3, ConnectionChanged("gone", "no process listens there"))
    recording.happens(78, 3, ConnectionChanged("merging", "it starts, or merges"))
    recording.happens(83, 1, MemberStarted(Address(A), False, ()), "b")
    recording.lists(83, 1, "1b")
    assert "halves-apart" not in [observation.kind for observation in recording.observed()]


@pytest.mark.parametrize(("second", "observed"), [(5, 1), (10.2, 0)])
def test_a_suspicion_that_is_read_after_the_list_without_its_member_does_not_last(second: float, observed: int) -> None:
    """A list comes over the network, and the suspicion before it by the log, a moment later."""
    recording = Recording()
    recording.follows("1a2a3a")
    recording.lists(0, 3, "1a2a3a")
    if second > 10:
        recording.lists(10, 4, "2a3a")
    recording.happens(second, 3, SuspicionRaised(Address(A), "1a", "the connection was closed"))
    recording.happens(60, 2, ConnectionChanged("connected"))
    lasting = [observation for observation in recording.observed() if observation.kind == "lasting-suspicion"]
    assert len(lasting) == observed


def test_members_that_keep_a_journal_of_their_own_are_judged_by_rules_alone() -> None:
    recording = Recording()
    recording.lists(0, 2, "1a2a")
    assert recording.observers.story() is None


def test_weeks_of_pods_with_ever_new_addresses_do_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "RENEWED_AFTER", 300)
    monkeypatch.setattr(story, "RENEWED_ANYWAY", 1_200)
    monkeypatch.setattr(story, "PAST_KEPT", 20)
    recording = Recording()
    recording.observers = observers = RecordObservers("r", "live")
    recording.follows("1a2a")
    sizes = []
    for day in range(600):
        second, pod = 600 * day, 10 + day
        recording.happens(second, pod, MemberWitnessed(("client-protocol",), ("owners",)))
        recording.happens(second, pod, ConnectionChanged("connected"))
        listed = tuple(Member(Address(f"10.0.0.{host}:5701"), f"{host}a", 0, False) for host in (1, 2, pod))
        for host in (1, 2, pod):
            event = ListInstalled(2 * day + 3, "1a", listed[0].address, listed, listed[0].address, "unknown", "")
            recording.happens(second + 1, host, event)
        recording.happens(second + 300, 1, PartitionLost(day % 271, 6, True))
        recording.happens(second + 301, pod, ConnectionChanged("gone"))
        for host in (1, 2):
            event = ListInstalled(2 * day + 4, "1a", listed[0].address, listed[:2], listed[0].address, "unknown", "")
            recording.happens(second + 302, host, event)
        if day % 100 == 99:
            sizes.append(len(msgspec.json.encode(recording.observed())))
            assert len(pickle.dumps(observers)) < 4_000_000
    assert max(sizes[2:]) < 1.5 * max(sizes[:2]), sizes
    assert {observation.kind for observation in recording.observed()} >= {"partition-lost"}


def test_a_claim_left_a_member_out_that_may_have_refused_or_been_silent() -> None:
    recording = Recording()
    recording.follows("2a4a")
    recording.happens(1, 2, ClaimFinished(5, "lineage", (), (Address(D),)))
    (claim,) = recording.observed()
    assert claim.headline == f"the mastership claim of {B} was not accepted by {D}"


def test_a_member_is_lost_when_it_is_removed_not_when_it_was_heard_last() -> None:
    recording = Recording()
    recording.follows("1a2a3a")
    recording.lists(0, 3, "1a2a3a")
    recording.happens(600, 3, ConnectionChanged("gone", "no process listens there"))
    recording.happens(601, 1, MemberRemoved(Address(C), "3a", "refused", "refused"))
    recording.lists(601, 4, "1a2a")
    (lost,) = (seen for seen in recording.observed() if seen.kind == "member-lost")
    assert lost.headline.startswith(f"{C} was removed") and lost.start_us == 601_000_000


@pytest.mark.parametrize("is_started", [True, False])
def test_a_member_that_is_started_again_each_time_does_not_flap(*, is_started: bool) -> None:
    """A witness hears of the list with the next incarnation before it reaches that."""
    recording = Recording()
    recording.follows("1a2a3a")
    recording.lists(0, 3, "1a2a3a")
    for place, life in enumerate("bcd"):
        second = 100 * (place + 1)
        recording.lists(second, 4 + 2 * place, "1a2a")
        recording.lists(second + 30, 5 + 2 * place, f"1a2a3{life}", "12")
        recording.happens(second + 31, 3, MemberWitnessed(("client-protocol",), ("owners",)), life)
        if is_started:
            recording.happens(second + 31, 3, MemberStarted(Address(C), False, ()), life)
    assert ("flapping" in {seen.kind for seen in recording.observed()}) is not is_started
