"""Data as a table: what is stored and what is asked, by member, by map or by partition; and which backups lag."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple, get_args

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.member_data import NO_RATE, NOTHING, Answered, Lag, Rate, Stored, answered
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Fact, Tone, not_told_fact, under
from quarterdeck.backend.picture.text.formatting import bytes_text, counted, duration_text, one_line

Grouping = Literal["member", "map", "partition"]

GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)

LAGS_NAMED = 3


class DataRow(NamedTuple):
    """One member, map or partition. Where nothing is known, `missing` says how that is written."""

    name: str
    owner: str
    """Of a partition; of a map the master of the cluster, where there are several clusters."""
    entries: int | None
    bytes: int | None
    rate: Rate | None
    backup_entries: int | None = None
    backup_bytes: int | None = None
    backup_rate: float | None = None
    behind: int = 0
    """Of a partition the writes that some backup lacks; of a member those that it lacks as a backup."""
    oldest_us: int = 0
    """How long the oldest of them has waited."""
    missing: str = ""
    answered: Answered = Answered()
    """Of a member or a map."""

    @property
    def lag(self) -> str:
        """The writes and the age in words; empty when there is no lag."""
        return f"{counted(self.behind, 'write')}, {duration_text(self.oldest_us)}" if self.behind else ""

    @property
    def tone(self) -> Tone:
        return "warning" if self.behind else "plain"


NOTHING_SAID = "–"
"""Of a member that has reported nothing: it has nothing, or its journal is older than reports of data."""


def rate_text(rate: float) -> str:
    """Operations a second, to three figures; a dot for none, so that what is busy is seen at once."""
    return "·" if rate == 0 else f"{rate:.3g}" if rate < 999.5 else f"{rate:.0f}"


def data_rows(picture: Picture, grouping: Grouping, now_us: int) -> dict[str, DataRow]:
    """Return the rows by key, in an order that does not change by itself."""
    if grouping == "member":
        return _member_rows(picture, now_us)
    return _map_rows(picture, now_us) if grouping == "map" else _partition_rows(picture, now_us)


def data_sentence(picture: Picture, now_us: int) -> Fact:
    """All of it in a line."""
    owners = list(_owners(picture))
    if not owners:
        unknown = picture.without("data")
        if unknown is not None:
            return not_told_fact("", "data", unknown.witnessed_by)
        return Fact("", "nothing is stored, as far as the members have reported", "faint")
    known = [belief.data or NOTHING for belief in owners]
    rates = [data.rate(now_us) for data in known]
    text = (
        f"{counted(sum(data.entries for data in known), 'key')}, {bytes_text(sum(data.bytes for data in known))}; "
        f"{rate_text(sum(rate.reads for rate in rates))} reads/s, {rate_text(sum(rate.writes for rate in rates))} writes/s"
    )
    lags = lags_of_backups(picture)
    if lags:
        text += f"; {counted(len(lags), 'backup')} behind"
    return Fact("", text, "warning" if lags else "plain")


def data_facts(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    """Yield what one member stores, and what it lags behind; nothing as long as it has reported nothing."""
    data = belief.data
    if data is None:
        return
    rate = data.rate(now_us)
    stored = f"{counted(data.entries, 'key')}, {bytes_text(data.bytes)}"
    backups = f"{counted(data.backup_entries, 'key')}, {bytes_text(data.backup_bytes)} as a backup"
    idle = "nothing is asked of it" if data.span_us else "what is asked of it is not known yet"
    asked = f"{rate_text(rate.reads)} reads/s, {rate_text(rate.writes)} writes/s" if rate else idle
    took = answered_text(answered(data.maps.values(), now_us))
    yield Fact("data", "; ".join(filter(None, (stored, backups, asked, took))))
    waits = (
        f"its backup {picture.label_of(Address(address))} has not confirmed {counted(lag.writes, 'write')} "
        f"for {duration_text(max(now_us - lag.oldest_us, 0))}"
        for address, lag in islice(data.lagging.items(), LAGS_NAMED)
    )
    yield from under("lag", waits, "warning")


def answered_text(found: Answered) -> str:
    """Return it in words; empty where nothing is known."""
    parts = (
        "" if found.hits is None else f"{rate_text(found.hits)} hits/s",
        "" if found.read_us is None else f"a read took {duration_text(round(found.read_us))} in the mean",
        "" if found.write_us is None else f"a write {duration_text(round(found.write_us))}",
        "" if not found.slowest_read_us else f"the slowest read so far {duration_text(found.slowest_read_us)}",
        "" if not found.slowest_write_us else f"the slowest write so far {duration_text(found.slowest_write_us)}",
    )
    return ", ".join(filter(None, parts))


def lags_of_backups(picture: Picture) -> dict[str, Lag]:
    """By address of the backup: how far it is behind all owners together."""
    found: dict[str, Lag] = {}
    for belief in _owners(picture):
        for address, lag in (belief.data or NOTHING).lagging.items():
            known = found.get(address, Lag(0, 0, lag.oldest_us))
            oldest_us = min(known.oldest_us, lag.oldest_us)
            found[address] = Lag(known.partitions + lag.partitions, known.writes + lag.writes, oldest_us)
    return found


def partition_rates(picture: Picture, observer: str, now_us: int) -> dict[int, Rate]:
    """By partition, what is asked of the owner that the table of `observer` names; partitions at rest are left out."""
    belief = picture.members.get(observer)
    if belief is None:
        return {}
    listed = {member.uuid for member in belief.members}
    found: dict[int, Rate] = {}
    for owner in _owners(picture):
        if owner.uuid in listed and owner.data is not None and owner.data.rate(now_us):
            for partition, stored in owner.data.partitions.items():
                rate = stored.rate(now_us)
                if rate and rate.both >= found.get(partition, NO_RATE).both:
                    found[partition] = rate
    return found


def _owners(picture: Picture) -> Iterator[MemberBelief]:
    return (belief for belief in picture.members.values() if belief.running and belief.data is not None)


def _member_rows(picture: Picture, now_us: int) -> dict[str, DataRow]:
    lags, members = lags_of_backups(picture), picture.members.items()
    living = ((label, belief) for label, belief in members if belief.status not in ("stopped", "killed"))
    return {label: _member_row(belief, lags.get(str(belief.address)), now_us) for label, belief in living}


def _member_row(belief: MemberBelief, lag: Lag | None, now_us: int) -> DataRow:
    name = one_line(belief.label)
    behind, age_us = (lag.writes, max(now_us - lag.oldest_us, 0)) if lag is not None else (0, 0)
    data = belief.data
    if data is None:
        missing = NOTHING_SAID if belief.shows("data") else NOT_REPORTED
        return DataRow(name, "", None, None, None, behind=behind, oldest_us=age_us, missing=missing)
    return DataRow(
        name, "", data.entries, data.bytes, data.rate(now_us),
        data.backup_entries, data.backup_bytes, None if belief.witnessed_by else data.backup_rate(now_us), behind, age_us,
        answered=answered(data.maps.values(), now_us),
    )  # fmt: skip


def _map_rows(picture: Picture, now_us: int) -> dict[str, DataRow]:
    split = len(ListAgreement(picture).masters) > 1
    rows: dict[str, DataRow] = {}
    parts: dict[str, list[Stored]] = {}
    for belief in _owners(picture):
        master = picture.master_of(belief.label) if split else None
        side = one_line(master.label) if master is not None else ""
        for name, stored in (belief.data or NOTHING).maps.items():
            key = f"{name}\0{side}"
            row = rows.get(key) or DataRow(one_line(name), side, 0, 0, NO_RATE)
            rate, more = row.rate or NO_RATE, stored.rate(now_us)
            parts.setdefault(key, []).append(stored)
            rows[key] = row._replace(
                entries=(row.entries or 0) + stored.entries,
                bytes=(row.bytes or 0) + stored.bytes,
                rate=Rate(rate.reads + more.reads, rate.writes + more.writes),
            )
    return {
        key: rows[key]._replace(answered=answered(parts[key], now_us))
        for key in sorted(rows)
        if rows[key].entries or rows[key].rate
    }


def _partition_rows(picture: Picture, now_us: int) -> dict[str, DataRow]:
    found: list[tuple[int, str, DataRow]] = []
    for belief in _owners(picture):
        for partition, stored in (belief.data or NOTHING).partitions.items():
            row = DataRow(
                f"p{partition}", one_line(belief.label), stored.entries, stored.bytes, stored.rate(now_us),
                behind=stored.behind, oldest_us=max(now_us - stored.oldest_us, 0) if stored.behind else 0,
            )  # fmt: skip
            found.append((partition, belief.label, row))
    return {f"{partition}\0{label}": row for partition, label, row in sorted(found)}


def partition_text(picture: Picture, owner: str, partition: int, now_us: int) -> str:
    """Return what `owner` stores in a partition and is asked there; empty when it has reported nothing of it."""
    belief = picture.members.get(owner)
    stored = belief.data.partitions.get(partition) if belief is not None and belief.data is not None else None
    if stored is None:
        return ""
    rate = stored.rate(now_us)
    asked = f", {rate_text(rate.reads)} reads/s, {rate_text(rate.writes)} writes/s" if rate else ""
    return f"{counted(stored.entries, 'key')}, {bytes_text(stored.bytes)}{asked}"


HEAT = "0123456789"
"""From at rest to busiest."""


def heat_of(rate: float, greatest: float) -> str:
    """Return a digit for `rate` beside the greatest there is: 0 for none at all, 9 from eight ninths of that on."""
    if rate <= 0 or greatest <= 0:
        return HEAT[0]
    return HEAT[min(len(HEAT) - 1, 1 + int(9 * rate / greatest))]
