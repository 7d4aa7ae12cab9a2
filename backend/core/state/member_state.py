"""The whole state of a member: its membership, its partitions and its data. It is plain data, which can be kept and compared."""

from __future__ import annotations

from dataclasses import dataclass, field

from quarterdeck.backend.core.data.state import Data
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.partitions.state import Partitions


@dataclass(slots=True)
class MemberState(Membership):
    """Chapters of partitions and data read and change all of it; those of membership are handed it as a `Membership`."""

    partitions: Partitions = field(default_factory=Partitions)
    data: Data = field(default_factory=Data)
