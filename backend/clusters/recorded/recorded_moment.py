"""A recorded run at one moment: what its members believed and how they were reached, by the evidence up to then only."""

from __future__ import annotations

import time
from collections.abc import Mapping

from quarterdeck.backend.clusters.cluster import ConnectionStatus
from quarterdeck.backend.clusters.recorded.recorded_cluster import MOST_RECORDS, POLL_SECONDS, PastRun
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.replay.tape import Tape

WHY_NOT_REACHED = {"stopped": "it has stopped", "killed": "it was killed", "paused": "it is frozen"}


def picture_at(run: PastRun, at_us: int | None) -> tuple[Picture, int]:
    """Read `run`, and return its picture at a moment, by default its end, and that moment within the run.

    It is the picture that the console shows at this moment of the same recording.
    """
    tape = Tape(MOST_RECORDS)
    while not run.complete:
        fresh = run.drain()
        tape.append(fresh)
        if not fresh:
            time.sleep(POLL_SECONDS)  # logs are read in another thread
    end_us = max(run.now_us(), tape.end_us)
    now_us = end_us if at_us is None else min(max(at_us, tape.start_us), end_us)
    return tape.picture_at(now_us), now_us


def recorded_status(picture: Picture) -> Mapping[str, ConnectionStatus]:
    """Return how each member was reached, by label, as far as its records say."""
    return {label: _status_of(belief) for label, belief in picture.members.items()}


def _status_of(belief: MemberBelief) -> ConnectionStatus:
    held = belief.connection
    if held is None or held.state == "connected":
        why = WHY_NOT_REACHED.get(belief.status, "")
        is_gone = belief.status in ("stopped", "killed")
        since_us = belief.started_us if held is None else held.since_us
        state = "" if held is None else held.state
        return ConnectionStatus(
            belief.address, "stale" if why else "connected", since_us, why, state=state, is_gone=is_gone
        )
    is_met = belief.version > 0
    return ConnectionStatus(
        belief.address,
        "stale" if is_met else "connecting",
        held.since_us,
        held.reason,
        held.state == "refused",
        held.state,
        is_gone=held.state == "gone" and is_met,
    )
