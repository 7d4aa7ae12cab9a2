"""Every recording of the project as messages, which can be written again in any form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from quarterdeck.backend.hazelcast.logs.lines.file_splits import SplitCounts, read_split, whole_file
from quarterdeck.backend.hazelcast.logs.lines.layout import PREFIX
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import Message
from quarterdeck.backend.hazelcast.logs.log_files import log_files

LOGS = Path(__file__).parents[1]
KEPT = LOGS.parent / "real" / "kept"


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a member."""

    utc: int
    """Microseconds since 1970."""
    member: str
    cluster: str
    logger: str
    thread: str
    text: str

    @property
    def prefixed(self) -> str:
        """The message with the product's prefix."""
        host, _, port = self.member.rpartition(":")
        return f"[{host.strip('[]')}]:{port} [{self.cluster}] [5.3.8] {self.text}"


Recording = dict[str, list[Said]]
"""By file, what is said in it."""


def _places() -> Iterator[Path]:
    yield from sorted((LOGS / "data").iterdir())
    for place in sorted((LOGS / "public").glob("*/input")):
        yield next((one for one in sorted(place.iterdir()) if one.name in ("a", "28th")), place)
    yield from sorted((LOGS / "excerpts").glob("*.log"))
    yield from sorted(place for place in KEPT.iterdir() if place.is_dir())


def _name(place: Path) -> str:
    inside = place.relative_to(LOGS.parent).parts
    return inside[2]


PLACES = {_name(place): place for place in _places()}


@cache
def recording(name: str) -> Recording:
    """Return what the members of a recording say, in the order in which they say it, a file for each member."""
    by_member: dict[str, list[Said]] = {}
    for file in log_files([PLACES[name]]):
        for found in read_split(whole_file(file), None, SplitCounts()):
            if isinstance(found, Message) and found.member and found.utc is not None:
                text = found.text.rstrip("\n")
                said = Said(found.utc, str(found.member), found.cluster, found.logger, found.thread, text)
                if not PREFIX.search(text):
                    by_member.setdefault(said.member, []).append(said)
    for many in by_member.values():
        many.sort(key=lambda said: said.utc)
    return {f"m{place}.log": many for place, (_, many) in enumerate(sorted(by_member.items()))}
