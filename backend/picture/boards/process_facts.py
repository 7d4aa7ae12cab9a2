"""What the metrics of a real member say of its process and its work, as facts to paint. What they do not say is left out."""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.events.witnessed import process_text, stands_still, work_text
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import age_text, counted, duration_text

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
        text = f"it sent its last {duration_text(age)} before its metrics; who received it is not told"
        yield Fact("sends heartbeats", text, "warning" if age > HEARTBEATS_LATE_US else "plain")
    if measured.cp_groups or measured.cp_missing:
        missing = f", {counted(measured.cp_missing, 'CP member')} missing" if measured.cp_missing else ""
        groups = "CP groups" if measured.cp_groups is None else counted(measured.cp_groups, "CP group")
        yield Fact("CP", f"{groups}{missing}", "warning" if missing else "plain")
