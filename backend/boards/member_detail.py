"""Everything known of one member, as facts to paint: a heading and what is to be said under it.

Ages are in whole seconds, so a painter that asks again each second has something new to paint at most then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from quarterdeck.backend.boards.belief_matrix import BELIEF_CELLS, DISSENT_GLYPH, state_word
from quarterdeck.backend.boards.data_board import data_facts
from quarterdeck.backend.boards.member_board import heartbeat, heartbeat_observers
from quarterdeck.backend.boards.migration_board import led_by
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import DataMeasured
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.views.member_list import MemberList, member_list_text
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import LinkMeasured, MemberMeasured
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.judgement.table_agreement import differs_from_master, is_of_one_version
from quarterdeck.backend.picture.events.catalogue import PROCESS_FAULTS, record_words
from quarterdeck.backend.picture.events.faults import condition_text
from quarterdeck.backend.picture.events.membership import VERDICTS
from quarterdeck.backend.picture.events.witnessed import process_text, stands_still, work_text
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Fact, Sign, Tone, not_told_fact, under
from quarterdeck.backend.picture.text.formatting import (
    age_text,
    clock_text,
    counted,
    duration_text,
    listed,
    one_line,
    with_names,
)


def seconds_of_run(at_us: int) -> str:
    """Return a moment in seconds since the run began."""
    return f"{clock_text(at_us).strip()} s"


INDENT = "  "
"""In place of the tabs of the list's text, which terminals set as they like."""


def member_detail(
    picture: Picture,
    label: str,
    now_us: int,
    *,
    recent: Sequence[Record] | None = None,
    listing: bool = True,
    time_of: Callable[[int], str] = seconds_of_run,
) -> tuple[Fact, ...]:
    """Return what `label` believes at `now_us` on the run's clock.

    Without `listing` the member list, a line for each member, is left out. `recent` are records up to then, in order of time, of
    which those of the member are shown, dated by `time_of`.
    """
    belief = picture.members.get(label)
    if belief is None:
        return (Fact("status", "not up: nothing was ever heard of it", "faint"),)
    # Imported for the first member of which something is known: nothing is in the first picture of a new cluster.
    from quarterdeck.backend.boards.join_list_board import join_list_facts

    facts = [
        *_standing(picture, belief, now_us),
        *heartbeat_facts(picture, belief, now_us),
        *_obstacles(picture, belief, now_us),
        *_suspicions(picture, belief, now_us),
        *_disconnections(picture, belief, now_us),
        *_verdicts(picture, belief, now_us),
        *partition_facts(picture, belief, now_us),
        *data_facts(picture, belief, now_us),
        *process_facts(belief, now_us),
        *join_list_facts(picture, belief, now_us),
        *link_facts(picture, belief, now_us),
        *(recent_facts(picture, recent, label, time_of) if recent is not None else ()),
        *(_list_text(belief) if listing else ()),
    ]
    return tuple(Fact(fact.heading, one_line(fact.text), fact.tone, fact.verbatim) for fact in facts)


