"""Which of two entries stays when clusters merge: the one of the winner's cluster, or the one that was brought along."""

from __future__ import annotations

from quarterdeck.backend.core.data.partition_store import StoredEntry


def merged(policy: str, existing: StoredEntry | None, incoming: StoredEntry) -> StoredEntry | None:
    """Return the entry to store in place of `existing`; None when that is to stay as it is.

    An entry that is stored keeps its times and hits, and has a version above both. Of two that are equal the existing one stays,
    so an offer that comes twice changes nothing, except under pass-through. `policy` is a value of `quarterdeck.merge.policy`.
    """
    if not _takes(policy, existing, incoming):
        return None
    version = incoming.version if existing is None else max(existing.version, incoming.version) + 1
    return StoredEntry(
        incoming.value, version, incoming.created_us, incoming.updated_us, incoming.accessed_us, incoming.hits
    )


def _takes(policy: str, existing: StoredEntry | None, incoming: StoredEntry) -> bool:
    if policy == "discard":
        return False
    if existing is None or policy == "pass-through":
        return True
    if policy == "latest-update":
        return incoming.updated_us > existing.updated_us
    if policy == "latest-access":
        return incoming.accessed_us > existing.accessed_us
    if policy == "higher-hits":
        return incoming.hits > existing.hits
    assert policy == "put-if-absent", policy
    return False
