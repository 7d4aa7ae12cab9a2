"""`quarterdeck journal` and `quarterdeck record`: list, print and import what is recorded; record members of Hazelcast."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from quarterdeck.backend.core.address import Address
from quarterdeck.cli.commands.run_options import DateOption, DurationOption, ZoneOption, log_options, new_run, stopping
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.configuration.paths import journal_root
from quarterdeck.cli.exits import BadUsage, ExitCode, fail_if, failing_as
from quarterdeck.cli.output import Format, FormatOption, argument, flag, option, say, write_rows, write_text

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.hazelcast.hazelcast_cluster import HazelcastCluster
    from quarterdeck.backend.core.events import Record
    from quarterdeck.backend.journal.reader import Journal
    from quarterdeck.backend.journal.writer import JournalWriter
    from quarterdeck.backend.picture.fold.picture import MemberBelief, Picture


RUN_COLUMNS = ("run", "members", "records", "files", "size_bytes", "first", "last", "missing", "problems")
RECORD_COLUMNS = ("utc", "at_us", "run", "member", "uuid", "seq", "kind", "event")

group = typer.Typer(help="List, print and import recorded runs.", rich_markup_mode=None)


@group.command("ls")
def list_runs(
    path: Annotated[Path | None, argument("A journal; by default the usual one.", "[PATH]")] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List the recorded runs."""
    from quarterdeck.backend.journal.reader import RunListing, list_runs

    def row(listing: RunListing) -> dict[str, object]:
        times = {"first": _utc_text(listing.first_utc), "last": _utc_text(listing.last_utc)}
        computed = {**times, "problems": len(listing.problems)}
        return {name: computed[name] if name in computed else getattr(listing, name) for name in RUN_COLUMNS}

    if path is None and not journal_root().exists():
        say("nothing is recorded yet")
        listings: tuple[RunListing, ...] = ()
    else:
        listings = list_runs(path or journal_root())
    write_rows(map(row, listings), RUN_COLUMNS, output)
    for listing in listings:
        for problem in listing.problems:
            say(f"{problem.file}:{problem.line}: {problem.reason}")


@group.command("cat")
def print_records(
    path: Annotated[Path, argument("A journal, a run's folder in it, or one file.")],
    output: FormatOption = Format.TABLE,
) -> None:
    """Print the records of a journal in order of time. Exits with 1 when a line could not be read."""
    from quarterdeck.backend.journal.reader import read_journal

    journal = read_journal(path)
    write_rows((record_row(record, flat=output.is_flat) for record in journal), RECORD_COLUMNS, output)
    _print_problems(journal)


@group.command("lists")
def print_lists(
    path: Annotated[Path, argument("A journal of one run, a run's folder in it, or one file.")],
    member: Annotated[str | None, option("Print only the list of this member.", "LABEL")] = None,
    at: Annotated[float | None, option("The moment, on the clock of the run; by default its end.", "SECONDS")] = None,
    legacy: Annotated[bool, flag("Use the old text, from before lists had versions.", "--legacy")] = False,
) -> None:
    """Print the list that every member holds, in the text of members' logs. Exits with 1 when a line could not be read."""
    from quarterdeck.backend.journal.reader import read_journal
    from quarterdeck.backend.picture.text.formatting import one_line

    if at is not None and not 0 <= at < inf:
        raise BadUsage(f"--at: {at} is not a time of a run; write seconds from 0 on")
    journal = read_journal(path)
    picture = _picture_at(journal, path, None if at is None else round(at * 1e6))
    if not picture.members and journal.problems:
        raise BadUsage(f"{path}: is not a journal; none of its lines is a record")
    if member is not None and member not in picture.members:
        known = ", ".join(map(one_line, picture.members)) or "none"
        raise BadUsage(f"--member: {member!r} was not seen by then; seen were {known}")
    divider = ""
    for label in picture.members if member is None else [member]:
        belief, name = picture.members[label], one_line(label)
        if not belief.version or belief.status not in ("member", "paused"):
            say(f"{name} holds no list: it is {belief.status}")
            continue
        with failing_as(ExitCode.BAD_INPUT, ValueError, about=f"{path}: the list of {name}"):
            text = _list_text(belief, legacy)
        write_text((f"{divider}{name}\n{text}" if member is None else text) + "\n")
        divider = "\n"
    _print_problems(journal)


@group.command("import")
def import_logs(
    path: Annotated[Path, argument("A directory with logs of real members, or one file.", "LOGS")],
    out: Annotated[Path, option("The journal that the run is written into.", "DIR")],
    run: Annotated[str, option("The name of the run; by default that of the directory.", "NAME")] = "",
    zone: ZoneOption = "",
    date: DateOption = "",
    follow: Annotated[bool, flag("Keep reading as the logs grow, until interrupted.", "--follow")] = False,
) -> None:
    """Write the logs of real members into a journal, to replay and audit them."""
    from quarterdeck.backend.clusters.recorded.log_lines import import_run
    from quarterdeck.backend.journal.files import usable_name
    from quarterdeck.backend.judgement.observations.run_reader import named

    options = log_options(zone, run, date)
    if not run:
        options = log_options(zone, usable_name(named(path, options).run), date)
    for line in import_run(path, out, options, follow=follow):
        say(line)


