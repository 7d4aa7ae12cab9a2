"""Render what a member decides as lines of its log, in the words of Hazelcast 5.5.0.

The words are those of the product's own classes, not of the patterns that read them; what a program fills in stands as ``*``.
Only events that the product logs have lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US

VERSION, CLUSTER = "5.5.0", "dev"


class Phrase(NamedTuple):
    """What one call of a logger of the product writes."""

    logger: str
    level: str
    words: str

    def filled(self, *arguments: object) -> str:
        """Return the words with each ``*`` replaced by the next of `arguments`."""
        first, *rest = self.words.split("*")
        assert len(rest) == len(arguments), self.words
        return first + "".join(f"{argument}{words}" for argument, words in zip(arguments, rest, strict=True))


LIST = Phrase("ClusterServiceImpl", "INFO", "\n\nMembers {size:*, ver:*} [*\n]\n")
LIFECYCLE = Phrase("LifecycleServiceImpl", "INFO", "* is *")
RESET = Phrase("ClusterServiceImpl", "WARNING", "Resetting local member UUID. Previous: *, new: *")
MERGES = Phrase("TcpIpJoiner", "WARNING", "* is merging [tcp/ip] to *")
SUSPECTED = Phrase("MembershipManager", "WARNING", "* is suspected to be dead for reason: *")
CLEARED = Phrase("MembershipManager", "INFO", "Removed suspicion of *. Reason: *")
REMOVED = Phrase("MembershipManager", "INFO", "Removing *")
CLAIM = Phrase("MembershipManager", "INFO", "Starting mastership claim process...")
CLAIMED = Phrase("MembershipManager", "INFO", "Mastership is claimed with: *")
STATE = Phrase("CommitClusterStateOp", "INFO", "Changing cluster state from * to *, initiator: *, transient: *")
LOST = Phrase("MigrationManagerImpl", "WARNING", "partitionId=* is completely lost!")
PHRASES = (LIST, LIFECYCLE, RESET, MERGES, SUSPECTED, CLEARED, REMOVED, CLAIM, CLAIMED, STATE, LOST)


class RenderedLog:
    """Renders the log of the process at one address."""

    def __init__(self, address: Address, ahead_us: int = 0) -> None:
        """Begin a log whose clock is ahead of the others by `ahead_us`."""
        self._address, self._ahead_us = address, ahead_us
        self._has_joined = self._claims = False
        self._state = "ACTIVE"

    def lines(self, record: Record, utc_us: int) -> str:
        """Return the lines of `record`, which the member logs at `utc_us`; empty where it logs nothing."""
        return "".join(self._line(utc_us + self._ahead_us, phrase, text) for phrase, text in self._messages(record))

    def _messages(self, record: Record) -> Iterator[tuple[Phrase, str]]:
        own = _printed(self._address)
        match record.event:
            case events.MemberStarted(merged_from=before):
                self._has_joined = self._claims = False
                if before:
                    yield RESET, RESET.filled(before, record.uuid)
                else:
                    self._state = "ACTIVE"
                    yield LIFECYCLE, LIFECYCLE.filled(own, "STARTING")
            case events.MemberStopped():
                yield LIFECYCLE, LIFECYCLE.filled(own, "SHUTTING_DOWN")
                yield LIFECYCLE, LIFECYCLE.filled(own, "SHUTDOWN")
            case events.ListInstalled(version=version, members=members):
                if self._claims:
                    self._claims = False
                    yield CLAIMED, CLAIMED.filled(_view(version, members))
                joined, self._has_joined = not self._has_joined, True
                yield LIST, LIST.filled(len(members), version, "".join(map(self._entry, members)))
                if joined:
                    yield LIFECYCLE, LIFECYCLE.filled(own, "STARTED")
            case events.MemberMerging(target=target):
                yield MERGES, MERGES.filled(own, _printed(target))
                yield LIFECYCLE, LIFECYCLE.filled(own, "MERGING")
            case events.SuspicionRaised(suspect=suspect, suspect_uuid=uuid, reason=reason):
                yield SUSPECTED, SUSPECTED.filled(_member(suspect, uuid), reason)
            case events.SuspicionCleared(suspect=suspect, suspect_uuid=uuid, reason=reason):
                yield CLEARED, CLEARED.filled(_member(suspect, uuid), reason)
            case events.MemberRemoved(address=address, removed_uuid=uuid):
                yield REMOVED, REMOVED.filled(_member(address, uuid))
            case events.ClaimStarted():
                yield CLAIM, CLAIM.words
            case events.ClaimFinished():
                self._claims = True
            case events.ClusterStateChanged(state=state):
                before, self._state = self._state, state
                change = f"ClusterStateChange{{type=com.hazelcast.cluster.ClusterState, newState={state}}}"
                yield (
                    STATE,
                    STATE.filled(f"ClusterState{{state={before}, lock=LockGuard.NOT_LOCKED}}", change, own, "false"),
                )
            case PartitionLost(partition=partition, lost_backups=backups) if backups >= ALL_LOST:
                yield LOST, LOST.filled(partition)

    def _entry(self, member: Member) -> str:
        this = " this" if member.address == self._address else ""
        return f"\n\t{_member(member.address, member.uuid)}{this}{' lite' if member.lite else ''}"

    def _line(self, utc_us: int, phrase: Phrase, text: str) -> str:
        moment = datetime.fromtimestamp(utc_us // SECOND_US, UTC)
        stamp = f"{moment:%Y-%m-%d %H:%M:%S},{utc_us % SECOND_US // MILLISECOND_US:03}"
        own = f"{_printed(self._address)} [{CLUSTER}] [{VERSION}]"
        return f"{stamp} [{phrase.level:>7}] [hz.main] [c.h.i.{phrase.logger}]: {own} {text}\n"


def _printed(address: Address) -> str:
    host, _, port = address.rpartition(":")
    return f"[{host}]:{port}"


def _member(address: Address, uuid: str) -> str:
    return f"Member {_printed(address)} - {uuid}"


def _view(version: int, members: Sequence[Member]) -> str:
    return f"MembersView{{version={version}, members=[{', '.join(_infos(members))}]}}"


def _infos(members: Iterable[Member]) -> Iterator[str]:
    for member in members:
        lite = "true" if member.lite else "false"
        joined = f"memberListJoinVersion={member.join_version}"
        yield f"MemberInfo{{address={_printed(member.address)}, uuid={member.uuid}, liteMember={lite}, {joined}}}"
