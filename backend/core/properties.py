"""The ``hazelcast.*`` properties: names, defaults, units and bounds (Hazelcast: properties), and the settings made of them.

Code reads `Settings`, whose names say their units; people write properties, whose names they know. Two presets exist:
``production``, the documented defaults, and ``training``, seconds instead of minutes.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from math import inf, isfinite
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from quarterdeck.backend.core.map_limits import map_limits

MERGE_POLICIES = ("put-if-absent", "pass-through", "latest-update", "latest-access", "higher-hits", "discard")
SECOND_US = 1_000_000
MILLISECOND_US = 1_000

Preset = Literal["production", "training"]
PropertyValue = str | int | float | bool


class BadProperty(ValueError):
    """A property with an unknown name or a value out of bounds. `name` is the property; `problem`, as the message, has a hint."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name, self.problem = name, problem


Unit = Literal["seconds", "milliseconds", "", "yes or no", "choice", "text"]


class Property(Struct, frozen=True):
    """How one field of `Settings` is written by people. A unit of "" is a plain number."""

    name: str
    unit: Unit
    training: PropertyValue
    """Value in the training preset, in the property's unit."""
    at_least: float = 0
    at_most: float = inf
    whole: bool = False
    choices: tuple[str, ...] = ()


LONGEST_SECONDS = 1e9
"""No duration is longer: some thirty years."""

SCALES = {"seconds": SECOND_US, "milliseconds": MILLISECOND_US}
FLAGS = {"true": True, "false": False, "yes": True, "no": False}


_DECLARED: list[Property] = []
"""In the order of the fields of `Settings`."""


def _read(kind: Property, value: PropertyValue) -> PropertyValue:
    if kind.unit == "choice":
        if value not in kind.choices:
            raise BadProperty(kind.name, f"{value!r} is not known; write one of {', '.join(kind.choices)}")
        return value
    if kind.unit == "text":
        if not isinstance(value, str):
            raise BadProperty(kind.name, f"{value!r} is not text")
        return value
    if kind.unit == "yes or no":
        flag = value if isinstance(value, bool) else FLAGS.get(str(value).lower())
        if flag is None:
            raise BadProperty(kind.name, f"{value!r} is neither true nor false")
        return flag
    return _read_number(kind, value)


def _read_number(kind: Property, value: PropertyValue) -> PropertyValue:
    try:
        if isinstance(value, bool):
            raise ValueError
        number = float(value)
        if not isfinite(number):
            raise ValueError
    except OverflowError:
        raise BadProperty(kind.name, "the number is too great") from None
    except ValueError:
        raise BadProperty(kind.name, f"{value!r} is not a number{f' of {kind.unit}' if kind.unit else ''}") from None
    if number < kind.at_least:
        raise BadProperty(kind.name, f"{value} is too small; the least is {kind.at_least:g}")
    if number > kind.at_most:
        raise BadProperty(kind.name, f"{value} is too great; the most is {kind.at_most:g}")
    if kind.whole:
        if number != int(number):
            raise BadProperty(kind.name, f"{value} is not a whole number")
        return int(number)
    if kind.unit in SCALES and number > LONGEST_SECONDS * SECOND_US / SCALES[kind.unit]:
        raise BadProperty(kind.name, f"{value} is too great; the most is {LONGEST_SECONDS:g} seconds")
    return round(number * SCALES[kind.unit]) if kind.unit in SCALES else number


def _property(
    name: str, default: PropertyValue, unit: Unit = "", training: PropertyValue | None = None, **bounds: Any
) -> Any:
    """Declare a field of `Settings`; in the training preset it has the default, too, where no `training` is given."""
    how = Property(name, unit, default if training is None else training, **bounds)
    _DECLARED.append(how)
    return _read(how, default) if unit in SCALES else default


def _seconds(name: str, default: float, training: float | None = None, *, at_least: float = 0.001) -> Any:
    return _property(name, default, "seconds", training, at_least=at_least)


def _milliseconds(name: str, default: float, training: float | None = None) -> Any:
    return _property(name, default, "milliseconds", training, at_least=1)


