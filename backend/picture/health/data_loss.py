"""Which data a cluster has lost: partitions, maps, about how many entries, when, and after which members went."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import ALL_LOST, lost_partitions_text
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.fold.losses import SideLoss
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import age_text, counted, listed, one_line

MEMBERS_NAMED = 3


class DataLoss(Struct, frozen=True):
    """What one side of a cluster has lost, as its master and its witness judge."""

    side: str
    """The label of the master."""
    partitions: int
    maps: tuple[str, ...]
    """By name or pattern, where their configuration is known."""
    at_most_backups: int | None
    """Maps with at most so many backups have lost entries; None where no replica was left, whatever a map has."""
    entries: int | None
    """About how many; None where it is not known."""
    since_us: int
    because_of: tuple[str, ...]
    """The labels of members that were removed shortly before."""
    elsewhere: tuple[str, ...]
    """Those of them that run under another master: their replicas are there."""
    returned: tuple[str, ...] = ()
    """Those of them that merged back and of which it is not known whether their entries came with them."""
    bringing: tuple[str, ...] = ()
    """Those of them whose entries are being merged."""

    @property
    def what(self) -> str:
        backups = ALL_LOST if self.at_most_backups is None else self.at_most_backups
        lost = one_line(lost_partitions_text(self.partitions, backups, self.maps))
        if self.entries is None:
            return lost
        return f"{lost}, about {self.entries:,} entries" if self.entries else f"{lost}, without entries"

    @property
    def why(self) -> str:
        """After which members went; empty where it is not known."""
        return f"after {one_line(listed(self.because_of, MEMBERS_NAMED))} went" if self.because_of else ""

    @property
    def certain(self) -> bool:
        """Whether entries are gone as far as is known: they may have been none, or be on the other side of a split."""
        return self.entries != 0 and not self.elsewhere and not self.returned and not self.bringing

    @property
    def outlook(self) -> str:
        """What became of the entries, and how long this is reported."""
        if self.entries == 0:
            return f"no entries were in them; reported as long as the cluster of {one_line(self.side)} exists"
        if self.elsewhere:
            return (
                f"they may be at {one_line(listed(self.elsewhere, MEMBERS_NAMED))}, under another master; "
                f"reported until all that went have merged their entries"
            )
        if self.bringing:
            return f"{one_line(listed(self.bringing, MEMBERS_NAMED))} merge their entries: how many are gone is not known yet"
        if self.returned:
            back = one_line(listed(self.returned, MEMBERS_NAMED))
            return f"{back} merged back; whether the entries came with that is not reported: count them"
        return f"what they held is gone; reported as long as the cluster of {one_line(self.side)} exists"

    def text(self, now_us: int) -> str:
        """All that is known of the loss."""
        loss_text = f"{self.what}, {age_text(max(now_us - self.since_us, 0))} ago"
        return " ".join(filter(None, (loss_text, self.why)))

    def shorter_texts(self, now_us: int) -> tuple[str, str, str]:
        """Return the same with less and less of it, for where there is little room; the last is only how many partitions."""
        age = f"{age_text(max(now_us - self.since_us, 0))} ago"
        return self.text(now_us), f"{self.what}, {age}", counted(self.partitions, "partition")

    def as_fields(self, now_us: int) -> dict[str, object]:
        return {
            "side": self.side,
            "partitions": self.partitions,
            "maps": list(self.maps),
            "at_most_backups": self.at_most_backups,
            "entries": self.entries,
            "since_seconds": round(max(now_us - self.since_us, 0) / SECOND_US, 1),
            "because_of": list(self.because_of),
            "outlook": self.outlook,
        }


def data_losses(picture: Picture, now_us: int) -> tuple[DataLoss, ...]:
    """Return the losses that members live with at `now_us`, one for each side that has one."""
    found = []
    for side in picture.losses.standing(picture.members.values(), now_us):
        running = {
            belief.uuid for belief in picture.members.values() if belief.running and belief.lineage != side.lineage
        }
        merged = {
            belief.merged_from
            for belief in picture.members.values()
            if belief.witnessed_by and belief.merged_from and belief.lineage == side.lineage
        }
        found.append(
            DataLoss(
                side.side,
                len(side.partitions),
                side.maps,
                None if side.at_most >= ALL_LOST else side.at_most,
                side.entries,
                side.since_us,
                _labels(picture, side, side.because_of),
                _labels(picture, side, [member for member in side.because_of if member.uuid in running]),
                _labels(picture, side, [member for member in side.because_of if member.uuid in merged]),
                _labels(picture, side, side.bringing),
            )
        )
    return tuple(found)


def _labels(picture: Picture, side: SideLoss, members: Iterable[Member]) -> tuple[str, ...]:
    """Return each label once; several incarnations of a member may have gone, also of the present master."""
    labels = dict.fromkeys(picture.label_of(member.address) for member in members)
    return tuple(label for label in labels if label != side.side)
