"""Whether the journal of a run is all there. Imports no Spark."""

from __future__ import annotations

from quarterdeck.backend.core.events import ListInstalled


class JournalCompleteness:
    """Whether the records of all lives are there, each from its first on. Told of them in the order of the run."""

    def __init__(self) -> None:
        self._latest: dict[str, int] = {}
        self._gap = ""
        self._members: dict[str, str] = {}
        self._lists: set[tuple[str, int]] = set()

    def number(self, uuid: str, member: str, seq: int) -> None:
        """The next record of a life has this number."""
        before = self._latest.get(uuid, 0)
        self._latest[uuid] = seq
        if seq > before + 1 and not self._gap:
            self._gap = f"events of {member} before its event {seq} are missing"

    def listed(self, event: ListInstalled) -> None:
        """A list names the lives of which there must be records."""
        if (event.lineage, event.version) not in self._lists:
            self._lists.add((event.lineage, event.version))
            self._members.update((member.uuid, member.address) for member in event.members)

    def unreadable(self, member: str, seq: int, problem: str) -> None:
        """The record is there and cannot be understood."""
        self._gap = self._gap or f"event {seq} of {member} is not as this version knows it: {problem}"

    def missing_part(self) -> str:
        """What is missing, in words; empty when nothing is."""
        silent = sorted(address for uuid, address in self._members.items() if uuid not in self._latest)
        return self._gap or (f"nothing is there of {', '.join(silent[:3])}, on a list" if silent else "")
