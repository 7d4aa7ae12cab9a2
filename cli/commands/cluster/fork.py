"""`quarterdeck cluster fork`: a copy of a running cluster on disk, to go on with in simulated time."""

from __future__ import annotations

import shlex
import time
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from quarterdeck.cli.commands.cluster.observation import MERGE_SECONDS, settled_records
from quarterdeck.cli.commands.run_options import new_run, recording
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.configuration.opening import open_cluster, wait_until_started
from quarterdeck.cli.exits import BadUsage, CommandFailed, ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, option, say, write_document

if TYPE_CHECKING:
    from quarterdeck.backend.core.events import Record

LONGEST_HISTORY_SECONDS = 30.0
SNAPSHOT_SECONDS = 30.0


@with_connection
def fork(
    connection: ConnectionTarget,
    out: Annotated[Path, option("A new folder for the copy.", "DIR")],
    output: FormatOption = Format.JSON,
) -> None:
    """Copy a running cluster: the state of every member at this moment, and its past.

    Go on with the copy in simulated time, with `console --simulate DIR`; look at its past with `console --replay DIR`. Members
    give their state only to users who may change them. Members that do not answer are listed, and are silent in the copy.
    """
    from quarterdeck.backend.clusters.cluster import SnapshotSource
    from quarterdeck.backend.clusters.simulated.copied_cluster import write_copy
    from quarterdeck.backend.core.commands.commands import CommandRefused
    from quarterdeck.backend.core.witnessed.events import ConnectionChanged

    if out.exists():
        raise BadUsage(f"--out {out}: exists already; name a new folder")
    cluster = open_cluster(connection.require_named().require_writable(), write=True)
    try:
        if not isinstance(cluster, SnapshotSource):
            raise BadUsage(f"members of {cluster.name} cannot be asked this: they do not give their state")
        wait_until_started(cluster)
        records = settled_records(cluster, longest_seconds=LONGEST_HISTORY_SECONDS)
        try:
            snapshot = cluster.snapshot().result(SNAPSHOT_SECONDS)
        except FutureTimeout as silence:
            raise CommandFailed(ExitCode.UNREACHABLE, "the members did not give their state in time") from silence
        except CommandRefused as refusal:
            raise CommandFailed(ExitCode.REFUSED, str(refusal)) from refusal
        time.sleep(MERGE_SECONDS)
        records += cluster.drain()
    finally:
        cluster.close()
    own = (
        record for record in records if not isinstance(record.event, ConnectionChanged)
    )  # that is ours, and of this minute
    records = [record for record in own if record.at <= snapshot.at_us]
    run = write_past(out, f"{cluster.name}-copy", records)
    with failing_as(ExitCode.BAD_INPUT, OSError, about="--out"):
        write_copy(out, snapshot)
    say(f"go on with it: quarterdeck console --simulate {shlex.quote(str(out))}")
    document = {
        "run": run,
        "at_seconds": snapshot.at_us / 1e6,
        "members": [member.configuration.label for member in snapshot.members],
        "not_told": {silent.configuration.label: silent.why for silent in snapshot.untold},
        "in_flight": len(snapshot.in_flight),
        "records": len(records),
    }
    write_document(document, output)


def write_past(out: Path, name: str, records: list[Record]) -> str:
    """Put `records` into a journal in the folder; the name of its run."""
    import msgspec

    run = new_run(name)
    with recording(out, run) as writer:
        assert writer is not None
        for record in records:
            writer.append(msgspec.structs.replace(record, run=run))
    return run
