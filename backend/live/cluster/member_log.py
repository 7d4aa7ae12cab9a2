"""The log of a live cluster: the list of members in the text people know, and who is suspected.

See Cluster Service Consistency Improvements, User Interaction.

Everything else is in the journal; this is what somebody used to member logs looks for first.
"""

from __future__ import annotations

import logging

from quarterdeck.backend.core.events import ListInstalled, Record, SuspicionCleared, SuspicionRaised
from quarterdeck.backend.core.membership.views.member_list import MemberList, member_list_text

_LOG = logging.getLogger(__name__)


def log_record(record: Record, *, legacy: bool) -> None:
    """Write what `record` says into the log, if it belongs there; `legacy` is the list format without a version."""
    if not _LOG.isEnabledFor(logging.INFO):
        return
    match record.event:
        case ListInstalled(version, lineage, _, members):
            text = member_list_text(MemberList(version, members, lineage), record.uuid, legacy=legacy)
            _LOG.info("%s\n\n%s\n", record.member, text)
        case SuspicionRaised(suspect, uuid, reason):
            _LOG.warning("%s: %s - %s is suspected to be dead for reason: %s", record.member, suspect, uuid, reason)
        case SuspicionCleared(suspect, uuid, reason):
            _LOG.info("%s: removed suspicion of %s - %s. Reason: %s", record.member, suspect, uuid, reason)
        case _:
            pass
