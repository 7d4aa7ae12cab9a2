"""What the end of a log proves, and what it does not: in the picture of the run, and in what is observed."""

from pathlib import Path

import pytest

from quarterdeck.backend.boards.belief_matrix import summarize_beliefs
from quarterdeck.backend.core.witnessed.events import ConnectionChanged
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.judgement.observations.reader import read_logs
from quarterdeck.backend.picture.fold.picture import Picture
from tests.hazelcast.logs.written_logs import A, B, C, D, Logs, member

DATA = Path(__file__).parent / "data"
ALL = "1a2a3a4a5a"
BEFORE = "is suspected to be dead for reason: "
REFUSED = (
    "Removing connection to endpoint [10.0.0.{0}]:5701 Cause => java.io.IOException "
    "{{Connection refused to address /10.0.0.{0}:5701}}, Error-Count: 5"
)


def picture_of(logs: Logs) -> Picture:
    picture = Picture()
    for record in logs.records():
        picture.apply(record)
    return picture


def info(host: int) -> str:
    uuid = member(host).rpartition(" ")[2]
    return f"MemberInfo{{address=[10.0.0.{host}]:5701, uuid={uuid}, cpMemberUUID=null, liteMember=false}}"


def silent(host: int) -> str:
    return f"Suspecting {member(host)} because it has not sent any heartbeats since 2026-11-21 12:00:01.000."


def isolate_the_master(logs: Logs, removed_at: float, claimed_at: float) -> None:
    """The master of five removes all others, one after the other; the second claims, and the three others follow it."""
    logs.lists(0, 5, ALL)
    for place, host in enumerate((2, 3, 4, 5)):
        logs.said(removed_at, 1, silent(host))
        logs.said(removed_at, 1, f"Removing {member(host)}")
        logs.lists(removed_at, 6 + place, ALL[:2] + ALL[4 + 2 * place :], "1")
    logs.said(claimed_at, 2, f"{member(1)} {BEFORE}{silent(1)}")
    logs.said(claimed_at, 2, "Starting mastership claim process...")
    logs.lists(claimed_at + 0.1, 6, ALL[2:])
    claimed = ", ".join(map(info, (2, 3, 4, 5)))
    logs.said(claimed_at + 0.1, 2, f"Mastership is claimed with: MembersView{{version=6, members=[{claimed}]}}")


@pytest.mark.parametrize(("removed_at", "claimed_at"), [(61, 60), (60, 61), (90, 60)])
def test_a_master_that_removed_the_majority_is_alone_and_the_others_are_led(
    tmp_path: Path, removed_at: float, claimed_at: float
) -> None:
    """The recording ends where the master has removed all others, in the last case half a minute after their last words."""
    logs = Logs(tmp_path)
    isolate_the_master(logs, removed_at, claimed_at)
    picture = picture_of(logs)
    assert picture.masters() == (A, B)
    assert all(belief.running for belief in picture.members.values())
    assert summarize_beliefs(ListAgreement(picture)).sentence.startswith(
        f"2 lineages, one for each mastership: v6 {B},{C},{D}"
    )
    (alone,) = logs.observed()
    assert (alone.kind, alone.is_open) == ("lone-master", True)
    assert alone.headline.startswith(f"{A} led itself alone against 4 others: ")


def test_a_long_recording_at_the_lone_master_proves_no_more(tmp_path: Path) -> None:
    """Its log goes on for minutes, while the others have nothing to say."""
    logs = Logs(tmp_path)
    isolate_the_master(logs, 61, 60)
    logs.said(400, 1, "processors=2")
    assert picture_of(logs).masters() == (A, B)
    assert [observation.kind for observation in logs.observed()] == ["lone-master"]


