"""What the product logs, in the words of its releases from 3.5 to 5.x, and what it means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.events import (
    AddressUnusable,
    ClusterStateChanged,
    DisconnectionReported,
    ListRejected,
    MergeVerdict,
)
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.core.witnessed.events import JoinerRefused, MigrationFailed, MigrationsRemaining
from quarterdeck.backend.hazelcast.logs.parsed_messages import (
    LoggedClaimAcceptance,
    LoggedClaimFinish,
    LoggedClaimRefusal,
    LoggedClaimRequest,
    LoggedClaimStart,
    LoggedClockJump,
    LoggedConnectionFailure,
    LoggedExplicitSuspicion,
    LoggedJoiner,
    LoggedJoinFailure,
    LoggedLifecycle,
    LoggedMemberList,
    LoggedMergeAbandonment,
    LoggedMergeOrder,
    LoggedMergeStart,
    LoggedMigrationPlan,
    LoggedMigrationsDone,
    LoggedRemoval,
    LoggedSearchRedirected,
    LoggedShutdown,
    LoggedShutdownRequest,
    LoggedStart,
    LoggedSuspicion,
    LoggedSuspicionCleared,
    LoggedUuidReset,
    MemberMention,
    NoEvent,
)
from quarterdeck.backend.hazelcast.logs.patterns.matching import EVENT_SIGNS, match_message

ONE, TWO, THREE = Address("127.0.0.1:5701"), Address("127.0.0.1:5702"), Address("127.0.0.1:5703")
U1 = "4bb937f2-abbd-46b0-b09a-86d1fcfb96ec"
U2 = "2751ebd2-186e-430e-8870-642c35329e7d"
U3 = "a7858c34-352f-4351-96a5-4648e7228636"
FIRED = (
    f"Suspecting Member [127.0.0.1]:5702 - {U2} because it has not sent any heartbeats since 2026-11-21 12:16:02.673. "
    "Now: 2026-11-21 12:16:08.116, heartbeat timeout: 5000 ms, suspicion level: 1.00"
)
JOINED_AGAIN = "New join request has been received from current master. Suspecting [127.0.0.1]:5701"
OLD_VERSION = "Joining node's version 5.3.5 is not compatible with cluster version 4.2"
OTHER_JOINER = "Incompatible joiners! expected: tcp-ip, found: multicast"
NOT_MASTER = "is not known master: [127.0.0.1]:5702"
M1, M2, M3 = (f"Member [127.0.0.1]:570{number} - {uuid}" for number, uuid in enumerate((U1, U2, U3), start=1))
INFO1 = (
    f"MemberInfo{{address=[127.0.0.1]:5701, uuid={U1}, cpMemberUUID=null, liteMember=false, memberListJoinVersion=1}}"
)
INFO2 = f"MemberInfo{{address=[127.0.0.1]:5702, uuid={U2}, liteMember=true, memberListJoinVersion=2}}"
INFO3 = f"MemberInfo{{address=[127.0.0.1]:5703, uuid='{U3}', liteMember=false, memberListJoinVersion=3}}"

MAKES_NO_EVENT = (LoggedConnectionFailure, LoggedJoiner, LoggedSearchRedirected, NoEvent)
"""What only explains a later event, or nothing."""

MESSAGES: list[tuple[str, Struct]] = [
    (
        f"\n\nMembers {{size:2, ver:4}} [\n\t{M1}\n\t{M2} this lite\n]\n",
        LoggedMemberList(4, (MemberMention(ONE, U1), MemberMention(TWO, U2, True, True))),
    ),
    (
        f"\n\nMembers {{size:2, ver:2}} [\n        {M1} lite\n        {M2} this\n]\n",
        LoggedMemberList(2, (MemberMention(ONE, U1, True), MemberMention(TWO, U2, False, True))),
    ),
    ("\n\nMembers [1] {\n\tMember [127.0.0.1]:5701 this\n}", LoggedMemberList(None, (MemberMention(ONE, "", False, True),))),
    (
        f"\n\nMembers [2] {{\n\t{M1}\n\t{M2} this\n}}\n",
        LoggedMemberList(None, (MemberMention(ONE, U1), MemberMention(TWO, U2, False, True))),
    ),
    (
        f"Members {{size:1, ver:1}} [\n\tMember [fe80:0:0:0:42:acff:fe11:2%eth0]:5701 - {U1} this\n]\nHazelcast 4",
        LoggedMemberList(1, (MemberMention(Address("[fe80:0:0:0:42:acff:fe11:2%eth0]:5701"), U1, False, True),)),
    ),
    ("[127.0.0.1]:5701 is STARTING", LoggedLifecycle("STARTING")),
    ("Address[127.0.0.1]:5712 is MERGING", LoggedLifecycle("MERGING")),
    ("[127.0.0.1]:5701 is SHUTTING_DOWN", LoggedLifecycle("SHUTTING_DOWN")),
    ("[127.0.0.1]:5701 is MERGE_FAILED", LoggedLifecycle("MERGE_FAILED")),
    ("Hazelcast Platform 5.3.8 (20240717) starting at [10.77.0.4]:5701", LoggedStart()),
    ("Hazelcast 3.9.4 (20180321 - b29f549) starting at [192.168.1.8]:5701", LoggedStart()),
    ("Running shutdown hook... Current node state: ACTIVE", LoggedShutdown("the process was asked to end")),
    (f"Resetting local member UUID. Previous: {U1}, new: {U2}", LoggedUuidReset(U1, U2)),
    (f"{M1} is suspected to be dead for reason: No connection", LoggedSuspicion(MemberMention(ONE, U1), "No connection")),
    (f"{M1} is suspected to be dead", LoggedSuspicion(MemberMention(ONE, U1), "")),
    (
        "[127.0.0.1]:5701 is suspected to be dead for reason: explicit suspicion",
        LoggedSuspicion(MemberMention(ONE), "explicit suspicion"),
    ),
    (f"{M1} is suspected to be dead for reason: {JOINED_AGAIN}", LoggedSuspicion(MemberMention(ONE, U1), JOINED_AGAIN)),
    (FIRED, LoggedSuspicion(MemberMention(TWO, U2), FIRED, True)),
    (
        "Removing Member [127.0.0.1]:5702 because it has not sent any heartbeats for 15000 ms.",
        LoggedSuspicion(
            MemberMention(TWO), "Removing Member [127.0.0.1]:5702 because it has not sent any heartbeats for 15000 ms.", True
        ),
    ),
    (f"Removed suspicion of {M2}. Reason: Valid heartbeat", LoggedSuspicionCleared(MemberMention(TWO, U2), "Valid heartbeat")),
    (
        "Removed suspicion from [127.0.0.1]:5702. Reason: Valid heartbeat",
        LoggedSuspicionCleared(MemberMention(TWO), "Valid heartbeat"),
    ),
    ("Received suspicion request from: [127.0.0.1]:5703", LoggedExplicitSuspicion(THREE)),
    (f"Shutdown request of {M3} is handled", LoggedShutdownRequest(MemberMention(THREE, U3))),
    (
        "Remaining migration tasks: 20. (repartitionTime=Sat Nov 21 12:22:55 UTC 2026, plannedMigrations=203)",
        MigrationsRemaining(20),
    ),
    ("Remaining migration tasks in queue => 7. (plannedMigrations=9)", MigrationsRemaining(7)),
    (
        f"Migration failed: MigrationInfo{{uuid={U1}, partitionId=5}}",
        MigrationFailed(5, f"MigrationInfo{{uuid={U1}, partitionId=5}}"),
    ),
    ("Migration failed: something", MigrationFailed(None, "something")),
    (
        "Node could not join cluster at node: [127.0.0.1]:5703 Cause: the target cluster has a different cluster-name",
        AddressUnusable(THREE, "its cluster has another name", "other-cluster"),
    ),
    (f"Reason of failure for node join: {OLD_VERSION}", LoggedJoinFailure(OLD_VERSION)),
    (
        f"Received an invalid join request from [127.0.0.1]:5703, cause: {OTHER_JOINER}",
        JoinerRefused(THREE, OTHER_JOINER),
    ),
    (f"Removing {M3}", LoggedRemoval(MemberMention(THREE, U3))),
    (
        f"Removing {M3} because it has disconnected from some of the members!",
        LoggedRemoval(MemberMention(THREE, U3), f"Removing {M3} because it has disconnected from some of the members"),
    ),
    (
        f"Received suspected members: [{M2}, {M3}] from {M1}",
        DisconnectionReported(ONE, (TWO, THREE)),
    ),
    (f"Received suspected members: [] from {M2}", DisconnectionReported(TWO, ())),
    (f"Not updating members because caller: [127.0.0.1]:5701 {NOT_MASTER}", ListRejected(0, ONE, NOT_MASTER)),
    ("Starting mastership claim process...", LoggedClaimStart()),
    (
        f"Local MembersView{{version=5, members=[{INFO1}, {INFO2}, {INFO3}]}} with suspected members: [{M1}] "
        f"and initial addresses to ask: [{M3}]",
        LoggedClaimRequest(
            5,
            (MemberMention(ONE, U1), MemberMention(TWO, U2, True), MemberMention(THREE, U3)),
            (MemberMention(ONE, U1),),
            (MemberMention(THREE, U3),),
        ),
    ),
    (
        "Local MembersView{version=3, members=[MemberInfo{address=[127.\n0.0.1]:5701, uuid=" + U1 + ", cpMemberUUID=null, "
        f"liteMe\nmber=false, memberListJoinVersion=1}}]}} with suspected members: [] and initial addresses to ask\n: [{M2}]",
        LoggedClaimRequest(3, (MemberMention(ONE, U1),), (), (MemberMention(TWO, U2),)),
    ),
    (
        f"Mastership is claimed with: MembersView{{version=6, members=[{INFO2}, {INFO3}]}}",
        LoggedClaimFinish(6, (MemberMention(TWO, U2, True), MemberMention(THREE, U3))),
    ),
    (
        f"Mastership of [127.0.0.1]:5702 is accepted. Response: MembersView{{version=5, members=[{INFO2}]}}",
        LoggedClaimAcceptance(TWO),
    ),
    ("[127.0.0.1]:5702 is merging [tcp/ip] to [127.0.0.1]:5701", LoggedMergeStart(ONE)),
    ("Address[127.0.0.1]:5702 is merging [multicast] to Address[127.0.0.1]:5701", LoggedMergeStart(ONE)),
    ("[127.0.0.1]:5702 is merging to [127.0.0.1]:5701, because: instructed by master [127.0.0.1]:5702", LoggedMergeOrder(ONE)),
    (
        "Could not change cluster state to FROZEN in time. Postponing merge process until next attempt.",
        LoggedMergeAbandonment("Could not change cluster state to FROZEN in time. Postponing merge process until next attempt."),
    ),
    (
        "Changing cluster state from ClusterState{state=ACTIVE, lock=LockGuard{lockOwner=[127.0.0.1]:5702, lockOwnerId='x', "
        "lockExpiryTime=1795263451144}} to ClusterStateChange{type=class com.hazelcast.cluster.ClusterState, newState=FROZEN}, "
        "initiator: [127.0.0.1]:5702, transient: false",
        ClusterStateChanged("FROZEN", "it was changed from ACTIVE, initiated by [127.0.0.1]:5702"),
    ),
    (
        "Resetting heartbeat timestamps because of huge system clock jump! Clock-Jump: -289351 ms, Heartbeat-Timeout: 60000 ms",
        LoggedClockJump(289_351_000, is_backwards=True),
    ),
    (
        "Removing connection to endpoint [10.77.0.4]:5701 Cause => java.io.IOException {Connection refused to address "
        "/10.77.0.4:5701}, Error-Count: 5",
        LoggedConnectionFailure(Address("10.77.0.4:5701"), "Connection refused to address /10.77.0.4:5701"),
    ),
    ("Repartitioning cluster data. Migration tasks count: 203", LoggedMigrationPlan(203)),
    ("Repartitioning cluster data. Migration queue size: 203", LoggedMigrationPlan(203)),
    (
        "All migration tasks have been completed. (repartitionTime=Sat Nov 21 12:22:55 UTC 2026, plannedMigrations=203, "
        "completedMigrations=202, remainingMigrations=0, totalCompletedMigrations=203)",
        LoggedMigrationsDone(203, 202),
    ),
    ("All migration tasks have been completed, queues are empty.", LoggedMigrationsDone()),
    (
        "[10.78.0.2]:5701 claims mastership but it is not a member!\njava.lang.IllegalArgumentException: [10.78.0.2]:5701",
        LoggedClaimRefusal(Address("10.78.0.2:5701"), "claims mastership but it is not a member"),
    ),
    (
        "A split-brain merge validation request was received, but the current member is not a master. The master address will "
        "be sent to the request source ([10.78.0.3]:5701)",
        LoggedSearchRedirected(),
    ),
    ("partitionId=271 is completely lost!", PartitionLost(271, ALL_LOST)),
    ("Using Multicast discovery", LoggedJoiner("multicast")),
    ("Using TCP/IP discovery", LoggedJoiner("tcp-ip")),
    ("Kubernetes Discovery activated with mode: DNS_LOOKUP", LoggedJoiner("kubernetes")),
]  # fmt: skip


JUDGEMENTS = [
    (
        "We should merge to [127.0.0.1]:5701 because their data member count is bigger than ours [3 > 2]",
        ONE, "local-merges", "data-members",
    ),
    (
        "[127.0.0.1]:5702 should merge to us , because our data member count is bigger than theirs [2 > 1]",
        TWO, "remote-merges", "data-members",
    ),
    ("[127.0.0.1]:5702 should merge to us, both have the same data member count: 1", TWO, "remote-merges", "address"),
    (
        "[127.0.0.1]:5701 CANNOT merge to [127.0.0.1]:5702, because it thinks this-node as its member.",
        TWO, "cannot-merge", "i-am-its-member",
    ),
    (
        "Should not merge to [127.0.0.1]:5702, because it is already member of this cluster.",
        TWO, "cannot-merge", "remote-is-my-member",
    ),
    (
        "Address[127.0.0.1]:5701 is merging to Address[127.0.0.1]:5702, because : "
        "joinRequest.getMemberCount() > currentMemberCount [2 > 1]",
        TWO, "local-merges", "unknown",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "remote", "decision", "rule"), JUDGEMENTS)
def test_a_judgement_keeps_its_words(text: str, remote: Address, decision: str, rule: str) -> None:
    matched = match_message(text)
    assert matched is not None and isinstance(matched.parsed, MergeVerdict)
    assert (matched.parsed.remote, matched.parsed.decision, matched.parsed.rule) == (remote, decision, rule)
    assert matched.parsed.why == text


@pytest.mark.parametrize(("text", "parsed"), MESSAGES)
def test_a_message_means_one_thing(text: str, parsed: Struct) -> None:
    matched = match_message(text)
    assert matched is not None
    assert matched.parsed == parsed


@pytest.mark.parametrize(("text", "parsed"), MESSAGES)
def test_a_message_that_may_make_an_event_has_a_sign_of_it(text: str, parsed: Struct) -> None:
    """Else whoever reads logs for their events would not look at it."""
    if not isinstance(parsed, MAKES_NO_EVENT):
        assert any(sign in text.encode() for sign in EVENT_SIGNS)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("[10.77.0.5]:5701 is added to the blacklist.", "joining"),
        ("The address ([10.77.0.1]:5701) will be added as a temporary member address to the TCP-IP joiner", "joining"),
        ("Ignoring join check from [10.77.0.1]:5701, because this node is not joined to a cluster yet...", "merge"),
        ("Ignoring heartbeat from Member [127.0.0.1]:5701 - 4bb9 since it is expired (now: 1, timestamp: 2)", "suspicion"),
        ("This node does not have a connection to Member [127.0.0.1]:5701", "suspicion"),
        ("Cannot handle heartbeat from [127.0.0.1]:5701, could not acquire lock in time.", "suspicion"),
        ("System clock apparently jumped from 2024-01-08 20:35:10.567 to 2024-01-08 20:05:11.567 since last", "clock"),
        ("Cannot allow join request from [127.0.0.1]:5703, since it has been already joined with " + U3, "joining"),
        ("New join request has been received from an existing endpoint " + M2 + ". Removing old member and", "joining"),
        ("Locking cluster state. Initiator: [10.77.0.4]:5701, lease-time: 60000", "state"),
        ("Changing cluster state from ACTIVE to IN_TRANSITION", "state"),
        ("Assigning new owners for 12 LOST partitions, when migration is not allowed!", "partitions"),
        ("Waiting for the master node to complete remaining migrations...", "partitions"),
        ("Some backup replicas are inconsistent with primary, waiting for synchronization. Timeout: 9ms", "partitions"),
        ("Waiting for ownership assignments of missing replica owners...", "partitions"),
        ("Failure while waiting for partition replica sync before shutdown", "partitions"),
        ("Following unknown addresses are found in partition table sent from master[[127.0.0.1]:5702].", "membership"),
        ("Updating local member list version: 4 to 7 because of split brain merge caller: [127.0.0.1]:5703", "membership"),
    ],
)  # fmt: skip
def test_what_makes_no_event_is_understood_too(text: str, subject: str) -> None:
    matched = match_message(text)
    assert matched == (subject, NoEvent())


@pytest.mark.parametrize(
    "text",
    [
        "A sentence that no release says",
        f"Members {{size:3, ver:3}} [\n\t{M1} this\n",
        f"Members {{size:3, ver:3}} [\n\t{M1} this\n]",
        "Members {size:1, ver:1} [\n\tMember [127.0.0.1]:99999 - " + U1 + " this\n]",
    ],
)
def test_what_is_unknown_or_cut_short_says_nothing(text: str) -> None:
    assert match_message(text) is None


def test_a_claim_whose_line_is_cut_is_a_claim_all_the_same() -> None:
    matched = match_message("Mastership is claimed with: MembersView{version=6")
    assert matched == ("claim", LoggedClaimFinish(None, ()))


PIECES = st.sampled_from(
    [text for text, _ in MESSAGES]
    + [M1, INFO1, "Members {size:2, ver:2} [", "]", "\n", "MembersView{version=", "[", "}", " is merging to "]
)


@given(st.lists(PIECES | st.text(max_size=20), max_size=6).map("".join))
def test_no_message_breaks_the_understanding(text: str) -> None:
    match_message(text)
    match_message(text, "ClusterService")
    match_message(text[1:-1])
