"""Network faults worth a try, made for any cluster: each gives the commands that make it. Pure: labels in, commands out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from quarterdeck.backend.core.commands.commands import BlockMode, CutLink, Partition
from quarterdeck.backend.picture.text.refusal import Refusal

PresetName = Literal["halves", "isolate", "bridge", "ring", "racks"]

PRESET_NAMES: tuple[PresetName, ...] = get_args(PresetName)

MOST_SIDES = 4
"""So many sides can be made by hand."""

MEANINGS: dict[PresetName, str] = {
    "halves": "the older half and the younger half lose each other",
    "isolate": "one member loses all others",
    "bridge": "two halves lose each other, and one member sees both",
    "ring": "every member sees a majority, and no two the same one",
    "racks": "all racks but the first lose one another; the first sees all (Partial Member Disconnection Resolution)",
}


class NoSuchFault(Refusal):
    """The members at hand do not make this fault. The message says why."""


class FaultPlan(Struct, frozen=True):
    """A fault that is not made yet."""

    title: str
    """What it is, in a few words."""
    sides: tuple[tuple[str, ...], ...]
    """Labels side by side, to show; who stands in none keeps all links. Empty where sides are not the point."""
    commands: tuple[Partition | CutLink, ...]

    def cutting_by(self, mode: BlockMode) -> FaultPlan:
        """Return the same fault, made in another way."""
        return replace(self, commands=tuple(replace(command, mode=mode) for command in self.commands))


def preset(
    name: PresetName,
    labels: Sequence[str],
    *,
    member: str = "",
    racks: int = 0,
    zones: Mapping[str, str] | None = None,
    mode: BlockMode = "blackhole",
) -> FaultPlan:
    """Return the fault called `name` among `labels`, in order of age with the master first.

    `member` is isolated, or is the bridge: the youngest if none is named. Racks are the `zones` of the members where those are
    known and no number of `racks` is asked for; else as many even ones, three by default.

    Raises:
        NoSuchFault: There is no such fault among these members.
    """
    chosen = member or (labels[-1] if labels else "")
    if member and member not in labels:
        raise NoSuchFault(f"{member} is not among the running members")
    match name:
        case "halves":
            _need(labels, 2, "halves")
            sides = _halves(labels)
            return _partition("halves", sides, mode)
        case "isolate":
            _need(labels, 2, "an isolated member")
            rest = tuple(label for label in labels if label != chosen)
            return _partition(f"isolate {chosen}", (rest, (chosen,)), mode)
        case "bridge":
            _need(labels, 3, "a bridge and two sides")
            sides = _halves([label for label in labels if label != chosen])
            return _partition(f"bridge {chosen}", sides, mode)
        case "ring":
            _need(labels, 4, "a ring")
            return FaultPlan("ring of majorities", (), _ring(labels, mode))
        case "racks":
            return _racks(labels, racks, zones or {}, mode)


def custom_fault(sides: Sequence[Sequence[str]], mode: BlockMode = "blackhole") -> FaultPlan:
    """Return the partition of sides put together by hand; empty sides do not count.

    Raises:
        NoSuchFault: There are fewer than two sides.
    """
    filled = tuple(tuple(side) for side in sides if side)
    if len(filled) < 2:
        raise NoSuchFault("one side is no partition; put members on two sides or more")
    return _partition("partition", filled, mode)


def majority_reach(count: int) -> int:
    """How many members to either side each of `count` in a ring has to see, to see just a majority with itself."""
    majority = count // 2 + 1
    return majority // 2  # rounded up: 2 * reach + 1 >= majority


def _ring(labels: Sequence[str], mode: BlockMode) -> tuple[CutLink, ...]:
    count, reach = len(labels), majority_reach(len(labels))
    cuts = []
    for place, label in enumerate(labels):
        far = tuple(
            labels[other] for other in range(place + 1, count) if min(other - place, count - other + place) > reach
        )
        if far:
            cuts.append(CutLink((label,), far, mode=mode))
    return tuple(cuts)


def _racks(labels: Sequence[str], racks: int, zones: Mapping[str, str], mode: BlockMode) -> FaultPlan:
    by_zone: dict[str, list[str]] = {}
    if not racks:
        for label in labels:
            if zones.get(label):
                by_zone.setdefault(zones[label], []).append(label)
    if len(by_zone) >= 2:
        standing = [tuple(rack) for rack in by_zone.values()]
        title = f"racks by zone: {', '.join(by_zone)}"
    else:
        wanted = racks or 3
        if wanted < 2:
            raise NoSuchFault(f"{wanted} is too few; two racks at least can lose each other")
        _need(labels, wanted, f"{wanted} racks")
        standing = [tuple(labels[_share(labels, wanted, rack)]) for rack in range(wanted)]
        title = f"{wanted} racks"
    apart = standing[1:] if len(standing) > 2 else standing
    return _partition(title, tuple(apart), mode)


def _share(labels: Sequence[str], racks: int, rack: int) -> slice:
    """Even shares in a row; the first ones are greater by one where it does not come out even."""
    return slice(-(-len(labels) * rack // racks), -(-len(labels) * (rack + 1) // racks))


def _halves(labels: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    middle = (len(labels) + 1) // 2
    return tuple(labels[:middle]), tuple(labels[middle:])


def _partition(title: str, sides: tuple[tuple[str, ...], ...], mode: BlockMode) -> FaultPlan:
    return FaultPlan(title, sides, (Partition(sides, mode),))


def _need(labels: Sequence[str], least: int, what: str) -> None:
    if len(labels) < least:
        raise NoSuchFault(f"{what} takes {least} running members at least, and there are {len(labels)}")