def _count(name: str, default: int, training: int | None = None, *, at_least: int = 1, at_most: float = inf) -> Any:
    return _property(name, default, "", training, at_least=at_least, at_most=at_most, whole=True)


class Settings(Struct, frozen=True):
    """Everything that can be set; times in microseconds. Properties of our own begin with ``quarterdeck.``."""

    heartbeat_interval_us: int = _seconds("hazelcast.heartbeat.interval.seconds", 5, 1)
    """How often a member sends a heartbeat to each other one."""
    max_no_heartbeat_us: int = _seconds("hazelcast.max.no.heartbeat.seconds", 60, 4)
    """After so long without a heartbeat a member is suspected."""
    failure_detector: str = _property(
        "hazelcast.heartbeat.failuredetector.type", "deadline", "choice", choices=("deadline", "phi-accrual")
    )
    """What holds a member for dead: a fixed time without a heartbeat, or how unlikely such a silence is by now."""
    phi_threshold: float = _property("hazelcast.heartbeat.phiaccrual.failuredetector.threshold", 10, at_least=0.1)
    """Of phi-accrual: how unlikely a silence has to be; 10 stands for one in ten thousand million."""
    phi_sample_size: int = _count("hazelcast.heartbeat.phiaccrual.failuredetector.sample.size", 200, at_least=2)
    """Of phi-accrual: how many intervals between heartbeats are remembered."""
    phi_min_std_dev_us: int = _milliseconds("hazelcast.heartbeat.phiaccrual.failuredetector.min.std.dev.millis", 100)
    """Of phi-accrual: intervals are taken to vary at least so much."""
    connection_monitor_interval_us: int = _milliseconds("hazelcast.connection.monitor.interval", 100)
    """How long after a failure to connect to a member that is tried again."""
    connection_max_faults: int = _count("hazelcast.connection.monitor.max.faults", 3, at_least=0)
    """After more failures to connect than this the member is suspected."""
    master_confirmation_interval_us: int = _seconds("hazelcast.master.confirmation.interval.seconds", 30, 2)
    """How often a member confirms to its master that it follows."""
    max_no_master_confirmation_us: int = _seconds("hazelcast.max.no.master.confirmation.seconds", 150, 10)
    """The master removes a member that has not confirmed for so long."""
    list_publish_interval_us: int = _seconds("hazelcast.member.list.publish.interval.seconds", 60, 10)
    """How often the master sends its list to all members again."""
    mastership_claim_timeout_us: int = _seconds("hazelcast.mastership.claim.timeout.seconds", 120, 8)
    """How long a claimant of the mastership waits for answers."""
    max_join_us: int = _seconds("hazelcast.max.join.seconds", 300, 60, at_least=1)
    """A member that has not joined after so long gives up and ends."""
    max_join_merge_target_us: int = _seconds("hazelcast.max.join.merge.target.seconds", 20, 5, at_least=1)
    """After a merge: how long a member tries to join the winner, before it looks for any cluster."""
    stale_join_prevention_us: int = _seconds("hazelcast.stale.join.prevention.duration.seconds", 30, 5, at_least=0)
    """For so long after an incarnation left the list, late messages do not bring it back."""
    join_port_try_count: int = _count("hazelcast.tcp.join.port.try.count", 3)
    """How many ports are tried at an address of the join list that names none."""
    address_retention_us: int = _seconds(
        "hazelcast.tcp.join.previously.joined.member.address.retention.seconds", 14_400, at_least=0
    )
    """How long addresses of former members are remembered, to look for split clusters there."""
    merge_first_run_delay_us: int = _seconds("hazelcast.merge.first.run.delay.seconds", 300, 5)
    """How long a new master waits before it looks for other clusters."""
    merge_next_run_delay_us: int = _seconds("hazelcast.merge.next.run.delay.seconds", 120, 3)
    """How often a master looks for other clusters after that."""
    disconnection_heartbeats: int = _count(
        "hazelcast.partial.member.disconnection.resolution.heartbeat.count", 0, 3, at_least=0
    )
    """A partial disconnection is settled when reports of it have not changed for so many heartbeat intervals; 0 never does."""
    disconnection_timeout_us: int = _seconds(
        "hazelcast.partial.member.disconnection.resolution.algorithm.timeout.seconds", 5, at_least=0
    )
    """How long the master looks for the greatest group that is fully connected, before it takes the best found."""
    legacy_list_text: bool = _property("hazelcast.legacy.memberlist.format.enabled", False, "yes or no")
    """Member lists are printed in the text of releases before 3.9."""
    heartbeat_topology: str = _property("quarterdeck.heartbeat.topology", "all", "choice", choices=("all", "ring"))
    """Whom a member watches: all others, or in a ring those that follow it on the list."""
    ring_successors: int = _count("quarterdeck.heartbeat.ring.successors", 3)
    """In a ring: how many members each one watches."""
    minimum_cluster_size: int = _count("quarterdeck.minimum.cluster.size", 0, at_least=0)
    """With fewer members than this on its list a member refuses operations; 0 never refuses."""
    probe_backoff_most_us: int = _seconds("quarterdeck.link.probe.max.backoff.seconds", 60, 4)
    """The longest time between two probes of a broken link."""
    state_lease_us: int = _seconds("quarterdeck.cluster.state.lease.seconds", 60, 6)
    """A change of the cluster's state that is not decided after so long is given up."""
    partition_count: int = _count("hazelcast.partition.count", 271)
    """Into how many partitions the data is divided."""
    backups: int = _count("quarterdeck.backup.count", 1, at_least=0, at_most=6)
    """How many copies of each partition there are beside the owner's."""
    partition_groups: str = _property(
        "quarterdeck.partition.group.type",
        "per-member",
        "choice",
        choices=("per-member", "host-aware", "zone-aware", "custom"),
    )
    """Which members count as one group: a partition and its backups are kept in different groups."""
    custom_groups: str = _property("quarterdeck.partition.groups", "", "text")
    """Of custom groups: their names and address patterns, as in `rack1=10.0.1.*; rack2=10.0.2.*`."""
    arranges_at_once: bool = _property("quarterdeck.partition.arrange.at.once", False, "yes or no")
    """Partitions are arranged when the cluster forms, not at the first use of data."""
    parallel_migrations: int = _count("hazelcast.partition.max.parallel.migrations", 10)
    """How many migrations one member takes part in at a time."""
    migration_interval_us: int = _seconds("hazelcast.partition.migration.interval", 0, at_least=0)
    """How long the master waits between the starts of two migrations."""
    migration_timeout_us: int = _seconds("hazelcast.partition.migration.timeout", 300, 30)
    """A migration that takes longer than this is rolled back."""
    table_send_interval_us: int = _seconds("hazelcast.partition.table.send.interval", 15, 3)
    """How often the master sends the partition table to all members again."""
    backup_sync_interval_us: int = _seconds("hazelcast.partition.backup.sync.interval", 30, 5)
    """How often an owner compares its partitions with their backups."""
    parallel_replications: int = _count("hazelcast.partition.max.parallel.replications", 10)
    """How many partitions a backup takes over whole at a time."""
    transfer_chunk_bytes: int = _count("quarterdeck.transfer.chunk.bytes", 131_072, at_most=2_097_152)
    """The size of the pieces in which a partition is copied."""
    transfer_window_chunks: int = _count("quarterdeck.transfer.window.chunks", 4)
    """How many pieces may be on their way before one is confirmed."""
    graceful_shutdown_us: int = _seconds("hazelcast.graceful.shutdown.max.wait", 600, 60, at_least=0)
    """How long a member that stops waits until its data has moved away."""
    lite_change_us: int = _seconds("hazelcast.member.demote.max.wait", 600, 60, at_least=0)
    """How long a member that is demoted waits until its data has moved away; also how long one waits to be promoted."""
    call_timeout_us: int = _milliseconds("hazelcast.operation.call.timeout.millis", 60_000, 30_000)
    """A client's call that has no answer after so long fails."""
    merge_policy: str = _property(
        "quarterdeck.merge.policy",
        "put-if-absent",
        "choice",
        choices=MERGE_POLICIES,
    )
    """What becomes of an entry after a merge when both clusters have it."""
    map_limits: str = _property("quarterdeck.map.limits", "", "text")
    """How much a member may own of a map, by its name: `cache* max-size=10000 eviction-policy=LRU; * max-bytes=500000000`."""
    member_most_entries: int = _count("quarterdeck.member.max.entries", 0, at_least=0)
    """A member that holds so many entries, those that it keeps as a backup included, refuses new ones; 0 never refuses."""
    member_most_bytes: int = _count("quarterdeck.member.max.bytes", 1_073_741_824, at_least=0)
    """The same for bytes of memory: keys, values, and about 320 for each entry; 0 never refuses."""
    measure_interval_us: int = _seconds("quarterdeck.data.measure.interval.seconds", 2, at_least=0)
    """How often a member reports what it stores and what was asked of it, where that has changed; 0: never."""
    journal_retention_us: int = _seconds("quarterdeck.journal.retention.seconds", 2_592_000, at_least=0)
    """How long a member keeps the files of its journal; 0: for ever. 30 days by default."""
    journal_retention_bytes: int = _count("quarterdeck.journal.retention.bytes", 1_073_741_824, at_least=0)
    """How much a member's journal may hold before its oldest files go; 0 sets no limit."""
    audit_log_retention_us: int = _seconds("quarterdeck.audit.log.retention.seconds", 31_536_000, at_least=0)
    """How long a member keeps the files of its audit log; 0: for ever. A year by default."""
    audit_log_retention_bytes: int = _count("quarterdeck.audit.log.retention.bytes", 134_217_728, at_least=0)
    """How much a member's audit log may hold before its oldest files go; 0 sets no limit."""
    helpful_answers: bool = _property("quarterdeck.split.brain.answers.enabled", True, "yes or no")
    """Members help the master of another cluster: a slave names its own master, a master that is to merge asks back."""

    @classmethod
    def of(cls, properties: Mapping[str, PropertyValue] | None = None, *, preset: Preset = "production") -> Settings:
        """Return the preset with `properties` on top.

        Raises:
            BadProperty: A property cannot be taken; the first is named.
        """
        settings = cls()
        if preset == "training":
            settings = settings.with_properties({name: kind.training for name, (_, kind) in PROPERTIES.items()})
        return settings.with_properties(properties or {})

    def with_properties(self, properties: Mapping[str, PropertyValue]) -> Settings:
        """Return these settings with some properties changed.

        Raises:
            BadProperty: A property cannot be taken. Then nothing is changed.
        """
        settings = replace(self, **_by_field(properties))
        settings._check_together()
        return settings

    def changed_at_runtime(self, properties: Mapping[str, PropertyValue]) -> Settings:
        """Return these settings with some properties changed, of those that a running member can change.

        Raises:
            BadProperty: A property cannot be changed so.
        """
        check_changeable(properties)
        return self.with_properties(properties)

    @property
    def partitioning(self) -> str:
        """How data is spread, in words: what all members of a cluster must have alike."""
        return f"{self.partition_count} partitions with {self.backups} backups, groups {self.grouping}"

    @property
    def grouping(self) -> str:
        """By what members are grouped, in words; with the patterns where groups go by them."""
        if self.partition_groups != "custom":
            return self.partition_groups
        groups = (f"{name}={','.join(texts)}" for name, texts in group_patterns(self.custom_groups).items())
        return f"custom {'; '.join(groups)}"

    def as_properties(self) -> dict[str, PropertyValue]:
        return {name: _shown(kind, getattr(self, attribute)) for name, (attribute, kind) in PROPERTIES.items()}

    def not_as_documented(self) -> dict[str, str]:
        """Return the properties that are not the documented defaults, as text by name, as an incarnation reports them."""
        return {name: str(value) for name, value in self.as_properties().items() if value != DOCUMENTED[name]}

    def _check_together(self) -> None:
        try:
            patterns = group_patterns(self.custom_groups)
        except ValueError as problem:
            raise BadProperty("quarterdeck.partition.groups", str(problem)) from problem
        try:
            map_limits(self.map_limits)
        except ValueError as problem:
            raise BadProperty("quarterdeck.map.limits", str(problem)) from problem
        if self.partition_groups == "custom" and not patterns:
            raise BadProperty(
                "quarterdeck.partition.groups",
                "no group is named, but the group type is custom; write something like rack1=10.0.1.*; rack2=10.0.2.*",
            )
        if self.max_no_heartbeat_us <= self.heartbeat_interval_us:
            raise BadProperty(
                "hazelcast.max.no.heartbeat.seconds",
                f"{self.max_no_heartbeat_us / SECOND_US:g} s is not longer than the heartbeat interval of "
                f"{self.heartbeat_interval_us / SECOND_US:g} s, so every member would be suspected; use at least three intervals",
            )
        if self.max_no_master_confirmation_us <= self.master_confirmation_interval_us:
            raise BadProperty(
                "hazelcast.max.no.master.confirmation.seconds",
                f"{self.max_no_master_confirmation_us / SECOND_US:g} s is not longer than the confirmation interval of "
                f"{self.master_confirmation_interval_us / SECOND_US:g} s, so every slave would be removed; "
                "use at least three intervals",
            )


