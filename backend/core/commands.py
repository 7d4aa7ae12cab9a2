"""Everything an operator may do to a cluster, whatever kind of cluster it is (design section 2).

Members go by their labels. Keys, the ``:`` prompt, command lines and scenario steps all become one of these.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

BlockMode = Literal["blackhole", "reset"]


class StartMember(Struct, frozen=True, tag_field="do", tag="start"):
    """Start the member of this label, or start it anew under its old address."""

    member: str


class StopMember(Struct, frozen=True, tag_field="do", tag="stop"):
    """Stop gracefully: the member says goodbye."""

    member: str


class KillMember(Struct, frozen=True, tag_field="do", tag="kill"):
    """End the member without a goodbye."""

    member: str


class PauseMember(Struct, frozen=True, tag_field="do", tag="pause"):
    """Freeze the process: it neither reads nor sends nor looks at the clock."""

    member: str


class ResumeMember(Struct, frozen=True, tag_field="do", tag="resume"):
    member: str


class Partition(Struct, frozen=True, tag_field="do", tag="partition"):
    """Cut every link between members of different groups, both ways. Members named in no group keep all their links."""

    groups: tuple[tuple[str, ...], ...]
    mode: BlockMode = "blackhole"


class CutLink(Struct, frozen=True, tag_field="do", tag="cut"):
    """Cut the links from each source to each target, and back unless `one_way`."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    one_way: bool = False
    mode: BlockMode = "blackhole"


class DelayLink(Struct, frozen=True, tag_field="do", tag="delay"):
    """Add `delay_us` to everything from each source to each target, and back unless `one_way`."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    delay_us: int
    one_way: bool = False


class LoseOnLink(Struct, frozen=True, tag_field="do", tag="lose"):
    """Drop messages from each source to each target with `probability`, and back unless `one_way`."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    probability: float
    one_way: bool = False


class Heal(Struct, frozen=True, tag_field="do", tag="heal"):
    """Remove every link condition."""


class HealLink(Struct, frozen=True, tag_field="do", tag="heal-link"):
    """Remove the conditions of the links between these members, both ways."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]


Command = (
    StartMember
    | StopMember
    | KillMember
    | PauseMember
    | ResumeMember
    | Partition
    | CutLink
    | DelayLink
    | LoseOnLink
    | Heal
    | HealLink
)


class CommandRefused(Exception):
    """The command cannot be done as things stand; the message says why, and nothing was changed."""
