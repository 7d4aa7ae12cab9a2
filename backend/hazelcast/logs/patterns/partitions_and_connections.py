"""Patterns of messages about partitions, connections and the clock, and loggers whose messages make no event.

At the end those of the product's diagnostics, which an operator can turn on while members run, from 5.6 on. They write what the
ordinary log does not have: heartbeats that are late, invocations that wait, each migration.
"""

from __future__ import annotations

import re

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.core.witnessed.events import MigrationFailed, MigrationsRemaining, ReplicaMigrated
from quarterdeck.backend.hazelcast.logs import parsed_messages as logged
from quarterdeck.backend.hazelcast.logs.patterns.pattern import ADDRESS, LogPattern, address, known, log_pattern

CONNECTION_FAILURE = "Removing connection to endpoint"
"""How the message begins after which a member is removed or suspected for want of a connection."""

PARTITION_PATTERNS: list[LogPattern] = [
    log_pattern(
        "clock", "Resetting heartbeat timestamps",
        r"Resetting heartbeat timestamps[^\n]*?Clock-Jump: ?([+-]?\d{1,15}) ms",
        lambda found: logged.LoggedClockJump(abs(int(found[1])) * 1000, int(found[1]) < 0),
    ),
    log_pattern(
        "partitions", "is completely lost", r"partitionId=(\d{1,6}) is completely lost",
        lambda found: PartitionLost(int(found[1]), ALL_LOST),
    ),
    log_pattern(
        "partitions", "Possible data loss for partition[",
        r"Owner of partition is being removed! Possible data loss for partition\[(\d{1,6})\]",
        lambda found: PartitionLost(int(found[1]), ALL_LOST),
    ),
    log_pattern(
        "partitions", "partitioning cluster data",
        r"Re-?partitioning cluster data\.+ Migration (?:tasks count|queue size): ?(\d{1,9})",
        lambda found: logged.LoggedMigrationPlan(int(found[1])),
    ),
    log_pattern(
        "partitions", "All migration tasks have been completed",
        r"All migration tasks have been completed[^\n]*?plannedMigrations=(\d{1,9}), completedMigrations=(\d{1,9})",
        lambda found: logged.LoggedMigrationsDone(int(found[1]), int(found[2])),
    ),
    log_pattern(
        "partitions", "All migration tasks have been completed",
        r"All migration tasks have been completed", lambda _: logged.LoggedMigrationsDone(),
    ),
    log_pattern(
        "partitions", "Remaining migration tasks", r"Remaining migration tasks(?: in queue =>|:) ?(\d{1,9})",
        lambda found: MigrationsRemaining(int(found[1])),
    ),
    log_pattern(
        "partitions", "Migration failed: ", r"Migration failed: ([^\n]*?(?:partitionId=(\d{1,6})[^\n]*)?)$",
        lambda found: MigrationFailed(int(found[2]) if found[2] else None, found[1][:300]), ("Migration failed",),
    ),
    log_pattern(
        "connections", CONNECTION_FAILURE,
        rf"{CONNECTION_FAILURE} ({ADDRESS})(?: Cause => [\w.$]+ \{{([^\n]*?)\}}(?:,|$))?",
        lambda found: logged.LoggedConnectionFailure(address(found[1]), found[2] or ""),
    ),
    known("clock", """
        Resetting heartbeat timestamps | Resetting master confirmation timestamps | System clock apparently jumped
    """),
    known("partitions", """
        * requested to demote | * requested our partition table | Active migration could not be removed |
        AsyncMigrationTask failed | Cannot apply migration commit | Cannot commit | Error during |
        Failed to finalize migration |
        Failed to initialize member demotion | Failed to offer | Issue while determining latest partition |
        Member demote failed | Migration commit | Migration is cancelled | No member group is available |
        Partitions can't be assigned | Promotion commit | Skipping migration | Unable to assign LOST partitions |
        Partition is lost! Assign new owner | Received … from an unknown member |
        Received …, but its sender doesn't seem | Safe shutdown failed | This is the master node and received |
        latestPartitions | ERROR: partition owner | Exception while getting future | Something is seriously wrong |
        Current: |
        * requested to shutdown | All migration tasks have been | Applying the most recent |
        Assigning new owners for | Cannot assign owners | Failure while executing Migration |
        Failure while waiting for partition replica sync | Fetching partition tables |
        Finishing migration | Ignoring received partition | Initializing cluster partition table | Migration is not allowed |
        Most recent partition table | No need to repartition | Partition balance is ok |
        Rebalance process was | Received shutdown request from | Repartitioning cluster data |
        Restoring partition assignments | Rolling-back migration | Some backup replicas are inconsistent |
        Storing snapshot of partition | Waiting for missing members | Waiting for ownership assignments |
        Waiting for partition table | Waiting for the master node to complete | partitionId=
    """),
    known("connections", """
        Accepting socket connection | Connecting to | Connection | Connection[ | Could not connect to |
        Destroying ClientEndpoint | Established socket connection | Initialized new cluster connection |
        Received auth from | Removed connection | Removing connection to endpoint | Wrong bind request
    """),
    known("other", """
        CP Group Members | CP Subsystem | Collecting debug metrics | Jet started scanning |
        Overridden metrics configuration | processors=
    """),
]  # fmt: skip

