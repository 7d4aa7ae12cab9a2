"""The fold of events into what each member believes."""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import JournalChanged, ProcessKilled, ProcessPaused, ProcessResumed
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.fold.belief import Suspected
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FakeCluster, fold

THREE = ("n1", "n2", "n3")


def formed(labels: tuple[str, ...] = THREE) -> tuple[FakeCluster, Picture]:
    cluster = FakeCluster(labels)
    cluster.form()
    return cluster, fold(cluster)


def test_a_life_begins_joining_and_becomes_member_with_its_first_list() -> None:
    cluster = FakeCluster(THREE)
    cluster.start("n1")
    picture = fold(cluster)
    assert picture.members["n1"].status == "joining"
    cluster.install("n1", 1, ["n1"])
    belief = fold(cluster, picture).members["n1"]
    assert (belief.status, belief.version, belief.master) == ("member", 1, cluster.address("n1"))
    assert picture.masters() == ("n1",)
    assert picture.label_of(cluster.address("n1")) == "n1"
    assert picture.label_of(Address("nowhere:1")) == "nowhere:1"


def test_suspicion_comes_with_reason_and_time_and_goes() -> None:
    cluster, picture = formed()
    cluster.suspect("n1", "n3", "silence")
    fold(cluster, picture)
    suspected = Suspected(cluster.address("n3"), "n3-life-1", "silence", picture.at)
    assert picture.members["n1"].suspicions[suspected.suspect] == suspected
    cluster.happen("n1", events.SuspicionCleared(cluster.address("n3"), "n3-life-1", "a heartbeat"))
    assert not fold(cluster, picture).members["n1"].suspicions


def test_a_new_list_voids_suspicions_of_those_not_on_it_and_of_former_lives() -> None:
    cluster, picture = formed()
    cluster.suspect("n1", "n2")
    cluster.suspect("n1", "n3")
    cluster.install("n1", 4, ["n1", "n2"])
    assert set(fold(cluster, picture).members["n1"].suspicions) == {cluster.address("n2")}
    anew = (cluster.member("n1"), cluster.member("n2", life=2))
    master = cluster.address("n1")
    cluster.happen("n1", events.ListInstalled(6, "L1", master, anew, master, "unknown", "n2 is back"))
    assert not fold(cluster, picture).members["n1"].suspicions


def test_a_suspicion_that_is_heard_after_the_removal_is_not_one_of_the_newcomer() -> None:
    """A list comes over the wire before the log of the same member says whom it suspected."""
    cluster, picture = formed()
    cluster.install("n1", 4, ["n1", "n2"])
    cluster.suspect("n1", "n3")
    cluster.install("n1", 5, ["n1", "n2", "n3"])
    assert not fold(cluster, picture).members["n1"].suspicions


def test_restart_forgets_everything_and_stragglers_of_the_old_life_do_not_count() -> None:
    cluster, picture = formed()
    cluster.suspect("n2", "n3")
    cluster.happen("dev", ProcessKilled("n2"))
    assert fold(cluster, picture).members["n2"].status == "killed"
    assert picture.members["n2"].version == 3
    cluster.start("n2", life=2)
    cluster.install("n2", 9, THREE)  # of life 1, late
    belief = fold(cluster, picture).members["n2"]
    assert (belief.status, belief.version, belief.suspicions, belief.ever_listed) == ("joining", 0, {}, set())
    assert list(picture.members) == list(THREE)


def test_killed_stays_killed_whatever_of_that_life_arrives_late() -> None:
    cluster, picture = formed()
    cluster.happen("dev", ProcessKilled("n2"))
    cluster.happen("n2", events.MemberStopped("shutdown"))
    cluster.happen("dev", ProcessPaused("n2"))
    assert fold(cluster, picture).members["n2"].status == "killed"


def test_pause_and_resume() -> None:
    cluster, picture = formed()
    cluster.happen("dev", ProcessPaused("n1"))
    assert fold(cluster, picture).members["n1"].status == "paused"
    assert picture.masters() == ()
    cluster.happen("dev", ProcessResumed("n1"))
    assert fold(cluster, picture).members["n1"].status == "member"
    cluster.happen("dev", ProcessResumed("nobody"))
    fold(cluster, picture)


def test_a_journal_that_cannot_be_written_is_known_until_it_can_be() -> None:
    cluster, picture = formed()
    cluster.happen("dev", JournalChanged("n1", "No space left on device", 0))
    assert fold(cluster, picture).members["n1"].journal_failure == "No space left on device"
    cluster.happen("dev", JournalChanged("n1", "", 0))
    assert fold(cluster, picture).members["n1"].journal_failure == ""


def test_stop_and_failed_join_end_a_life() -> None:
    cluster, picture = formed()
    cluster.happen("n1", events.MemberStopped("asked to"))
    cluster.happen("n2", events.JoinFailed({}))
    fold(cluster, picture)
    assert [picture.members[label].status for label in THREE] == ["stopped", "stopped", "member"]


def test_claims_begin_and_end() -> None:
    cluster, picture = formed()
    cluster.happen("n2", events.ClaimStarted(3, (cluster.address("n1"),), (cluster.address("n3"),)))
    assert fold(cluster, picture).members["n2"].claiming
    cluster.happen("n2", events.ClaimAbandoned("refused"))
    assert not fold(cluster, picture).members["n2"].claiming


def test_only_links_that_are_not_plain_are_kept() -> None:
    cluster = FakeCluster(THREE)
    cluster.happen("dev", LinkChanged("n1", "n2", blocked="blackhole"))
    picture = fold(cluster)
    assert picture.links["n1", "n2"].blocked == "blackhole"
    assert "dev" not in picture.members
    cluster.happen("dev", LinkChanged("n1", "n2"))
    assert not fold(cluster, picture).links


def test_a_journal_that_begins_in_the_middle_of_a_life_still_tells_the_address() -> None:
    cluster = FakeCluster(THREE)
    cluster.install("n2", 5, THREE)
    picture = fold(cluster)
    assert picture.members["n2"].address == cluster.address("n2")
    assert picture.members["n2"].status == "member"


def test_following_another_master_shows_before_its_list() -> None:
    cluster, picture = formed()
    cluster.happen("n3", events.MasterChanged(cluster.address("n2"), "accepted its claim"))
    assert fold(cluster, picture).members["n3"].master == cluster.address("n2")
