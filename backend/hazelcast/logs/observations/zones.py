"""Members whose clocks are in zones that their logs do not name."""

from __future__ import annotations

from quarterdeck.backend.hazelcast.logs.clock_alignment import AlignedClock
from quarterdeck.backend.hazelcast.logs.observations.observation import EvidenceLine, Observation, lasted

_CAUSE = "The members run in different time zones, and the layout of their logs writes no zone."


def zone_observation(clock: AlignedClock, began_us: int) -> Observation:
    """What was done about the clock of a member, or has to be asked. The clock of the run began at `began_us`."""
    shift_us = clock.ahead_us or 0
    start, end = clock.first_us - shift_us, clock.last_us - shift_us
    if clock.ahead_us is None:
        headline = f"the clock of {clock.member} may be in another zone: its log has nothing in common with the others"
        detail = "Its times lie more than half an hour before or after theirs, and no member list stands in both."
    else:
        way = "ahead of" if clock.ahead_us > 0 else "behind"
        headline = f"the clock of {clock.member} is {lasted(abs(clock.ahead_us))} {way} the others, and was put right"
        detail = f"Told by {clock.lists} member lists that it logged, and others too."
    name = clock.file.rpartition("/")[2] or "FILE"
    return Observation(
        kind="zones-differ",
        run=clock.run,
        start_us=max(0, start - began_us),
        end_us=max(0, end - began_us),
        is_open=False,
        members=(clock.member,),
        headline=headline,
        detail=detail,
        cause=_CAUSE,
        remedy=f"Tell its zone if this is wrong, as with --zone {name}=+05:30, or let the layout write the zone.",
        evidence=(EvidenceLine(clock.file, clock.line, start, clock.member, "the first list that it logged"),),
        evidence_lines=clock.lists,
        start_utc=start,
        end_utc=end,
    )
