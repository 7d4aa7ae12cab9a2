"""A table of all that was done to a cluster from outside, from its beginning to its end."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.tables.columns import of_kind, schema, shaped

FAULTS = schema(
    """
    run
    fault string kill, pause or link
    member string label of the member that was killed or paused; null for a link
    source string label of the member from which the link leads
    target string label of the member to which the link leads
    from_at bigint microseconds on the run's clock
    to_at bigint when it was mended or changed; null while it lasted, and for a kill
    blocked string blackhole or reset; empty while the link only got worse
    delay bigint microseconds added to each message
    loss double probability that a message is dropped
    duplicate double probability that a message arrives twice
    dropped_kinds array<string> kinds of messages that are dropped always
    worse_kinds array<string> kinds of messages that are delayed, lost, doubled or held apart from others
    """
)

HEALTHY = (
    "event.blocked = '' AND event.delay = 0 AND event.loss = 0 AND event.duplicate = 0 AND size(event.dropped_kinds) = 0"
    " AND coalesce(event.delay_up_to, 0) = 0 AND size(worse_kinds) = 0"
)


def faults(events: DataFrame) -> DataFrame:
    """Make one row for each kill, pause and condition of a link."""
    of_member = Window.partitionBy("run", "event.target").orderBy("at", "seq")
    of_members = (
        events.where(of_kind("process-paused", "process-resumed", "process-killed"))
        .withColumn("next_at", F.lead("at").over(of_member))
        .where(~of_kind("process-resumed"))
        .withColumn("fault", F.when(of_kind("process-killed"), "kill").otherwise("pause"))
        .selectExpr(
            *("run", "fault", "event.target AS member", "at AS from_at", "if(fault = 'pause', next_at, NULL) AS to_at"),
            *(f"NULL AS {name}" for name in ("source", "target", *FAULTS.names[7:])),
        )
    )
    of_link = Window.partitionBy("run", "event.source", "event.target").orderBy("at", "seq")
    of_links = (
        events.where(of_kind("link-changed"))
        .withColumn("to_at", F.lead("at").over(of_link))
        .withColumn("worse_kinds", F.expr("coalesce(event.of_kinds.kind, array())"))
        .where(f"NOT ({HEALTHY})")
        .selectExpr(
            *("run", "'link' AS fault", "NULL AS member", "event.source", "event.target", "at AS from_at", "to_at"),
            *("event.blocked", "event.delay", "event.loss", "event.duplicate", "event.dropped_kinds", "worse_kinds"),
        )
    )
    return shaped(of_members, FAULTS).unionByName(shaped(of_links, FAULTS))
