"""Whether the migrations that masters lead go on, stand still, or are not known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.judgement.conclusion import Answer
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import not_told
from quarterdeck.backend.picture.text.formatting import age_text, counted

STUCK_US = 30 * SECOND_US
"""The time without a beginning or an end after which migrations count as standing still."""


class RoundProgress(NamedTuple):
    """Whether the migrations that one master leads stand still, in an answer and in words."""

    master: str
    stands_still: Answer
    text: str
    since_us: int | None = None
    """The last beginning or end of a migration, or the end of the round."""


def migration_progress(agreement: ListAgreement) -> Iterator[RoundProgress]:
    """Yield for each master whether its migrations stand still."""
    picture, now_us = agreement.picture, agreement.now_us
    for master in agreement.masters:
        if master.shows("migration-queue"):
            yield _by_queue(picture, master, now_us)
        else:
            yield _as_witnessed(picture, master, now_us)


def _by_queue(picture: Picture, master: MemberBelief, now_us: int) -> RoundProgress:
    leading, history = master.leading, picture.history
    if leading.recovering is not None:
        since_us = leading.recovering.since_us
        return _judged(master, "the latest partition table is being searched", since_us, now_us)
    left = leading.waiting + len(leading.running)
    if not left:
        ended = f"none is planned or runs, {history.done_count} done and {history.failed_count} failed in this run"
        known = history.done_count + history.failed_count
        return RoundProgress(master.label, "no", ended if known else "nothing has migrated")
    ended_us = [end.at_us for ends in (history.done, history.failed) for end in ends if end.leader == master.label]
    began_us = [running.since_us for running in leading.running.values()]
    text = f"{len(leading.running)} migrating, {leading.waiting} planned"
    return _judged(master, text, max([*ended_us, *began_us], default=master.list_since_us), now_us)


def _as_witnessed(picture: Picture, master: MemberBelief, now_us: int) -> RoundProgress:
    waiting = None if master.metrics is None else master.metrics.queued_migrations
    latest = next((end for end in reversed(picture.history.witnessed) if end.teller == master.label), None)
    if latest is None and not waiting:
        known = waiting is not None or master.shows("migration-ends")
        text = "no migration was seen to end" if known else not_told("migration-ends", master.witnessed_by)
        return RoundProgress(master.label, "unknown" if waiting is None else "no", text)
    if latest is None:
        return RoundProgress(master.label, "unknown", f"{counted(waiting or 0, 'task')} in the migration queue")
    migrated, quiet_us = latest.migrated, max(now_us - latest.at_us, 0)
    if migrated.done_count >= migrated.planned_count or waiting == 0:
        text = f"all {migrated.planned_count} of the last round are done, {age_text(quiet_us)} ago"
        return RoundProgress(master.label, "no", text, latest.at_us)
    text = (
        f"{migrated.done_count} of {migrated.planned_count} done, the last {age_text(quiet_us)} ago at {latest.teller}"
    )
    return _judged(master, text, latest.at_us, now_us)


def _judged(master: MemberBelief, text: str, since_us: int, now_us: int) -> RoundProgress:
    return RoundProgress(master.label, "yes" if now_us - since_us >= STUCK_US else "no", text, since_us)