_CLASSES: dict[logged.Subject, str] = {
    "partitions": """
        BaseMigrationOperation BeforePromotionOperation ClearReplicaOperation DemoteRequestOperation DemoteResponseOperation
        FetchPartitionStateOperation FinalizeMigrationOperation FinalizePromotionOperation InternalPartitionListener
        MigrationOperation MigrationRequestOperation PartitionEventManager PartitionReplicaManager
        PartitionReplicaSyncResponse PartitionRuntimeState PartitionServiceProxy PartitionStateGeneratorImpl
        PartitionStateManagerImpl PromoteFromBackupOperation PromotionCommitOperation ShutdownRequestOperation
        ShutdownResponseOperation
    """,
    "connections": """
        AbstractChannel AbstractIOSelector IOBalancer IOBalancerThread IOUtil LocalAddressRegistry NioChannelOptions RestApiFilter
        TcpIpConnectionChannelErrorHandler TcpServerConnectionChannelErrorHandler TcpServerConnectionManagerBase WriteHandler
        BindHandler InitConnectionTask MemberProtocolEncoder MockServer NioChannel NioNetworking NioThread SocketAcceptor
        SocketAcceptorThread SocketConnector TcpIpAcceptor TcpIpConnection TcpIpConnectionErrorHandler TcpIpConnectionManager
        TcpIpConnectionMonitor TcpIpConnector TcpIpEndpointManager TcpIpNetworkingService TcpServer TcpServerAcceptor
        TcpServerConnection TcpServerConnectionErrorHandler TcpServerConnectionManager TcpServerConnector TcpServerControl
        UnifiedProtocolDecoder
    """,
    "other": """
        AddressPicker AuthenticationCustomCredentialsMessageTask AuthenticationMessageTask BackpressureRegulator BuildInfoProvider
        CPSubsystem ClientEndpointManager ClientEngine ClientHeartbeatMonitor DefaultAddressPicker Diagnostics HealthMonitor
        InvocationMonitor JetServiceBackend JobCoordinationService JobExecutionService KubernetesClient ManagementCenterService
        MetadataRaftGroupManager MetricsConfigHelper MulticastService OperationExecutorImpl OperationService OperationServiceImpl
        PhoneHome RaftInvocationManager RaftNode RaftService SlowOperationDetector TransactionManagerService
        TransactionManagerServiceImpl XmlConfigLocator YamlConfigLocator DiagnosticsLog logo security system
    """,
}

SUBJECT_OF_LOGGER: dict[str, logged.Subject] = {
    name: subject for subject, names in _CLASSES.items() for name in names.split()
}
"""Loggers whose messages are understood without being read, by the last part of their names."""

PRODUCT_LOGGERS = frozenset(
    """
    ClusterService ClusterServiceImpl ClusterHeartbeatManager ClusterJoinManager ClusterStateManager CommitClusterStateOp
    DiscoveryJoiner ExplicitSuspicionOp InternalPartitionService LifecycleService LockClusterStateOp MembershipManager
    MergeClustersOp MergeClustersOperation MigrationManager MulticastJoiner PartitionStateManager SplitBrainHandler
    SplitBrainMergeValidationOp SplitBrainMergeValidationOperation TcpIpJoiner
    """.split()
)
"""Loggers that only the product has, by the last part of their names: known even where layouts cut the rest off."""


MILLISECOND_US = 1_000
_LATE = re.compile(rf"member({ADDRESS})\[[^\[\]]*?noHeartbeat\(ms\)=([\d,.]{{1,15}})")
_WAITING = re.compile(
    r"Invocation\{op=(?:[\w$]+\.)*(?P<operation>[\w$]+)\{[^\n]*? targetAddress=(?P<target>[^\s,]+),"
    r"[^\n]* duration=(?P<ms>[\d,.]{1,15}) ms"
)
_NAME = re.compile(r", name=([^,}\n]{1,100})\}")


def _late(found: re.Match[str]) -> logged.LoggedLateHeartbeats:
    late = ((address(part[1]), _number(part[2]) * MILLISECOND_US) for part in _LATE.finditer(found[0]))
    return logged.LoggedLateHeartbeats(tuple(late))


def _invocations(found: re.Match[str]) -> logged.LoggedInvocations:
    waiting = []
    for call in _WAITING.finditer(found[0]):
        name = _NAME.search(call[0])
        operation = call["operation"] + (f" of {name[1]}" if name else "")
        waiting.append((operation, _target(call["target"]), _number(call["ms"]) * MILLISECOND_US))
    return logged.LoggedInvocations(tuple(waiting))


def _migrated(found: re.Match[str]) -> ReplicaMigrated:
    return ReplicaMigrated(
        int(found["partition"]), int(found["replica"]), _target(found["source"]), _target(found["destination"]),
        found[1] == "Completed", _number(found["ms"]) * MILLISECOND_US, int(found["planned"]), int(found["completed"]),
    )  # fmt: skip


def _target(text: str) -> Address | None:
    return address(text) if re.fullmatch(ADDRESS, text) else None


def _number(text: str) -> int:
    """Return a number that Java has divided into thousands."""
    return int(re.sub(r"\D", "", text) or 0)


DIAGNOSTIC_PATTERNS: list[LogPattern] = [
    log_pattern("suspicion", "MemberHeartbeats[", r"MemberHeartbeats\[.*", _late),
    log_pattern("other", "Invocations[", r"Invocations\[.*", _invocations, ("duration=", " Invocations[")),
    log_pattern(
        "partitions",
        "Migration",
        r"Migration(Completed|Failed)\[\s*source=(?P<source>\S+)\s+destination=(?P<destination>\S+)\s+partitionId=(?P<partition>\d{1,6})"
        r"\s+replicaIndex=(?P<replica>\d{1,6})\s+elapsedTime\(ms\)=(?P<ms>[\d,.]{1,15})\s.*?plannedMigrations=(?P<planned>\d{1,9})"
        r"\s+completedMigrations=(?P<completed>\d{1,9})\b",
        _migrated,
        ("MigrationCompleted[", "MigrationFailed["),
    ),
]
