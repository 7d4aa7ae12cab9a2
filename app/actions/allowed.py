"""Which actions there are on a cluster: what may be done to it, and what its members can do at all."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.app.actions.action import Action, CommandWord
from quarterdeck.backend.clusters.cluster import Cluster
from quarterdeck.backend.clusters.limits import lacks_of
from quarterdeck.backend.core.commands.catalogue import commands_of_word


@dataclass(frozen=True)
class Allowed:
    """What a cluster allows. Other actions are not bound, not offered, and refused when they are typed."""

    writable: bool = True
    lacks: frozenset[str] = frozenset()
    """What the cluster cannot do, as `LimitedCluster.lacks` has it."""

    def has(self, action: Action) -> bool:
        """Whether there is this action. One with several commands is there as long as the cluster can do one of them."""
        if action.needs_write and not self.writable:
            return False
        return not self.lacks or not action.needs or not action.needs <= self.lacks

    def knows(self, word: CommandWord) -> bool:
        """Whether the cluster can do what this word of an action means."""
        meant = {one.tag for one in commands_of_word(word.word)} if word.takes == "command" else set()
        return not meant or not meant <= self.lacks


EVERYTHING = Allowed()
READ_ONLY = Allowed(writable=False)


def allowed_on(cluster: Cluster) -> Allowed:
    """What `cluster` allows now."""
    return Allowed(cluster.writable, lacks_of(cluster))
