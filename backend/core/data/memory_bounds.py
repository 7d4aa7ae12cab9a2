"""How much of its memory a member gives to data, and how much of that is used."""

from __future__ import annotations

from quarterdeck.backend.core.data.state import MemberState


def memory_used(state: MemberState) -> int:
    """Return about how many bytes all replicas here take: keys, values, kept answers, and what Python adds to each entry."""
    return sum(store.memory for store in state.data.stores.values())


def entries_held(state: MemberState) -> int:
    """Return how many entries all replicas here have."""
    return sum(store.entries for store in state.data.stores.values())


def why_no_room(state: MemberState, entries: int, size: int) -> str:
    """Return why so many more entries and bytes would be too much for this member; empty when they are not."""
    most_entries, most_bytes = state.settings.member_most_entries, state.settings.member_most_bytes
    if most_entries and entries > 0 and entries_held(state) + entries > most_entries:
        return f"this member is full: it may hold {most_entries} entries (quarterdeck.member.max.entries)"
    if most_bytes and size > 0 and memory_used(state) + size > most_bytes:
        return f"this member is full: its data may take {most_bytes} bytes (quarterdeck.member.max.bytes)"
    return ""


def is_full(state: MemberState) -> bool:
    """Whether owners should send nothing more to this backup. What they send all the same is stored."""
    return bool(why_no_room(state, 1, 1))
