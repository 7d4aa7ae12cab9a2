"""Those who watch a simulated run, each of whom sees less than the simulator, and each through the product's own code."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Protocol

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionChanged
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.watcher import WATCHES_ALL, Missed, Watcher
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.simulation.virtual_time.world import World

MEASURED_WITHIN_US = 5 * SECOND_US
"""Members of ours measure their entries so often, and report what has changed."""


class RunWatcher(Protocol):
    """Watches a run."""

    name: str
    late_us: int
    """Within this time it hears of a change."""
    every: int
    """It is judged at every such moment: at all of them where it is 1."""
    measured_us: int
    """What it knows of entries is so old, at most, besides that."""
    sees_links: bool
    sees_backups: bool

    def take(self, record: Record) -> None:
        """Take in a record at the moment at which it is made."""
        ...

    def look(self, world: World) -> None:
        """Look at the world as far as this watcher can, a few times a second."""
        ...

    def judge(self, now_us: int) -> Judge: ...

    def label_of(self, name: str) -> str:
        """Return the simulator's label of a member in the picture."""
        ...


class WholeStream:
    """Hears every record at once: the console of a simulated or local cluster. `picture` is folded by the run itself."""

    name = "stream"
    late_us, every = 0, 1
    measured_us = MEASURED_WITHIN_US
    sees_links = sees_backups = True

    def __init__(self, picture: Picture) -> None:
        self._picture = picture

    def take(self, record: Record) -> None:
        """Take in nothing: the run folds its picture."""

    def look(self, world: World) -> None:
        """Look at nothing but the records."""

    def judge(self, now_us: int) -> Judge:
        return Judge(self._picture, WATCHES_ALL, now_us)

    def label_of(self, name: str) -> str:
        return name


CUT_PROBABILITY = 0.004
"""That the watcher loses a member at a look."""
CUT_SECONDS = (0.3, 25.0)
NOTICED_US = 2 * SECOND_US
"""A connection that is silent is noticed so late."""


class _MemberStream:
    """The stream of one member: what it has recorded and the watcher has not received."""

    def __init__(self) -> None:
        self.waiting: deque[Record] = deque()
        self.cut_until_us = 0
        self.silent_since_us: int | None = None
        self.missed: Missed | None = None
        self.latest: Record | None = None


class CutStreams:
    """Follows the members' own streams from outside: it is cut from some for a while, then from others, and sees no process."""

    name = "cut streams"
    late_us, every = NOTICED_US + SECOND_US, 1
    measured_us = MEASURED_WITHIN_US
    sees_links, sees_backups = False, True

    def __init__(self, seed: int) -> None:
        self._draws = Random(f"{seed}/cut streams")
        self._picture = Picture()
        self._streams: dict[str, _MemberStream] = {}
        self._records = 0

    def take(self, record: Record) -> None:
        """Take in a member's own record, unless the watcher is cut from the member: then later."""
        if not record.member or record.member == record.run or not record.uuid:
            return
        if record.uuid == record.run:
            return  # what an operator or the network did
        stream = self._streams.setdefault(record.member, _MemberStream())
        if stream.waiting or stream.missed is not None or record.at < stream.cut_until_us:
            stream.waiting.append(record)
        else:
            self._apply(stream, record)

    def look(self, world: World) -> None:
        """Lose a connection now and then, notice those that are silent or refused, and receive what has waited."""
        now_us = world.now_us
        for label, stream in self._streams.items():
            node = world.nodes[label]
            if stream.cut_until_us <= now_us and self._draws.random() < CUT_PROBABILITY:
                fewest, most = CUT_SECONDS
                stream.cut_until_us = now_us + int(fewest * (most / fewest) ** self._draws.random() * SECOND_US)
            is_cut = now_us < stream.cut_until_us
            if is_cut or node.paused:
                stream.silent_since_us = now_us if stream.silent_since_us is None else stream.silent_since_us
                if now_us - stream.silent_since_us >= NOTICED_US:
                    self._lose(label, stream, now_us, has_ended=False)
            elif node.machine is None:
                self._receive(stream)
                self._lose(label, stream, now_us, has_ended=True)
            else:
                stream.silent_since_us = None
                if stream.missed is not None:
                    stream.missed = None
                    self._connection(stream, label, ConnectionChanged("connected"), now_us)
                self._receive(stream)

    def judge(self, now_us: int) -> Judge:
        missed = {label: stream.missed for label, stream in self._streams.items() if stream.missed is not None}
        return Judge(self._picture, Watcher(missed), now_us)

    def label_of(self, name: str) -> str:
        return name

    def _receive(self, stream: _MemberStream) -> None:
        while stream.waiting:
            self._apply(stream, stream.waiting.popleft())

    def _apply(self, stream: _MemberStream, record: Record) -> None:
        stream.latest = record
        self._picture.apply(record)

    def _lose(self, label: str, stream: _MemberStream, now_us: int, *, has_ended: bool) -> None:
        if stream.missed is not None and stream.missed.has_ended == has_ended:
            return
        since_us = now_us if stream.missed is None else stream.missed.since_us
        stream.missed = Missed(since_us, has_ended, reason="connection refused" if has_ended else "silent")
        self._connection(stream, label, ConnectionChanged("gone" if has_ended else "silent"), now_us)

    def _connection(self, stream: _MemberStream, label: str, event: ConnectionChanged, now_us: int) -> None:
        if stream.latest is not None:
            self._records += 1
            record = stream.latest
            self._picture.apply(
                Record(record.run, label, "watcher", self._records, now_us, record.utc + now_us - record.at, event)
            )
