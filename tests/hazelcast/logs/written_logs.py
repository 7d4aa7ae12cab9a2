"""Logs of members that a test writes, line by line, in the words of the product."""

from pathlib import Path

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.observation import Observation
from quarterdeck.backend.judgement.observations.reader import LogRecords, read_logs

A, B, C, D = (f"10.0.0.{host}:5701" for host in range(1, 5))


def member(host: int, life: str = "a") -> str:
    """Return a member as messages name it."""
    return f"Member [10.0.0.{host}]:5701 - {life * 8}-0000-4000-8000-00000000000{host}"


class Logs:
    """Writes the logs of members, each message at a second of the run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def said(self, second: float, host: int, text: str) -> None:
        stamp = f"2026-11-21 12:{int(second) // 60:02}:{int(second) % 60:02},{round(second % 1 * 1000):03}"
        with (self._folder / f"h{host}.log").open("a") as log:
            log.write(f"{stamp} [ INFO] [c.h.i.c.X]: [10.0.0.{host}]:5701 [dev] [5.3.8] {text}\n")

    def lists(self, second: float, version: int, members: str, readers: str = "") -> None:
        """Such as ``1a2b``: host and incarnation of each, the master first; installed by all, or by these `readers`."""
        for host in readers or members[::2]:
            lines = [
                f"\tMember [10.0.0.{one}]:5701 - {life * 8}-0000-4000-8000-00000000000{one}" + " this" * (one == host)
                for one, life in zip(members[::2], members[1::2], strict=True)
            ]
            block = "\n".join(lines)
            self.said(second, int(host), f"\n\nMembers {{size:{len(lines)}, ver:{version}}} [\n{block}\n]\n")

    def read(self) -> LogRecords:
        return read_logs([self._folder], LogOptions(run="r"))

    def records(self) -> list[Record]:
        """All records, in the order of time."""
        return sorted(self.read().records, key=lambda record: record.at)

    def observed(self) -> list[Observation]:
        return [observation for story in self.read().stories for observation in story.observations]
