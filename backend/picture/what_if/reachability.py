"""Whose heartbeats reach whom: what the conditions of links, and commands not given yet, do to heartbeats.

Members are places in a row of labels, sets of members are integers with a bit for each. So half of a thousand members cut off
from the other half is a matter of a thousand operations, not of half a million.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quarterdeck.backend.core.commands.commands import Command, CutLink, Heal, HealLink, Partition
from quarterdeck.backend.core.events import LinkChanged
from quarterdeck.backend.core.links import conditions_for
from quarterdeck.backend.core.membership.partial_disconnection.shrinking_graph import vertices_of


def is_dead(condition: LinkChanged) -> bool:
    """Whether no heartbeat ever comes across a link in this condition, nor anything that clears a suspicion."""
    return bool(condition.blocked) or any(one.loss >= 1.0 or one.held for one in conditions_for(condition, ""))


class Reachability:
    """Whom each of `labels` does not hear: `deaf_to[i]` has a bit for each such member. Nobody is deaf to begin with."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self.place_of = {label: place for place, label in enumerate(self.labels)}
        self.cannot_hear = [0] * len(self.labels)
        self._unheard_by = [0] * len(self.labels)
        """The same turned round: who does not hear each of them."""

    def take(self, links: Iterable[LinkChanged]) -> None:
        """The conditions of links as they are now."""
        place_of, cannot_hear, unheard_by = self.place_of, self.cannot_hear, self._unheard_by
        bits = [1 << place for place in range(len(self.labels))]
        for condition in links:
            if is_dead(condition):
                source, target = place_of.get(condition.source), place_of.get(condition.target)
                if source is not None and target is not None:
                    cannot_hear[target] |= bits[source]
                    unheard_by[source] |= bits[target]

    def isolate(self, labels: Iterable[str]) -> None:
        """These neither send nor receive: they stand still or are gone."""
        everybody = (1 << len(self.labels)) - 1
        silent = self.set_of(labels)
        self._cut(silent, everybody)
        self._cut(everybody, silent)

    def do(self, command: Command) -> None:
        """What `command` would change. Commands that cut and heal nothing change nothing here."""
        match command:
            case Partition(groups):
                sides = [self.set_of(group) for group in groups]
                for place, side in enumerate(sides):
                    others = sum(sides[:place]) + sum(sides[place + 1 :])
                    self._cut(side, others)
            case CutLink(sources, targets, one_way):
                self._cut(self.set_of(sources), self.set_of(targets))
                if not one_way:
                    self._cut(self.set_of(targets), self.set_of(sources))
            case HealLink(sources, targets):
                self._join(self.set_of(sources), self.set_of(targets))
                self._join(self.set_of(targets), self.set_of(sources))
            case Heal():
                everybody = (1 << len(self.labels)) - 1
                self._join(everybody, everybody)
            case _:
                pass

    def hears(self, one: int, other: int) -> bool:
        """Whether the member at place `one` hears the one at place `other`."""
        return not self.cannot_hear[one] >> other & 1

    def unlinked_from(self, place: int) -> int:
        """Those with whom the member at `place` has no link that works both ways."""
        return self.cannot_hear[place] | self._unheard_by[place]

    def set_of(self, labels: Iterable[str]) -> int:
        """Members as a set; strangers are left out."""
        found = 0
        for label in labels:
            place = self.place_of.get(label)
            if place is not None:
                found |= 1 << place
        return found

    def names(self, chosen: int) -> tuple[str, ...]:
        """The labels of a set, in order."""
        return tuple(self.labels[place] for place in vertices_of(chosen))

    def _cut(self, sources: int, targets: int) -> None:
        for target in vertices_of(targets):
            self.cannot_hear[target] |= sources & ~(1 << target)
        for source in vertices_of(sources):
            self._unheard_by[source] |= targets & ~(1 << source)

    def _join(self, sources: int, targets: int) -> None:
        for target in vertices_of(targets):
            self.cannot_hear[target] &= ~sources
        for source in vertices_of(sources):
            self._unheard_by[source] &= ~targets
