"""What is known of one member's partitions: its table, what it holds, its part in migrations, and what it leads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from quarterdeck.backend.picture.boards.belief_matrix import DISSENT_GLYPH
from quarterdeck.backend.picture.boards.migration_board import led_by
from quarterdeck.backend.picture.boards.table_agreement import differs_from_master
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_TOLD, Fact, not_told_fact
from quarterdeck.backend.picture.text.formatting import age_text, counted, listed, with_names

PARTITIONS_NAMED = 12
"""How many partitions a fact names before it only counts the rest."""

BACKUPS_EXPLAINED = 3
"""How many backups that are out of step are told of with their reasons."""


def partition_facts(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    """Nothing as long as neither the member nor its master has a table."""
    yield from _table(picture, belief, now_us)
    master = picture.master_of(belief.label)
    if master is not None and belief.address in master.leading.draining:
        since = age_text(now_us - master.leading.draining[belief.address])
        yield Fact("leaves", f"{master.label} moves all data off it since {since}", "warning")
    if belief.taking_part:
        parts = [f"p{one.partition} ({one.endpoint})" for one in belief.taking_part.values()]
        yield Fact("migrates", listed(parts, PARTITIONS_NAMED))
    yield from _out_of_step(picture, belief)
    heading = "leads"
    for text, tone in led_by(picture, belief, now_us) if belief.is_master else ():
        yield Fact(heading, text, tone)
        heading = ""


def _table(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    master = picture.master_of(belief.label)
    differs = differs_from_master(picture, belief, now_us)
    its_master = f"{DISSENT_GLYPH} its master {master.label} has " if master is not None else ""
    table = belief.table
    if table is None and not belief.tells("owners"):
        yield not_told_fact("table", "owners", belief.witnessed_by)
        return
    if table is None:
        if differs and master is not None and master.table is not None:
            yield Fact("table", f"none yet; {its_master}v{master.table.version}", "warning")
        return
    text = f"v{table.version} since {age_text(now_us - table.since_us)} ({table.cause}), digest {table.digest}"
    if not belief.tells("table-version"):
        stamp = f", state stamp {belief.state_stamp}" if belief.state_stamp is not None else ""
        text = f"digest {table.digest}{stamp}, since {age_text(now_us - table.since_us)}; its version is {NOT_TOLD}"
        text += f"; {its_master}digest {master.table.digest}" if differs and master and master.table else ""
    elif differs and master is not None and master.table is not None:
        same = " too, with other content" if master.table.version == table.version else ""
        text += f"; {its_master}v{master.table.version}{same}"
    yield Fact("table", text, "warning" if differs else "plain")
    owned, backed_up = table.owned_by(belief.uuid), table.backed_up_by(belief.uuid)
    backups = (
        f"keeps {counted(backed_up, 'backup')}" if belief.tells("backups") else f"which backups it keeps is {NOT_TOLD}"
    )
    yield Fact("partitions", f"owns {owned} of {table.partitions}, {backups}")


def _out_of_step(picture: Picture, belief: MemberBelief) -> Iterator[Fact]:
    heading = "out of step"
    for behind in islice(belief.out_of_step.values(), BACKUPS_EXPLAINED):
        why = with_names(behind.reason, picture.label_of)
        owner = picture.label_of(behind.owner)
        yield Fact(heading, f"✕ backup of p{behind.partition} with its owner {owner}: {why}", "bad")
        heading = ""
    more = len(belief.out_of_step) - BACKUPS_EXPLAINED
    if more > 0:
        yield Fact("", f"and {counted(more, 'backup')} more", "bad")
