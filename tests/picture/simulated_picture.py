"""A simulated cluster that folds its own records into a picture, for boards that are compared with what really happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quarterdeck.backend.core.commands import ArrangePartitions, Command, StartMember
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US, PropertyValue, Settings
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.simulation.virtual_time.world import World


class SimulatedPicture:
    """Members called A, B, C and so on, formed one by one in that order, under the training settings."""

    def __init__(
        self,
        size: int,
        *,
        seed: int = 1,
        properties: Mapping[str, PropertyValue] | None = None,
        lite: Sequence[str] = (),
        zones: Mapping[str, str] | None = None,
    ) -> None:
        self.picture = Picture()
        self.records: list[Record] = []
        self.labels = tuple(chr(ord("A") + place) for place in range(size))
        settings = Settings.of(properties or {}, preset="training")
        self.world = World(
            self.labels,
            seed=seed,
            settings=settings,
            on_record=self._take,
            lite=tuple(lite),
            zones=zones,
            elide_heartbeats=True,
        )
        for label in self.labels:
            self.do(StartMember(label))
            while not self.picture.members[label].version:
                self.pass_seconds(0.1)
        self.pass_seconds(1)

    def arrange(self) -> None:
        """Spread the partitions, and let everybody hear of it."""
        self.do(ArrangePartitions("A"))
        self.pass_seconds(5)

    def do(self, *commands: Command) -> None:
        for command in commands:
            self.world.execute(command)

    def pass_seconds(self, seconds: float) -> None:
        self.world.run_until(self.world.now_us + round(seconds * SECOND_US))

    @property
    def now_us(self) -> int:
        return self.world.now_us

    def lists(self) -> dict[frozenset[str], str]:
        """The lists that running members hold, with the master of each."""
        found = {}
        for belief in self.picture.members.values():
            if belief.running:
                labels = frozenset(self.picture.label_of(member.address) for member in belief.members)
                found[labels] = self.picture.label_of(belief.master) if belief.master else ""
        return found

    def _take(self, record: Record) -> None:
        self.records.append(record)
        self.picture.apply(record)