def test_logs_that_end_before_the_others_notice_are_no_deaths(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a")
    logs.said(60, 1, f"Removing {member(3)}")
    logs.lists(60, 4, "1a2a", "12")
    assert logs.observed() == []
    assert all(belief.running for belief in picture_of(logs).members.values())


def test_the_larger_side_is_not_lost_because_only_the_smaller_one_was_recorded(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 5, ALL, "1")
    for place, host in enumerate((2, 3, 4, 5)):
        logs.said(60, 1, silent(host))
        logs.said(60, 1, f"Removing {member(host)}")
        logs.lists(60, 6 + place, ALL[:2] + ALL[4 + 2 * place :], "1")
    logs.said(120, 1, "processors=2")
    (gone,) = logs.observed()
    assert gone.kind == "member-lost" and len(gone.members) == 4
    assert gone.headline == f"{A} removed 4 of 5 members (silence), and they were not seen again"
    assert "cut off from them" in gone.cause and "start it again" not in gone.remedy


def test_a_member_that_says_nothing_while_the_others_go_on_is_not_known_to_have_ended(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a")
    logs.said(60, 1, silent(3))
    logs.said(60, 1, f"Removing {member(3)}")
    logs.lists(60, 4, "1a2a", "12")
    logs.said(90, 1, "processors=2")
    (lost,) = logs.observed()
    assert lost.headline == f"{C} was removed (silence) and did not come back"
    assert "its process ended" not in lost.detail and "does not show which" in lost.cause
    connection = picture_of(logs).members[C].connection
    assert connection is not None and connection.reason == (
        f"its log ends here, {A} removed it 60 s later, and nothing shows what became of it"
    )


def test_a_refused_connection_shows_that_the_process_has_ended(tmp_path: Path) -> None:
    """Also where the logs end with it: a host answered, and no process listens there."""
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a")
    for host in (2, 3):
        logs.said(60, host, REFUSED.format(1))
        logs.said(60, host, f"{member(1)} {BEFORE}No connection")
    logs.lists(60.1, 4, "2a3a")
    (lost,) = logs.observed()
    assert (
        lost.headline == f"the master {A} was removed (connection refused) and did not come back; {B} led from then on"
    )
    assert "was killed" in lost.cause
    picture = picture_of(logs)
    assert picture.masters() == (B,)
    connection = picture.members[A].connection
    assert connection is not None and connection.reason == f"its log ends here, and {B} found no process at its address"


def test_a_member_that_asked_to_leave_is_not_lost(tmp_path: Path) -> None:
    """Its own log ends before it says so; the others find no process there when it has left."""
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a")
    logs.said(60, 1, f"Shutdown request of {member(3)} is handled")
    for host in (1, 2):
        logs.said(61, host, REFUSED.format(3))
    logs.said(61, 2, f"{member(3)} {BEFORE}No connection")
    logs.said(61, 1, f"Removing {member(3)}")
    logs.lists(61.1, 4, "1a2a", "12")
    logs.said(300, 1, "processors=2")
    assert logs.observed() == []
    connection = picture_of(logs).members[C].connection
    assert connection is not None and connection.reason == f"its log ends here, and {A} let it leave"


def test_what_another_member_still_lists_is_there(tmp_path: Path) -> None:
    """The second was removed by the master and goes on with the third: both are there, whose log it may be that ends."""
    logs = Logs(tmp_path)
    logs.lists(0, 4, "1a2a3a4a")
    logs.said(60, 1, f"Removing {member(2)}")
    logs.said(60, 1, f"Removing {member(3)}")
    logs.lists(60, 6, "1a4a", "14")
    logs.lists(61, 5, "2a3a", "2")  # the third has accepted the claim, and its log has ended
    logs.said(300, 1, "processors=2")
    assert [observation.kind for observation in logs.observed()] == ["halves-apart"]
    assert picture_of(logs).masters() == (A, B)
    assert picture_of(logs).members[C].running


def test_two_that_ended_at_once_do_not_speak_for_each_other(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 5, ALL)
    for place, host in enumerate((4, 5)):
        logs.said(60, 1, silent(host))
        logs.said(60, 1, f"Removing {member(host)}")
        logs.lists(60, 6 + place, ALL[:6] + ALL[8:] * (not place), "123")
    logs.said(120, 1, "processors=2")
    (lost,) = logs.observed()
    assert lost.headline == f"{D} and 10.0.0.5:5701 were removed (silence) and did not come back"
    assert not picture_of(logs).members[D].running


def test_a_member_that_was_removed_by_mutual_suspicion_is_not_lost(tmp_path: Path) -> None:
    """The master heard it when it removed it."""
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a", "12")
    logs.said(9, 1, f"Received suspected members: [{member(3)}] from {member(2)}")
    logs.said(12, 1, f"Removing {member(3)} because it has disconnected from some of the members!")
    logs.said(12, 1, f"Removing {member(3)}")
    logs.lists(12, 4, "1a2a", "12")
    logs.said(120, 1, "processors=2")
    (found,) = logs.observed()
    assert (found.kind, found.members) == ("mutual-suspicion", (C, B))


def cut_recording(run: str, until: str, folder: Path) -> None:
    """Copy what the members of a recording had logged until this time."""
    for file in sorted((DATA / run).glob("*.log")):
        lines = file.read_text().splitlines(keepends=True)
        ends = next((at for at, line in enumerate(lines) if line[:2] == "20" and line[: len(until)] > until), None)
        (folder / file.name).write_text("".join(lines[:ends]))


@pytest.mark.parametrize(
    ("run", "minute", "seconds"),
    [
        ("master-alone", "2026-11-22T17:01", (0, 1, 2, 3, 20)),
        ("halves-apart", "2026-11-22T16:59", (13, 14, 15, 16, 20)),
        ("paused-master", "2026-11-22T17:03", (35, 36, 37, 43, 44)),
    ],
)
def test_where_no_member_ended_none_is_lost_wherever_the_recording_ends(
    run: str, minute: str, seconds: tuple[int, ...], tmp_path: Path
) -> None:
    for second in seconds:
        cut_recording(run, f"{minute}:{second:02}", tmp_path)
        reading = read_logs([tmp_path])
        assert [
            observation
            for story in reading.stories
            for observation in story.observations
            if observation.kind == "member-lost"
        ] == []
        assert not [record for record in reading.records if isinstance(record.event, ConnectionChanged)]


def test_a_recorded_master_that_was_frozen_is_alone_where_its_recording_ends(tmp_path: Path) -> None:
    """Of three members of 5.3.8: thawed, it removes both others, who have not logged for some seconds."""
    cut_recording("paused-master", "2026-11-22T17:03:43,85", tmp_path)
    first, second = "10.78.0.1:5701", "10.78.0.2:5701"
    (story,) = read_logs([tmp_path]).stories
    assert [observation.kind for observation in story.observations] == ["clock-jump", "lone-master"]
    assert story.observations[1].headline.startswith(f"{first} led itself alone against 2 others: ")
    picture = Picture()
    for record in sorted(read_logs([tmp_path]).records, key=lambda record: record.at):
        picture.apply(record)
    assert picture.masters() == (first, second)
