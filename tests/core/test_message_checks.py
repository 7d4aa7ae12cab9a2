"""The door of `step`: a message that no sound member sends is refused, counted, recorded once a minute, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterStanding, ProfiledMember
from quarterdeck.backend.core.data.messages import BackupWrite, MapCall, MergeBatch
from quarterdeck.backend.core.data.partition_store import Stamp, StoredEntry
from quarterdeck.backend.core.inputs import Receive
from quarterdeck.backend.core.member import MESSAGE_CHECKS
from quarterdeck.backend.core.membership import messages
from quarterdeck.backend.core.membership.events import MessageRefused
from quarterdeck.backend.core.membership.message_checks import GREATEST, LEAD
from quarterdeck.backend.core.membership.split_brain import cluster_search
from quarterdeck.backend.core.membership.views.identity import ListMetadata, Member
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.messages import MESSAGE_KINDS, Message
from quarterdeck.backend.core.partitions.messages import (
    MigrationCommit,
    MigrationRequest,
    TableAnswer,
    TableUpdate,
)
from quarterdeck.backend.core.partitions.migration.migration import CompletedMigration, PartitionMigration
from quarterdeck.backend.core.partitions.table.partition_table import PackedRows, Replica
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.snapshots import canonical
from tests.core.stepped_cluster import address_of
from tests.core.stepped_partitions import SteppedPartitions

PARTITIONS, WIDTH = 2, 2
A, B, C = map(address_of, "ABC")
STANDING = ClusterStanding()
BAD = Address("nowhere")


def world() -> SteppedPartitions:
    return SteppedPartitions(PARTITIONS, WIDTH - 1).with_table("ABC", "AB", "BC")


def hostile_messages(world: SteppedPartitions) -> dict[str, Message]:
    """One message from A to B for each thing that can be wrong in it."""
    members = world.inspect("B").members
    assert members is not None
    empty, twice = MemberList(9, (), "l"), MemberList(9, (members.master, members.master), "l")
    later = MemberList(9, (Member(A, "u", 10),), "l")
    foreign = MemberList(9, members.members[1:], "l")
    poisoned = MemberList((1 << 63) - 1, members.members, "l")
    profile = cluster_search.profile(world.inspect("A"))
    shown = tuple(ProfiledMember(Address(f"h:{port}"), f"{port}", False) for port in range(3))
    replica = Replica(C, world.inspect("C").uuid)
    migration = PartitionMigration("m/1", 0, "MOVE", 5, Replica(B, "u"), 1, -1, replica, -1, 1, Replica(A, "u"))
    update = TableUpdate(world.inspect("A").uuid, 1, 2, PackedRows(), (), -1, 0, PARTITIONS)

    def with_migration(**changed: Any) -> PartitionMigration:
        return structs.replace(migration, **changed)

    def with_row(*row: int, holders: tuple[Replica, ...] = (replica,)) -> TableUpdate:
        return structs.replace(update, rows=PackedRows(holders, (row,)))

    entry = StoredEntry(b"v", 1 << 63, 1, 1, 1, 0)
    return {
        "a list without members": messages.MembersUpdate(empty, True),
        "a list with a member twice": messages.MembersUpdate(twice, True),
        "a list with a member of the future": messages.MembersUpdate(later, True),
        "a list without its author": messages.MembersUpdate(foreign, True),
        "a list with no address": messages.MembersUpdate(
            MemberList(9, (*members.members, Member(BAD, "w", 1)), "l"), True
        ),
        "no address held back": messages.MembersUpdate(members, True, held_back=(BAD,)),
        "a heartbeat that suspects no address": messages.Heartbeat("u", "v", A, 1, (BAD,)),
        "a master at no address": messages.MasterIs(BAD, "t"),
        "a joiner that is to reach no address": messages.JoinHeld(((BAD, "u"),), "t"),
        "links to no address": messages.ProveLinks("t", ((BAD, "u"),)),
        "no link to no address": messages.LinksReport("t", (BAD,)),
        "a merge into no address": messages.MergeClusters("t", "u", BAD),
        "a join list of no address": messages.JoinListUpdate(1, A, (BAD,)),
        "a list whose version nothing can follow": messages.MembersUpdate(poisoned, True),
        "a standing whose edition nothing can follow": messages.MembersUpdate(
            members, True, ClusterStanding("ACTIVE", (1 << 63) - 1)
        ),
        "an answer to a joiner without members": messages.FinalizeJoin("u", empty, STANDING),
        "an answer to a claim without members": messages.ClaimAccepted(empty, STANDING, "t", "u"),
        "an answer to a claim of another": messages.ClaimAccepted(members, STANDING, "t", "u"),
        "a joiner that has seen too much": messages.JoinRequest("u", False, seen_version=(1 << 63) - 1),
        "a joiner that has seen less than nothing": messages.JoinRequest("u", False, seen_version=-1),
        "an acknowledgement of the last version": messages.MembersUpdateAck(1 << 63),
        "a heartbeat of the last version": messages.Heartbeat("u", "v", A, 1 << 63),
        "a complaint about the last version": messages.HeartbeatComplaint(
            ListMetadata(A, "u", A, 1), ListMetadata(C, "u", A, 1 << 63)
        ),
        "a suspicion of the last version": messages.ExplicitSuspicion(ListMetadata(A, "u", A, 1 << 63)),
        "an order to separate at no version": messages.TriggerExplicitSuspicion(-1, ListMetadata(A, "u", A, 1)),
        "a confirmation of the last version": messages.MasterConfirmation(ListMetadata(A, "u", A, 1 << 63), "v"),
        "a silence without end": messages.FailureReport(C, "u", False, "", silence=1 << 63),
        "a cluster without members": messages.SplitBrainProbe(structs.replace(profile, members=())),
        "a cluster led by another": messages.SplitBrainAnswer(structs.replace(profile, members=shown)),
        "a cluster of more data members than it shows": messages.SplitBrainProbe(
            structs.replace(profile, data_member_count=1_000_000)
        ),
        "an offer of such a cluster": messages.MergeOffer("t", structs.replace(profile, members=()), 1),
        "a join list above all others": messages.JoinListUpdate((1 << 63) - 1, A, ()),
        "an acknowledgement above all join lists": messages.JoinListUpdateAck((1 << 63) - 1, A),
        "a lock for ever": messages.StateLock("t", "FROZEN", 1, 1 << 62),
        "a decision above all others": messages.StateDecision("t", ClusterStanding("FROZEN", (1 << 63) - 1)),
        "a table of another size": structs.replace(update, partitions=1 << 31),
        "changes before the first one": structs.replace(update, since=3),
        "a row of another width": with_row(0, 9, 0),
        "a row of no partition": with_row(PARTITIONS, 9, 0, -1),
        "a row with a holder that is not there": with_row(0, 9, 1, -1),
        "a row with a holder twice": with_row(0, 9, 0, 0),
        "a row whose version nothing can follow": with_row(0, (1 << 63) - 1, 0, -1),
        "an end of a migration of no partition": structs.replace(
            update, completed=((2, CompletedMigration(with_migration(partition=7), True)),)
        ),
        "an answer about a row with a place without a holder": TableAnswer(
            "t", PackedRows((), ((0, 9, 3, 3),)), (), ()
        ),
        "an answer about a migration of no partition": TableAnswer(
            "t", PackedRows(), (), (with_migration(partition=-1),)
        ),
        "a migration of no partition": MigrationRequest(with_migration(partition=1 << 40)),
        "a migration to no place": MigrationCommit(with_migration(destination_new=-1)),
        "a migration from a place that is not there": MigrationCommit(with_migration(source_current=9)),
        "a migration of a source without a place": MigrationCommit(with_migration(source=None)),
        "a batch of no policy": MapCall("u", 0, 1, (MergeBatch("m", (), "mine"),)),
        "a batch of an entry that nothing can follow": MapCall(
            "u", 0, 1, (MergeBatch("m", (("k", entry),), "discard"),)
        ),
        "a write that follows on itself": BackupWrite(0, Stamp("u", 5), Stamp("u", 5), (), (), "", 0, ()),
    }


@pytest.mark.parametrize("case", hostile_messages(world()))
def test_what_no_sound_member_sends_is_refused_and_changes_nothing(case: str) -> None:
    there = world()
    before = canonical(there.inspect("B"))
    there.receive("B", "A", hostile_messages(there)[case])
    refused = there.seen("B", MessageRefused)
    assert [(event.sender, event.refused) for event in refused] == [(A, 1)] and refused[0].reason
    there.inspect("B").refused_messages.clear()
    there.inspect("B").record_count -= 1
    assert canonical(there.inspect("B")) == before
    assert not there.sent


def test_every_check_is_tried() -> None:
    tried = {type(message) for message in hostile_messages(world()).values()}
    assert {kind for kind in MESSAGE_CHECKS if kind not in tried} <= {
        MESSAGE_KINDS["migration-chunk"],
        MESSAGE_KINDS["map-answer"],
    }


def test_a_joiner_that_has_seen_much_is_let_in_without_bringing_the_version_near_its_end() -> None:
    """Else whoever claims such a version could keep all from joining; refused, a member from such a cluster never comes back."""
    there = world()
    there.born("D", "A")
    for number in range(1, 5):
        there.receive("A", "D", messages.JoinRequest(f"u{number}", False, seen_version=GREATEST))
        there.deliver_all()
        there.live(3)
    members = there.inspect("A").members
    assert members is not None and LEAD < members.version <= 5 * LEAD


def test_a_message_from_the_members_own_address_is_refused() -> None:
    there = world()
    there.receive("B", "B", messages.WhoIsMaster("u"))
    assert "own address" in there.seen("B", MessageRefused)[0].reason


def test_refusals_are_counted_and_recorded_once_a_minute_for_each_sender() -> None:
    there = world()
    machine = there.machines["B"]
    for _ in range(1000):
        there.receive("B", "A", messages.MembersUpdateAck(-1))
    there.receive("B", "C", messages.MembersUpdateAck(-1))
    assert [(event.sender, event.refused) for event in there.seen("B", MessageRefused)] == [(A, 1), (C, 1)]
    there.now += 61 * SECOND_US
    there.receive("B", "A", messages.MembersUpdateAck(-1))
    assert there.seen("B", MessageRefused)[-1].refused == 1001
    for port in range(1000):  # whatever addresses a peer gives itself
        there.take("B", machine.step(there.now, Receive(Address(f"h:{port}"), messages.MembersUpdateAck(-1))))
    assert len(there.seen("B", MessageRefused)) < 70