def _picture_at(journal: Journal, path: Path, at_us: int | None) -> Picture:
    """Return what the members of the one run in `journal` believed at `at_us`, or at its end. Raises `CommandFailed`."""
    from quarterdeck.backend.journal.files import run_directory
    from quarterdeck.backend.journal.reader import run_zero_us
    from quarterdeck.backend.picture.fold.picture import Picture

    picture, run = Picture(), None
    for record in journal:
        if run is None and at_us is not None:
            at_us += run_zero_us(record)
        if run not in (None, record.run):
            hint = f"name one of them, as in {run_directory(path, record.run)}"
            raise BadUsage(f"{path}: holds several runs; {hint}")
        run = record.run
        if at_us is None or record.at <= at_us:
            picture.apply(record)
    return picture


def _list_text(belief: MemberBelief, legacy: bool) -> str:
    """Return the list that `belief` holds as it stands in logs. Raises ValueError for an address that is none."""
    from quarterdeck.backend.core.membership.views.member_list import MemberList, member_list_text
    from quarterdeck.backend.picture.text.formatting import one_line

    members = tuple(
        msgspec.structs.replace(member, address=Address(one_line(member.address)), uuid=one_line(member.uuid))
        for member in belief.members
    )
    return member_list_text(MemberList(belief.version, members, belief.lineage), one_line(belief.uuid), legacy=legacy)


def _print_problems(journal: Journal) -> None:
    """Name on stderr what could not be read; exit with 1 when any of it is more than an unfinished last line."""
    for problem in journal.problems:
        say(f"{problem.file}:{problem.line}: {problem.reason}")
    fail_if(any(not problem.torn for problem in journal.problems))


def record_row(record: Record, *, flat: bool) -> dict[str, object]:
    """Return the record as a row of output: whole, or with the columns `RECORD_COLUMNS` when it is to be `flat`."""
    whole: dict[str, Any] = msgspec.to_builtins(record)
    if not flat:
        return whole
    event = whole["event"]
    computed = {"utc": _utc_text(record.utc), "at_us": record.at, "kind": event.pop("kind")}
    return {name: computed[name] if name in computed else whole[name] for name in RECORD_COLUMNS}


def _utc_text(utc_us: int | None) -> str | None:
    if utc_us is None:
        return None
    return datetime.fromtimestamp(utc_us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


WRITER = "witness"
POLL_SECONDS = 0.2
FILE_SECONDS = 60.0
"""How long one file is written into: a day is some 1,500 files at most."""

MEBIBYTE = 1 << 20
DAY_SECONDS = 86_400


@with_connection
def record(
    connection: ConnectionTarget,
    out: Annotated[Path, option("The journal; a run is made in it.", "DIR")],
    keep: Annotated[int, option("Remove the oldest files when the run holds more.", "MIB", min=1)] = 1024,
    keep_days: Annotated[float | None, option("Remove files that are older.", "DAYS", min=0)] = None,
    seconds: DurationOption = None,
) -> None:
    """Record what members of Hazelcast report, until Ctrl-C or SIGTERM. Members that are lost are tried again for ever."""
    from quarterdeck.backend.journal.upkeep import Retention
    from quarterdeck.backend.journal.writer import JournalWriter
    from quarterdeck.cli.configuration.opening import open_hazelcast

    if connection.require_named().has_http_api:
        problem = "members of ours keep their own journals; this is for hazelcast://HOST[:PORT][,…] and k8s://NAMESPACE/SERVICE"
        raise BadUsage(problem)
    retention = Retention(0 if keep_days is None else keep_days * DAY_SECONDS, keep * MEBIBYTE)
    stop = threading.Event()
    with stopping(stop):
        run = new_run(connection.cluster_name)
        with failing_as(ExitCode.BAD_INPUT, OSError, about="the journal cannot be written"):
            writer = JournalWriter(out, run, WRITER, rotate_seconds=FILE_SECONDS, retention=retention)
        with writer:
            say(f"recording into {writer.directory}")
            cluster = open_hazelcast(connection, run=run)
            try:
                _record(cluster, writer, stop, None if seconds is None else time.monotonic() + seconds)
            finally:
                cluster.close()
                for last in cluster.drain():
                    writer.append(last)
    say(f"recorded into {writer.directory}; see it with: quarterdeck console --replay {writer.directory}")


def _record(cluster: HazelcastCluster, writer: JournalWriter, stop: threading.Event, until: float | None) -> None:
    said: dict[str, str] = {}
    while not stop.wait(POLL_SECONDS) and (until is None or time.monotonic() < until):
        for record in cluster.drain():
            writer.append(record)
        for label, status in cluster.connection_status().items():
            text = status.state + (f": {status.why}" if status.why else "")
            if status.state and said.get(label, "").partition(":")[0] != status.state:
                said[label] = text
                say(f"{label} is {text}")