PROPERTIES: dict[str, tuple[str, Property]] = {
    how.name: (attribute, how) for attribute, how in zip(Settings.__struct_fields__, _DECLARED, strict=True)
}
"""Property name to (field of `Settings`, how it is written)."""


FIXED_AT_START = frozenset(
    (
        "hazelcast.partition.count",
        "quarterdeck.backup.count",
        "quarterdeck.partition.group.type",
        "quarterdeck.partition.groups",
        "hazelcast.heartbeat.failuredetector.type",
        "hazelcast.heartbeat.phiaccrual.failuredetector.threshold",
        "hazelcast.heartbeat.phiaccrual.failuredetector.sample.size",
        "hazelcast.heartbeat.phiaccrual.failuredetector.min.std.dev.millis",
        "quarterdeck.heartbeat.topology",
    )
)
"""Properties on which all members must agree, or that are built into what a member has set up."""


def check_changeable(properties: Mapping[str, PropertyValue]) -> None:
    """Raise `BadProperty` for one that no running member takes, whatever its other settings are."""
    for name in properties:
        if name in FIXED_AT_START:
            raise BadProperty(name, "cannot be changed while the member runs; set it and start the member anew")
    _by_field(properties)


def _by_field(properties: Mapping[str, PropertyValue]) -> dict[str, Any]:
    """By field of `Settings`, what people have written. Raises `BadProperty` on the first that cannot be taken."""
    changed: dict[str, Any] = {}
    for name, value in properties.items():
        if name not in PROPERTIES:
            close = difflib.get_close_matches(name, PROPERTIES, n=1, cutoff=0.6)
            suggestion = f"; did you mean {close[0]}?" if close else ""
            raise BadProperty(name, f"there is no such property{suggestion}")
        attribute, kind = PROPERTIES[name]
        changed[attribute] = _read(kind, value)
    return changed


def _shown(kind: Property, value: PropertyValue) -> PropertyValue:
    if kind.unit not in SCALES or isinstance(value, str):
        return value
    amount = value / SCALES[kind.unit]
    return int(amount) if amount == int(amount) else amount


def group_patterns(text: str) -> dict[str, tuple[str, ...]]:
    """Read groups and the texts that their hosts match, from text like ``rack1=10.0.1.*,10.0.2.*; rack2=10.0.3.*``.

    Raises:
        ValueError: The text does not have this form.
    """
    groups: dict[str, tuple[str, ...]] = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, equals, patterns = part.partition("=")
        texts = tuple(filter(None, map(str.strip, patterns.split(","))))
        if not equals or not name.strip() or not texts:
            raise ValueError(f"{part!r} is no group; write a name, = and what its hosts match, as in rack1=10.0.1.*")
        if name.strip() in groups:
            raise ValueError(f"the group {name.strip()} is named twice")
        groups[name.strip()] = texts
    return groups


DOCUMENTED = Settings().as_properties()
"""The defaults as people write them."""