def _standing(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    state = state_word(belief) or "member"
    follows = "is master" if belief.is_master else ""
    if belief.master and not belief.is_master:
        follows = f"follows {_names(picture, [belief.master])}"
    since = (
        f"list v{belief.version} since {age_text(now_us - belief.list_since_us)}" if belief.version else "no list yet"
    )
    tone: Tone = "plain" if belief.running else "faint" if belief.status in ("stopped", "killed") else "warning"
    yield Fact("status", ", ".join(filter(None, (state, follows, since))), tone)
    if not belief.reached and belief.connection is not None:
        yield Fact("", with_names(belief.connection.reason, picture.label_of), "warning")
    if belief.status in ("paused", "stopped", "killed"):
        yield Fact("", "its last known belief:", "faint")
    place = f"{belief.address or 'address not known'}, uuid {belief.uuid}"
    yield Fact("", f"{place}, since a merge" if belief.merged_from else place)
    if not belief.version:
        return
    if belief.shows("cluster-state"):
        yield Fact("cluster", belief.cluster_state, "plain" if belief.cluster_state == "ACTIVE" else "warning")
    else:
        yield not_told_fact("cluster", "cluster-state", belief.witnessed_by)
    if not belief.shows("data"):
        yield not_told_fact("operations", "data", belief.witnessed_by)
    elif belief.operating:
        yield Fact("operations", "served")
    else:
        seen = f"it sees {len(belief.members)} members and needs {belief.needed}"
        yield Fact("operations", f"✕ refused: {seen}", "bad")


def _obstacles(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    if belief.merging:
        yield Fact("merging", f"into the cluster of {_names(picture, [belief.merging])}", "warning")
    tone: Tone = "warning" if len(ListAgreement(picture).masters) > 1 else "plain"
    reasons = (with_names(obstacle.reason, picture.label_of) for obstacle in belief.obstacles.values())
    yield from under("not merging", reasons, tone)
    if belief.delay is not None:
        delayed_by, links_to = _names(picture, [belief.delay.master]), _names(picture, belief.delay.missing)
        left_us = belief.delay.until_us - now_us
        again = f"; tries again in {age_text(left_us)}" if left_us > 0 else ""
        text = f"{delayed_by} lets it in when its links to {links_to} are proven{again}"
        yield Fact("waits", text, "warning")
    held = (
        f"{BELIEF_CELLS['held'].glyph} {picture.label_of(address)}, "
        f"until {f'its links to {_names(picture, missing)}' if missing else 'all its links'} are proven both ways"
        for address, missing in belief.held_back.items()
    )
    yield from under("holds back", held, "warning")


def _suspicions(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    suspects = (
        f"{BELIEF_CELLS['suspected'].glyph} {picture.label_of(address)} since {age_text(now_us - suspected.since_us)}: "
        f"{with_names(suspected.reason, picture.label_of)}"
        for address, suspected in belief.suspicions.items()
    )
    yield from under("suspects", suspects, "warning")
    if not belief.suspicions:
        known = belief.shows("suspicions")
        yield Fact("suspects", "none") if known else not_told_fact("suspects", "suspicions", belief.witnessed_by)


def _disconnections(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    reports = (
        f"{picture.label_of(reporter)} cannot reach {_names(picture, suspects)}; not settled yet"
        for reporter, suspects in belief.reports.items()
    )
    yield from under("reports", reports, "warning")
    if belief.resolution is not None:
        settled = belief.resolution
        proven = "" if settled.exact else ", the best found in time"
        text = (
            f"{age_text(now_us - settled.at_us)} ago{proven}: kept {_names(picture, settled.keep)}; "
            f"removed {_names(picture, settled.remove)}: {with_names(settled.why, picture.label_of)}"
        )
        yield Fact("settled", text)


def _verdicts(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    met = (
        f"{picture.label_of(remote)}, {age_text(now_us - verdict.since_us)} ago: "
        f"{VERDICTS[verdict.decision]} ({verdict.rule}: {with_names(verdict.why, picture.label_of)})"
        for remote, verdict in belief.verdicts.items()
    )
    yield from under("met", met)


def _list_text(belief: MemberBelief) -> Iterator[Fact]:
    if belief.members:
        text = member_list_text(MemberList(belief.version, belief.members, belief.lineage), belief.uuid)
        for line in text.split("\n"):
            yield Fact("", line.replace("\t", INDENT), verbatim=True)


def _names(picture: Picture, addresses: Iterable[Address]) -> str:
    return ", ".join(picture.label_of(address) for address in addresses) or "none"


HEARTBEATS_LATE_US = 6 * SECOND_US
"""By default members send heartbeats every 5 seconds."""


def process_facts(belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    """Yield heap, garbage, processor, files, queues, clients, heartbeats sent and CP groups, and how old that is."""
    measured = belief.metrics
    if measured is None:
        return
    process = process_text(measured)
    since = f" (much the same for {age_text(now_us - belief.metrics_us)})"
    if process:
        still = "; its silence is no sign of a cut" if stands_still(measured) else ""
        yield Fact("process", f"{process}{still}{since}", "warning" if still else "plain")
    work = work_text(measured)
    if work:
        yield Fact("work", f"{work}{'' if process else since}")
    age = measured.heartbeat_age
    if age is not None:
        text = f"it sent its last {duration_text(age)} before its metrics; who received it is not reported"
        yield Fact("sends heartbeats", text, "warning" if age > HEARTBEATS_LATE_US else "plain")
    if measured.cp_groups or measured.cp_missing:
        missing = f", {counted(measured.cp_missing, 'CP member')} missing" if measured.cp_missing else ""
        groups = "CP groups" if measured.cp_groups is None else counted(measured.cp_groups, "CP group")
        yield Fact("CP", f"{groups}{missing}", "warning" if missing else "plain")


EVENTS_TOLD = 20
MEASUREMENTS = (DataMeasured, MemberMeasured)
"""What they say stands under its own headings, and would leave no room for anything else."""


def recent_facts(
    picture: Picture, records: Sequence[Record], label: str, time_of: Callable[[int], str]
) -> Iterator[Fact]:
    """Yield the last `EVENTS_TOLD` events of a member among `records`, which stand in order of time.

    They have their moment, not their age: what has not changed is not painted again.
    """
    own = (
        record
        for record in reversed(records)
        if (record.member == label and type(record.event) not in MEASUREMENTS)
        or (type(record.event) in PROCESS_FAULTS and record.event.target == label)  # type: ignore[union-attr]
    )
    shown, name_of = islice(own, EVENTS_TOLD), picture.label_of
    said = [f"{time_of(record.at)}: {record_words(record, name_of)}" for record in shown]
    yield from under("lately", said or ["nothing that is still remembered"], "faint")


LINKS_SPELT_OUT = 12
"""How many links are named before the rest is only counted."""


def heartbeat_facts(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    """How the others hear it, and whom it waits for."""
    heard = heartbeat(picture, belief, heartbeat_observers(picture), now_us)
    if heard.left_us is not None:
        yield Fact("heartbeat", f"{heard.glyph} {heard.sentence}", heard.tone)
    elif not heard.known:
        yield not_told_fact("heartbeat", "heartbeats", belief.witnessed_by)
    waits = (
        f"◔ {picture.label_of(address)}, silent for {age_text(now_us - silence.heard_us)}"
        + ("" if (left_us := silence.left_us(now_us)) is None else f"; suspects it in {age_text(left_us)}")
        for address, silence in belief.silences.items()
    )
    yield from under("waits for", waits, "warning")


def link_facts(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    """Its links that are not plain, both ways. What is wrong with a link is known when a command made it so."""
    ends = belief.label
    touched = [link for (source, target), link in picture.links.items() if ends in (source, target)]
    others = sum(other.running and other is not belief for other in picture.members.values())
    if belief.metrics is not None and belief.metrics.strained_links is not None:
        yield from _measured_links(picture, belief.metrics.strained_links, now_us - belief.metrics_us)
        return
    if not touched and not belief.shows("links"):
        yield not_told_fact("links", "links", belief.witnessed_by)
        return
    if not touched:
        yield Fact("links", f"✓ up, to {counted(others, 'running member')}: none is cut, slowed down or lossy")
        return
    wrong: list[tuple[str, Tone]] = []
    for link in touched[:LINKS_SPELT_OUT]:
        way = f"→ {link.target}" if link.source == ends else f"← {link.source}"
        sign = Sign("✂", "bad") if link.blocked else Sign("~", "warning")
        wrong.append((f"{sign.glyph} {way} {condition_text(link)}", sign.tone))
    yield from under("links", wrong)
    if len(touched) > LINKS_SPELT_OUT:
        yield Fact("", f"and {len(touched) - LINKS_SPELT_OUT} more")


def _measured_links(picture: Picture, strained: tuple[LinkMeasured, ...], age_us: int) -> Iterator[Fact]:
    since = f"by its metrics, much the same for {age_text(age_us)}; what arrives is not reported"
    if not strained:
        yield Fact("links", f"✓ it writes to every member to which it has connections ({since})")
    said = []
    for link in strained[:LINKS_SPELT_OUT]:
        idle = f"nothing written for {duration_text(link.idle)}" if link.idle is not None else ""
        queued = f"{counted(link.queued, 'packet')} waiting" if link.queued else ""
        text = ", ".join(filter(None, (idle, queued))) if link.connections else "its connections are gone"
        said.append(f"~ → {picture.label_of(link.address)} {text}")
    yield from under("links", said, "warning")
    if strained:
        more = f"and {len(strained) - LINKS_SPELT_OUT} more, " if len(strained) > LINKS_SPELT_OUT else ""
        yield Fact("", more + since, "faint")


PARTITIONS_NAMED = 12
"""How many partitions a fact names before it only counts the rest."""

BACKUPS_EXPLAINED = 3
"""How many backups that are out of step are named with their reasons."""


def partition_facts(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    """Nothing as long as neither the member nor its master has a table."""
    yield from _table(picture, belief, now_us)
    master = picture.master_of(belief.label)
    if master is not None and belief.address in master.leading.draining:
        since = age_text(now_us - master.leading.draining[belief.address])
        yield Fact("leaves", f"{master.label} moves all data off it since {since}", "warning")
    if belief.taking_part:
        parts = [f"p{accepted.partition} ({accepted.endpoint})" for accepted in belief.taking_part.values()]
        yield Fact("migrates", listed(parts, PARTITIONS_NAMED))
    yield from _out_of_step(picture, belief)
    if belief.is_master:
        yield from under("leads", led_by(picture, belief, now_us))


def _table(picture: Picture, belief: MemberBelief, now_us: int) -> Iterator[Fact]:
    master = picture.master_of(belief.label)
    differs = differs_from_master(picture, belief, now_us)
    its_master = f"{DISSENT_GLYPH} its master {master.label} has " if master is not None else ""
    table = belief.table
    if table is None and not belief.shows("owners"):
        yield not_told_fact("table", "owners", belief.witnessed_by)
        return
    if table is None:
        if differs and master is not None and master.table is not None:
            yield Fact("table", f"none yet; {its_master}v{master.table.version}", "warning")
        return
    age = age_text(now_us - table.since_us)
    text = f"v{table.version} since {age} ({table.cause}), digest {table.digest} (the same for equal tables)"
    if not belief.shows("table-version"):
        stamp = f", state stamp {belief.state_stamp}" if belief.state_stamp is not None else ""
        text = f"digest {table.digest}{stamp}, since {age}; its version is {NOT_REPORTED}"
        text += f"; {its_master}digest {master.table.digest}" if differs and master and master.table else ""
    elif differs and master is not None and master.table is not None:
        same = " too, with other content" if is_of_one_version(master.table, table) else ""
        text += f"; {its_master}v{master.table.version}{same}"
    yield Fact("table", text, "warning" if differs else "plain")
    if belief.shows("backups"):
        backups = f"keeps {counted(table.backed_up_by(belief.uuid), 'backup')}"
    else:
        backups = f"which backups it keeps is {NOT_REPORTED}"
    yield Fact("partitions", f"owns {table.owned_by(belief.uuid)} of {table.partitions}, {backups}")


def _out_of_step(picture: Picture, belief: MemberBelief) -> Iterator[Fact]:
    said = [
        f"✕ backup of p{behind.partition} with its owner {picture.label_of(behind.owner)}: "
        f"{with_names(behind.reason, picture.label_of)}"
        for behind in islice(belief.out_of_step.values(), BACKUPS_EXPLAINED)
    ]
    more = len(belief.out_of_step) - BACKUPS_EXPLAINED
    if more > 0:
        said.append(f"and {counted(more, 'backup')} more")
    yield from under("out of step", said, "bad")
